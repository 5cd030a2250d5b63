# SPDX-License-Identifier: Apache-2.0
"""Promise: opening requests nothing twice from remote storage: a folder is listed once, whatever
media it holds, an index next to the data is one request, and a zip archive's directory is read
once.
"""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from audio_files import int16_waves, wav_of
from servers.object_server import ObjectServer, Request
from test_remote import bucket, quick

import headrace as hr

__all__ = ["bucket", "quick"]


@pytest.fixture(autouse=True)
def patient() -> None:
    """A request that a busy machine answers late is not sent again."""
    hr.remote.configure(stall_seconds=120, least_rate=0)


def forget() -> None:
    """Clears what the process knows about objects, like on another machine."""
    hr.remote.configure(**hr.remote.configure(retries=9))


def listings(server: ObjectServer) -> list[Request]:
    return [request for request in server.requests if "list-type" in request.query]


def twice(server: ObjectServer) -> dict[object, int]:
    """Requests sent more than once."""
    asked = Counter(
        (request.path, tuple(sorted(request.query.items())), request.headers.get("range"))
        for request in server.requests
    )
    return {what: count for what, count in asked.items() if count > 1}


@pytest.mark.parametrize("folders", [0, 3, 20])
def test_a_folder_of_audio_is_listed_once(bucket: ObjectServer, folders: int) -> None:
    """Images are searched for first, and there are none."""
    bucket.page = 7
    clip = wav_of(int16_waves(100))
    for number in range(40):
        folder = f"class{number % folders:02}/" if folders else ""
        bucket.objects[f"/photos/clips/{folder}{number:03}.wav"] = clip
    source = hr.open("s3://photos/clips")
    assert len(source) == 40
    assert next(field.name for field in source.schema) == "audio"
    assert not twice(bucket)
    pages = 40 // 7 + 2 + folders  # of the root; of each folder
    assert len(listings(bucket)) <= pages + 1


def tar_of(count: int) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for number in range(count):
            member = tarfile.TarInfo(f"{number:03}.bin")
            member.size = 10
            tar.addfile(member, io.BytesIO(b"0123456789"))
    return out.getvalue()


def test_an_index_next_to_the_data_is_one_request(
    bucket: ObjectServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bucket.objects["/photos/train/a.tar"] = tar_of(50)
    stored = hr.index("s3://photos/train/a.tar", next_to_data=True)["files"][0]
    assert stored["is_new"]
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path / "of another machine"))
    forget()
    bucket.requests.clear()
    assert len(hr.open("s3://photos/train/a.tar")) == 50
    of_index = [request for request in bucket.requests if ".headrace/" in request.path]
    assert len(of_index) == 1, of_index
    assert not twice(bucket)


def tar_of_large_members(count: int, size: int) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for number in range(count):
            member = tarfile.TarInfo(f"{number:03}.bin")
            member.size = size
            tar.addfile(member, io.BytesIO(bytes(size)))
    return out.getvalue()


@pytest.mark.parametrize("size", [1_000, 30_000])
def test_an_index_is_cached_by_etag(
    bucket: ObjectServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, size: int
) -> None:
    """The headers are read in few large requests; the second opening reads none of them."""
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path))
    for shard in range(3):
        bucket.objects[f"/photos/train/{shard}.tar"] = tar_of_large_members(400, size)
    assert len(hr.open("s3://photos/train")) == 1200
    scans = len(bucket.requests) - len(listings(bucket))
    whole = sum(map(len, bucket.objects.values()))
    assert scans <= 3 * (2 + whole / 3 / (1 << 20)), "in pieces of a megabyte and more"
    for _ in range(2):
        forget()
        bucket.requests.clear()
        assert len(hr.open("s3://photos/train")) == 1200
        reads = [request for request in bucket.requests if request.path.endswith(".tar")]
        assert len(reads) <= 1, "the beginning of the first one, which tells the format"
    bucket.objects["/photos/train/1.tar"] = tar_of_large_members(200, 2 * size)
    forget()
    assert len(hr.open("s3://photos/train")) == 1000, "another version, another index"


def saved_archive(first: str) -> bytes:
    """As torch.save lays it out (its pickle is not a valid one), or with another member first."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        names = ["archive/data.pkl", "archive/photos/0", "archive/version"]
        for name in sorted(names, key=lambda name: name != first):
            archive.writestr(name, bytes(5000))
    return out.getvalue()


def test_a_zip_archives_directory_is_read_once(bucket: ObjectServer) -> None:
    bucket.objects["/photos/train.pt"] = saved_archive("archive/data.pkl")
    with pytest.raises(hr.Error, match=r"train\.pt"):  # its pickle is invalid
        hr.open("s3://photos/train.pt")
    assert not twice(bucket)
    bucket.requests.clear()
    bucket.objects["/photos/other.pt"] = saved_archive("archive/version")
    with pytest.raises(hr.Error, match=r"other\.pt"):
        hr.open("s3://photos/other.pt")
    assert max(twice(bucket).values(), default=1) <= 2  # to recognize it, and to open it


def test_an_index_cannot_be_stored_next_to_a_web_servers_files() -> None:
    with ObjectServer() as server:
        server.objects["/train.tar"] = tar_of(3)
        with pytest.raises(hr.Error, match="HR0229"):
            hr.index(f"{server.url}/train.tar", next_to_data=True)


def test_values_of_a_remote_tensor_equal_those_on_disk(
    bucket: ObjectServer, tmp_path: Path
) -> None:
    torch = pytest.importorskip("torch")
    path = tmp_path / "a.pt"
    torch.save({"x": torch.arange(12).reshape(6, 2)}, path)
    bucket.objects["/photos/a.pt"] = path.read_bytes()
    source = hr.open("s3://photos/a.pt")
    np.testing.assert_array_equal(source.column("x"), np.arange(12).reshape(6, 2))
