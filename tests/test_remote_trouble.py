# SPDX-License-Identifier: Apache-2.0
"""Servers and buckets with slow or silent failures: trickling data, keys that are not paths,
listings with duplicate keys, signed addresses, certificates, and a program that exits meanwhile."""

from __future__ import annotations

import json
import shutil
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from processes import run_code
from servers.object_server import Fault, Keys, ObjectServer, Request, etag_of
from test_remote import STEPS, bucket, put_folder, quick, server, tar
from timing import with_longer_limits
from token_files import megatron_index

import headrace as hr

__all__ = ["bucket", "quick", "server", "tar"]


def test_a_trickling_response_times_out(server: ObjectServer, tar: Path) -> None:
    server.objects["/train.tar"] = tar.read_bytes()
    source = hr.open(f"{server.url}/train.tar")
    drip = 0.05  # seconds, so that each byte comes before the stall
    hr.remote.configure(stall_seconds=4 * drip, least_rate=1e6, retries=2)
    server.fault = lambda request: Fault(drip=drip, drip_bytes=1)
    with pytest.raises(hr.StorageError, match=r"HR0221.*almost none.*after 3 attempts"):
        source[20]


@pytest.mark.parametrize("on_error", ["skip", "substitute", "raise"])
def test_record_timeout_applies_the_error_policy_to_a_trickling_record(
    bucket: ObjectServer, pictures: Path, tmp_path: Path, on_error: str
) -> None:
    put_folder(bucket, pictures, "/photos/train")
    late = "/photos/train/eel/05.png"

    def check(limit: float) -> None:
        bucket.fault = lambda request: (
            Fault(drip=limit / 8, drip_bytes=1) if request.path == late else None
        )
        quarantine = tmp_path / f"{limit}.jsonl"
        loader = hr.Loader(
            "s3://photos/train",
            STEPS,
            batch_size=4,
            on_error=on_error,
            error_budget=5,
            record_timeout=limit,
            quarantine=quarantine,
        )
        with loader:
            if on_error == "raise":
                with pytest.raises(hr.StorageError) as raised:
                    list(loader)
                said = str(raised.value)
                assert raised.value.code == "HR0228"
                seconds = f"{limit:g} s"
                for part in ("train/eel/05.png", "record", seconds, "record_timeout=", "on_error="):
                    assert part in said, said
                return
            count = sum(len(batch["image"]) for batch in loader)
            assert count == (22 if on_error == "skip" else 23)
        (bad,) = [json.loads(line) for line in quarantine.read_text().splitlines()]
        assert "HR0228" in json.dumps(bad) and "eel/05.png" in json.dumps(bad)

    with_longer_limits(check)


@pytest.mark.parametrize("key", ["x//9.png", "x/./9.png", "x/../9.png"])
def test_a_key_that_is_not_a_path_is_not_silently_skipped(
    bucket: ObjectServer, pictures: Path, key: str
) -> None:
    put_folder(bucket, pictures, "/photos/c/x")
    bucket.objects[f"/photos/c/{key}"] = b"a record"
    with pytest.raises(hr.StorageError) as raised:
        hr.open("s3://photos/c")
    assert raised.value.code == "HR0227"
    assert f'"c/{key.removesuffix("9.png")}"' in str(raised.value)


def test_a_key_listed_twice_is_one_record(bucket: ObjectServer, pictures: Path) -> None:
    put_folder(bucket, pictures, "/photos/train")
    bucket.twice = "train/cat/00.png"
    with pytest.raises(hr.StorageError, match=r'HR0224.*"00.png" twice'):
        hr.open("s3://photos/train")


def test_a_server_that_fails_at_the_first_bytes_does_not_change_the_tokens(
    server: ObjectServer, quick: None
) -> None:
    """An index that could not be read is not treated as missing."""
    hr.remote.configure(retries=1)
    tokens = np.arange(600, dtype=np.int32) + 1_000_000_000
    for status in (500, 403, 401):
        server.objects[f"/{status}.bin"] = tokens.tobytes()
        server.objects[f"/{status}.idx"] = megatron_index([600], "int32")
    answers = {f"/{status}.idx": Fault(status=status) for status in (500, 403, 401)}
    server.fault = lambda request: answers.get(request.path)
    with pytest.raises(hr.StorageError, match=r"HR0221.*500"):
        hr.tokens(f"{server.url}/500.bin", window=8)
    with pytest.raises(hr.StorageError, match=r"HR0232.*401"):
        hr.tokens(f"{server.url}/401.bin", window=8)
    # Buckets without list permission answer this way for missing objects.
    source = hr.tokens(f"{server.url}/403.bin", window=8, dtype="int32")
    assert source[1]["tokens"].tolist() == tokens[8:16].tolist()


def test_a_folder_listed_on_two_pages_is_one_folder(bucket: ObjectServer, pictures: Path) -> None:
    bucket.page, bucket.repeats = 2, True
    for part in "ab":
        put_folder(bucket, pictures, f"/photos/train/{part}")
    source = hr.open("s3://photos/train")
    keys = [source.key(i).removeprefix("s3://photos/train/") for i in range(len(source))]
    names = sorted(str(path.relative_to(pictures)) for path in pictures.rglob("*.png"))
    assert keys == [f"{part}/{name}" for part in "ab" for name in names]


def test_keys_of_token_files_do_not_contain_the_signature(server: ObjectServer) -> None:
    """The file next to a signed .bin used to be requested by truncating the signature."""
    server.objects["/a.bin"] = np.arange(1, 65, dtype=np.int32).tobytes()
    address = f"{server.url}/a.bin?sig=verysecret&se=2027-01-01"
    for source, keys in (
        (hr.tokens(address, window=8, dtype="int32"), ["a.bin:0", "a.bin:8"]),
        (hr.tokens(address, window=None, dtype="int32", eos=8), ["a.bin/0", "a.bin/1"]),
    ):
        assert [source.key(number) for number in range(2)] == keys
        assert "verysecret" not in repr(source)
    assert {request.path for request in server.requests} == {"/a.bin"}


def test_signed_addresses_open_and_their_secrets_are_not_stored(
    server: ObjectServer, tar: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path))
    server.objects["/train.tar"] = tar.read_bytes()
    address = f"{server.url}/train.tar?sig={{}}%2Fb&se=2027-01-01"
    source = hr.open(address.format("verysecret"))
    assert len(source) == 23
    first = hr.Loader(source, STEPS, batch_size=23, on_error="skip")
    state = first.state_dict()
    shown = f"{source!r} {first} {source.key(3)} {state}"
    kept = list(tmp_path.rglob("*"))
    assert kept and all("verysecret" not in str(path) for path in kept)
    assert all(b"verysecret" not in path.read_bytes() for path in kept if path.is_file())
    assert "verysecret" not in shown, shown
    again = hr.open(address.format("signedanew"))
    assert list(tmp_path.rglob("*")) == kept, "its index is the one that is there"
    second = hr.Loader(again, STEPS, batch_size=23)
    second.load_state_dict(state)
    assert all(np.array_equal(a["image"], b["image"]) for a, b in zip(first, second, strict=True))


KEEPS_BLOCKS = """
import os, sys
os.environ["HEADRACE_CACHE"] = sys.argv[1]
import headrace as hr
loader = hr.Loader(sys.argv[2], fields="label", batch_size=23, disk_cache="64 MiB")
assert [len(batch.label) for batch in loader] == [23]
assert loader.stats()["disk_cache"]["misses"] > 0
"""


def test_the_disk_cache_keeps_no_password(server: ObjectServer, tar: Path, tmp_path: Path) -> None:
    server.objects["/train.tar"] = tar.read_bytes()
    address = f"{server.url}/train.tar?sig=verysecret".replace("//", "//me:verysecret@")
    done = run_code(KEEPS_BLOCKS, tmp_path, address)
    assert done.returncode == 0, done.stderr
    blocks = [path for path in (tmp_path / "blocks").rglob("*") if path.is_file()]
    assert any(b"train.tar" in path.read_bytes() for path in blocks)
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert all(b"verysecret" not in path.read_bytes() for path in kept)


ENDS = """
import sys, threading, time, urllib.error, urllib.request
import headrace as hr

asked = []

def credentials():
    asked.append(1)
    if len(asked) > 1:
        for _ in range(100):  # on a thread of the client's, while the interpreter would end
            time.sleep(0.005)
    return {"key": sys.argv[1], "secret": "x", "token": f"token-{len(asked)}"}

hr.remote.configure(credentials=credentials)
source = hr.open("s3://photos/train.tar")
try:
    urllib.request.urlopen(sys.argv[2])
except urllib.error.HTTPError:
    pass
threading.Thread(target=lambda: source[20], daemon=True).start()
while len(asked) < 2:
    time.sleep(0.001)
"""


def test_a_program_may_exit_while_a_client_requests_credentials(
    bucket: ObjectServer, tar: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    bucket.objects["/photos/train.tar"] = tar.read_bytes()
    bucket.keys = None
    expired = Fault(status=400, body=b"<Error><Code>ExpiredToken</Code></Error>")

    def fault(request: Request) -> Fault | None:
        return expired if bucket.seen("/from-now-on") else None

    bucket.fault = fault
    for _ in range(3):
        bucket.requests.clear()
        done = run_code(ENDS, Keys.key, f"{bucket.url}/from-now-on")
        assert done.returncode == 0, (done.returncode, done.stderr)


def certificates(folder: Path) -> None:
    """authority.pem, and server.pem with server.key, signed by it, for 127.0.0.1."""
    key = "req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1\nbasicConstraints=CA:FALSE\n")
    for command in (
        f"{key} -x509 -days 1 -subj /CN=authority -keyout authority.key -out authority.pem",
        f"{key} -subj /CN=server -keyout server.key -out server.csr",
        "x509 -req -in server.csr -CA authority.pem -CAkey authority.key -CAcreateserial -days 1 "
        "-extfile names -out server.pem",
    ):
        subprocess.run(
            ["openssl", *command.split()], cwd=folder, check=True, capture_output=True, timeout=300
        )


@pytest.fixture
def tls(tmp_path: Path) -> Iterator[tuple[ObjectServer, Path]]:
    if not shutil.which("openssl"):
        pytest.skip("no openssl to make certificates with")
    certificates(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem", tmp_path / "server.key")
    with ObjectServer(tls=context) as running:
        yield running, tmp_path / "authority.pem"


def test_tls_uses_the_specified_certificates(tls: tuple[ObjectServer, Path], tar: Path) -> None:
    running, authority = tls
    running.objects["/train.tar"] = tar.read_bytes()
    assert running.url.startswith("https://")
    with pytest.raises(hr.StorageError, match=r"HR0221.*\n.*\n.*ca_file="):
        hr.open(f"{running.url}/train.tar")
    assert not running.requests, "nothing is sent to a server that is not known"
    hr.remote.configure(ca_file=str(authority))
    assert len(hr.open(f"{running.url}/train.tar")) == 23
    assert etag_of(running.objects["/train.tar"]) == running.requests[-1].headers["if-match"]
    wrong = running.url.replace("127.0.0.1", "localhost")  # the certificate is for the IP address
    with pytest.raises(hr.StorageError, match="HR0221"):
        hr.open(f"{wrong}/train.tar")


def test_a_negative_least_rate_is_refused() -> None:
    with pytest.raises(hr.ConfigError, match=r"HR0160.*least_rate"):
        hr.remote.configure(least_rate=-1)
