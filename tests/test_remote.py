# SPDX-License-Identifier: Apache-2.0
"""Promise: a dataset on a web server or in a bucket gives the same records as from a disk, despite
temporary errors of the server; permanent errors are reported as such, and data of another version,
another range or another host is never mistaken for the object's."""

from __future__ import annotations

import io
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from headrace.cli.app import application
from servers.object_server import Fault, Keys, ObjectServer, Request
from timing import with_longer_limits
from typer.testing import CliRunner

import headrace as hr
from headrace import transforms as T

STEPS = [T.RandomResizedCrop(16), T.RandomHorizontalFlip()]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Pauses of milliseconds; no proxy, and no credentials but the test's."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN", "REGION", "PROFILE"):
        monkeypatch.delenv(f"AWS_{name}", raising=False)
    hr.remote.configure(first_pause=0.001, longest_pause=0.01, retries=6, stall_seconds=30)
    yield
    hr.remote.configure(credentials=lambda: None)


@pytest.fixture(scope="module")
def tar(tmp_path_factory: pytest.TempPathFactory, pictures: Path) -> Path:
    """A shard of 23 records, images with labels."""
    path = tmp_path_factory.mktemp("tar") / "train.tar"
    with tarfile.open(path, "w") as out:
        for number, file in enumerate(sorted(pictures.rglob("*.png"))):
            out.add(file, f"{number:03}.png")
            label = tarfile.TarInfo(f"{number:03}.cls")
            label.size = 1
            out.addfile(label, io.BytesIO(b"%d" % (number % 3)))
    return path


@pytest.fixture
def server() -> Iterator[ObjectServer]:
    with ObjectServer() as running:
        yield running


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectServer]:
    """Only accepts signed requests."""
    with ObjectServer(keys=Keys(), bucket="photos") as running:
        monkeypatch.setenv("AWS_ENDPOINT_URL", running.url)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", Keys.key)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", Keys.secret)
        yield running


def epoch_of(path: str | Path) -> list[np.ndarray[Any, Any]]:
    loader = hr.Loader(str(path), STEPS, batch_size=4, shuffle=True, seed=5, threads=2)
    batches = [np.array(batch["image"]) for batch in loader]
    loader.close()
    return batches


def same(a: list[np.ndarray[Any, Any]], b: list[np.ndarray[Any, Any]]) -> bool:
    return len(a) == len(b) and all(map(np.array_equal, a, b))


def put_folder(server: ObjectServer, folder: Path, under: str) -> None:
    for file in folder.rglob("*.png"):
        server.objects[f"{under}/{file.relative_to(folder)}"] = file.read_bytes()


def every(number: int, fault: Fault) -> Any:
    return lambda request: fault if request.number % number == number - 1 else None


@pytest.mark.parametrize(
    "fault",
    [
        None,
        every(3, Fault(status=503, headers={"Retry-After": "0"})),
        every(3, Fault(cut=100)),
        every(3, Fault(closes=0)),
        every(4, Fault(status=500)),
    ],
)
def test_an_epoch_over_http_equals_that_of_the_file(
    server: ObjectServer, tar: Path, fault: Any
) -> None:
    server.objects["/data/train.tar"] = tar.read_bytes()
    hr.remote.configure(retries=1000)  # another attempt may be the third request again
    if fault:
        server.fault = fault
    assert same(epoch_of(f"{server.url}/data/train.tar"), epoch_of(tar))


def test_a_pack_and_shard_patterns_are_read_over_http(
    server: ObjectServer, tar: Path, tmp_path: Path
) -> None:
    hr.pack(hr.open(str(tar)), str(tmp_path / "train.hrpack"))
    server.objects["/train.hrpack"] = (tmp_path / "train.hrpack").read_bytes()
    for number in range(3):
        server.objects[f"/train-{number}.tar"] = tar.read_bytes()
    assert same(epoch_of(f"{server.url}/train.hrpack"), epoch_of(tmp_path / "train.hrpack"))
    assert len(hr.open(f"{server.url}/train-{{0..2}}.tar")) == 69


def test_a_hanging_request_is_sent_again(server: ObjectServer, tar: Path) -> None:
    server.objects["/train.tar"] = tar.read_bytes()
    server.fault = lambda request: Fault(stall=10) if request.number == 2 else None

    def check(stall_seconds: float) -> None:
        hr.remote.configure(stall_seconds=stall_seconds)
        server.requests.clear()
        assert same(epoch_of(f"{server.url}/train.tar"), epoch_of(tar))
        assert len(server.requests) > 3

    with_longer_limits(check)


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (Fault(whole=True), "HR0222"),
        (Fault(headers={"Content-Range": "bytes 0-99/5000"}), "HR0223"),
        (Fault(headers={"Content-Range": ""}), "HR0223"),
        (Fault(headers={"Content-Range": "bytes 0-4095/*"}), "HR0223"),
        (Fault(headers={"Content-Encoding": "gzip"}), "HR0223"),
        (Fault(longer=b"more"), "HR0223"),
        (Fault(status=403), "HR0231"),
        (Fault(status=418), "HR0221"),
        (Fault(status=404), "HR0201"),
        (Fault(status=412), "HR0208"),
        (Fault(status=302, headers={"Location": "http://localhost:9/a"}), "HR0221"),
        (Fault(status=302, headers={"Location": "file:///etc/passwd"}), "HR0221"),
        (Fault(status=503), "HR0221"),
    ],
)
def test_permanent_failures_are_errors(
    server: ObjectServer, tar: Path, fault: Fault, code: str
) -> None:
    server.objects["/train.tar"] = tar.read_bytes()
    source = hr.open(f"{server.url}/train.tar")
    server.fault = lambda request: fault
    with pytest.raises(hr.Error) as raised:
        source[20]
    assert raised.value.code == code


def test_an_object_that_is_replaced_is_found(server: ObjectServer, tar: Path) -> None:
    server.objects["/train.tar"] = content = tar.read_bytes()
    source = hr.open(f"{server.url}/train.tar")
    server.objects["/train.tar"] = content[:-1] + b"x"
    with pytest.raises(hr.DataError, match="HR0208"):
        source[20]
    assert server.requests[-1].headers["if-match"].startswith('"')


def test_redirects_do_not_forward_credentials(server: ObjectServer, tar: Path) -> None:
    hr.remote.configure(headers={"Authorization": "Bearer secret"})
    server.objects["/real.tar"] = tar.read_bytes()
    moved = Fault(status=302, headers={"Location": "/real.tar"})
    server.fault = lambda request: moved if request.path == "/train.tar" else None
    assert len(hr.open(f"{server.url}/train.tar")) == 23
    assert {request.headers.get("authorization") for request in server.requests} == {
        "Bearer secret"
    }
    with ObjectServer() as other:
        other.objects["/real.tar"] = tar.read_bytes()
        moved.headers["Location"] = f"{other.url}/real.tar"
        with pytest.raises(hr.StorageError, match="redirects to another server"):
            hr.open(f"{server.url}/train.tar?v=2")
        assert not other.requests
        hr.remote.configure(redirects="any")
        assert len(hr.open(f"{server.url}/train.tar?v=3", format="webdataset")) == 23
        assert all("authorization" not in request.headers for request in other.requests)


def test_no_message_shows_a_token(server: ObjectServer, tar: Path) -> None:
    with pytest.raises(hr.StorageError) as raised:
        hr.open(f"{server.url.replace('//', '//me:word@')}/none.tar?sig=verysecret")
    assert "verysecret" not in str(raised.value) and "word" not in str(raised.value)
    assert server.requests[0].query == {"sig": "verysecret"}
    assert server.requests[0].headers["authorization"].startswith("Basic ")
    server.objects["/train.tar"] = tar.read_bytes()
    source = hr.open(f"{server.url.replace('//', '//me:word@')}/train.tar")
    assert "word" not in f"{source!r} {hr.Loader(source, STEPS, batch_size=2)}"


def test_a_folder_in_a_bucket_equals_that_of_the_disk(bucket: ObjectServer, pictures: Path) -> None:
    bucket.page = 3  # entries per page of the listing
    put_folder(bucket, pictures, "/photos/set 1/train+é")
    path = "s3://photos/set 1/train+é"
    source = hr.open(path)
    assert len(source) == 23
    listed = len(bucket.requests)
    assert same(epoch_of(path), epoch_of(pictures))
    # One request for each picture of this epoch and of the next, and at most one more listing.
    assert len(bucket.requests) - listed <= 2 * 23 + listed


def test_an_empty_folder_in_a_bucket_has_no_records(bucket: ObjectServer, pictures: Path) -> None:
    put_folder(bucket, pictures, "/photos/train")
    bucket.objects["/photos/train/empty/"] = b""  # as made by cloud consoles
    with pytest.raises(hr.ConfigError, match=r"HR0407.*'empty'"):  # as on a disk
        hr.open("s3://photos/train")


def test_shards_in_a_bucket_need_no_request_for_their_size(bucket: ObjectServer, tar: Path) -> None:
    for number in range(5):
        bucket.objects[f"/photos/train/part-{number}.tar"] = tar.read_bytes()
    assert len(hr.open("s3://photos/train")) == 5 * 23
    reads = [request for request in bucket.requests if request.path.endswith(".tar")]
    ranges = {(request.path, request.headers.get("range")) for request in reads}
    assert len(ranges) == len(reads), "no range is asked for twice"
    before = len(bucket.requests)
    assert len(hr.open("s3://photos/train")) == 5 * 23  # the index is cached
    assert len(bucket.requests) - before <= 1
    result = CliRunner().invoke(application(), ["info", "s3://photos/train"])
    assert result.exit_code == 0 and "115" in result.output, result.output


def test_expired_credentials_are_renewed_once(
    bucket: ObjectServer, tar: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    bucket.objects["/photos/train.tar"] = tar.read_bytes()
    given: list[str] = []

    def credentials() -> dict[str, Any]:
        given.append(f"token-{len(given)}")
        return {"key": Keys.key, "secret": Keys.secret, "token": given[-1]}

    hr.remote.configure(credentials=credentials)
    assert bucket.keys
    bucket.keys.token = "token-0"
    source = hr.open("s3://photos/train.tar")
    bucket.keys.token = f"token-{len(given)}"
    assert source[20]["label"] is not None
    bucket.keys.token = "never"
    count = len(given)
    with pytest.raises(hr.StorageError, match=r"HR0221.*ExpiredToken"):
        source[21]
    assert count < len(given) <= count + 2  # once for each of the record's two reads


def test_credentials_that_expire_soon_are_not_requested_for_each_read(
    bucket: ObjectServer, pictures: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    put_folder(bucket, pictures, "/photos/train")
    keys = {"key": Keys.key, "secret": Keys.secret}
    answers = [{**keys, "expires": time.time() + 200}]  # to be renewed from now on
    hr.remote.configure(credentials=lambda: answers.pop())
    assert same(epoch_of("s3://photos/train"), epoch_of(pictures))
    hr.remote.configure(credentials=lambda: {**keys, "expires": time.time() - 60})
    with pytest.raises(hr.StorageError, match=r"HR0233.*s3:// expired 6\d s ago, and their"):
        hr.open("s3://photos/train")


def test_bucket_errors_name_the_cause(
    bucket: ObjectServer, tar: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket.objects["/photos/train.tar"] = tar.read_bytes()
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another")
    with pytest.raises(hr.StorageError, match=r"403 \(SignatureDoesNotMatch"):
        hr.open("s3://photos/train.tar")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", Keys.secret)
    bucket.fault = lambda request: (
        Fault(status=200, body=b"<html>Sign in</html>") if "list-type" in request.query else None
    )
    with pytest.raises(hr.StorageError, match="HR0224"):
        hr.open("s3://photos/elsewhere/")
    bucket.fault = lambda request: None
    with pytest.raises(hr.StorageError, match="HR0402"):
        hr.open("s3://photos/missing")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "storage.example.org")
    with pytest.raises(hr.ConfigError, match="HR0225"):
        hr.open("s3://others/a")


def test_the_region_reported_by_a_bucket_is_used(bucket: ObjectServer, tar: Path) -> None:
    bucket.objects["/far/train.tar"] = tar.read_bytes()
    assert bucket.keys
    bucket.keys.region = "eu-central-1"

    def fault(request: Request) -> Fault | None:
        if "eu-central-1" in request.headers.get("authorization", ""):
            return None
        return Fault(status=301, headers={"x-amz-bucket-region": "eu-central-1"})

    bucket.fault = fault
    assert len(hr.open("s3://far/train.tar")) == 23


def test_invalid_options_are_refused() -> None:
    for bad in (
        {"retries": -1},
        {"connections": 0},
        {"stall_seconds": -2.0},
        {"addressing": "other"},
        {"redirects": "some"},
        {"headers": {"X": "a\r\nHost: b"}},
    ):
        with pytest.raises(hr.ConfigError, match="HR0160"):
            hr.remote.configure(**bad)  # type: ignore[arg-type]
