# SPDX-License-Identifier: Apache-2.0
"""Promise: a folder of class folders in a bucket is listed with about as many requests as it has
pages of keys, in every cloud, and gives the records of the same folder on the disk, whatever its
names, and even if the server ignores the requested start or the order of keys."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from processes import run_code
from servers.clouds import AzureServer, GoogleServer, HubServer
from servers.object_server import Fault, ObjectServer, Request
from test_remote import bucket, every, quick
from test_requests_of_opening import listings

import headrace as hr

__all__ = ["bucket", "quick"]

PNG = b"never decoded here"
HOSTILE = ["a", "a!", "a-b", "a.b", "a b", "a~", "a0", "A", "%2F", "é", "z+", "n,1", "~", "_"]


def keys_of(folders: list[str], files: int, loose: int = 0) -> list[str]:
    inside = [f"{folder}/{i:03}.jpg" for folder in folders for i in range(files)]
    return inside + [f"a{i:02}.txt" for i in range(loose)]


def on_disk(folder: Path, keys: list[str]) -> list[str]:
    for key in keys:
        (folder / key).parent.mkdir(parents=True, exist_ok=True)
        (folder / key).write_bytes(PNG)
    return names_in(str(folder))


def names_in(path: str) -> list[str]:
    source = hr.open(path, format="folder")
    assert [field.name for field in source.schema] == ["image", "label"]
    return [
        f"{source.classes[label]}: {source.key(i).removeprefix(path)}"
        for i, label in enumerate(source.column("label").tolist())
    ]


@pytest.fixture(params=["s3", "gs", "az", "hf"])
def cloud(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[ObjectServer, str, str]]:
    """A server, the prefix of its objects, and the path of a folder there."""
    server: Any = {
        "s3": lambda: ObjectServer(bucket="photos"),
        "gs": GoogleServer,
        "az": AzureServer,
        "hf": HubServer,
    }[request.param]()
    with server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", server.url)
        monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "account")
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        if request.param == "az":
            monkeypatch.setenv("AZURE_STORAGE_ENDPOINT", server.endpoint)
        under, path = {
            "s3": ("/photos/train", "s3://photos/train"),
            "gs": ("/photos/train", "gs://photos/train"),
            "az": ("/account/photos/train", "az://photos/train"),
            "hf": ("/datasets/owner/name/resolve/main/train", "hf://datasets/owner/name/train"),
        }[request.param]
        yield server, under, path


@pytest.mark.parametrize(("page", "files"), [(1000, 3), (60, 3), (60, 40), (7, 3)])
def test_every_cloud_lists_the_files_of_the_disk(
    cloud: tuple[ObjectServer, str, str], tmp_path: Path, page: int, files: int
) -> None:
    server, under, path = cloud
    folders = [f"n{i:03}" for i in range(20)] + HOSTILE
    keys = keys_of(folders, files)
    server.objects.update({f"{under}/{key}": PNG for key in keys})
    server.page = page
    assert names_in(path) == on_disk(tmp_path, keys)


def test_two_hundred_folders_take_as_many_listings_as_pages(
    bucket: ObjectServer, tmp_path: Path
) -> None:
    keys = keys_of([f"n{i:03}" for i in range(200)], 10)
    bucket.objects.update({f"/photos/train/{key}": PNG for key in keys})
    assert names_in("s3://photos/train") == on_disk(tmp_path, keys)
    # The look at the folder, its classes, two pages of keys; three, as parts overlap.
    assert len(listings(bucket)) <= 5
    bucket.requests.clear()
    bucket.page = 100
    hr.remote.configure(**hr.remote.configure(retries=9))  # forgets what it knows
    hr.open("s3://photos/train", format="folder")
    pages = 2 + len(keys) // 100
    assert len(listings(bucket)) <= 2 * pages, "and not one for each folder"


@pytest.mark.parametrize("wrong", ["begins anywhere", "no order", "no order later"])
def test_a_server_with_another_key_order_gives_the_same_listing(
    bucket: ObjectServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    keys = keys_of([f"n{i:03}" for i in range(40)] + HOSTILE, 5)
    bucket.objects.update({f"/photos/train/{key}": PNG for key in keys})
    bucket.page = 50
    bucket.begins = wrong != "begins anywhere"
    sound = bucket.entries

    def shuffled(prefix: str, delimiter: str, after: str) -> Any:
        entries = sound(prefix, delimiter, "")
        if not delimiter:
            random.Random(3).shuffle(entries)
        names = [name for name, _ in entries]
        return entries[names.index(after) + 1 :] if after in names else entries

    if wrong == "no order":
        monkeypatch.setattr(bucket, "entries", shuffled)
    if wrong == "no order later":

        def fault(request: Request) -> None:
            if len(bucket.requests) > 3:
                monkeypatch.setattr(bucket, "entries", shuffled)

        bucket.fault = fault
    assert names_in("s3://photos/train") == on_disk(tmp_path, keys)


@pytest.mark.parametrize("fault", [every(3, Fault(status=503)), every(4, Fault(cut=300))])
def test_a_burst_of_server_errors_loses_no_record(
    bucket: ObjectServer, tmp_path: Path, fault: Any
) -> None:
    keys = keys_of([f"n{i:03}" for i in range(60)], 7)
    bucket.objects.update({f"/photos/train/{key}": PNG for key in keys})
    hr.remote.configure(retries=1000)  # another attempt may meet the fault again
    bucket.page, bucket.fault = 40, fault
    assert names_in("s3://photos/train") == on_disk(tmp_path, keys)


@pytest.mark.parametrize("key", ["n003//9.jpg", "n003/./9.jpg", "n003/../9.jpg"])
def test_a_key_that_is_not_a_path_is_detected_among_many(bucket: ObjectServer, key: str) -> None:
    keys = keys_of([f"n{i:03}" for i in range(60)], 7)
    bucket.objects.update({f"/photos/train/{each}": PNG for each in [*keys, key]})
    bucket.page = 50
    with pytest.raises(hr.StorageError, match="HR0227"):
        hr.open("s3://photos/train")


def test_a_key_that_is_listed_twice_is_not_two_records(bucket: ObjectServer) -> None:
    keys = keys_of([f"n{i:03}" for i in range(60)], 7)
    bucket.objects.update({f"/photos/train/{key}": PNG for key in keys})
    bucket.page, bucket.twice = 50, "train/n040/003.jpg"
    with pytest.raises(hr.StorageError, match=r"HR0224.*twice"):
        hr.open("s3://photos/train")


MANY, OF_FOLDER = 200_000, 2_000
OPENS = """
import re, sys
from pathlib import Path
import headrace as hr

def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) * 1024

hr.remote.configure(credentials=lambda: None)
records, of_folder = int(sys.argv[1]), int(sys.argv[2])
before = peak()
source = hr.open("s3://photos/train", format="folder")
grown = peak() - before
assert len(source) == records and len(source.classes) == records // of_folder
for i in [*range(0, records, 97), records - 1]:
    assert source.key(i) == f"s3://photos/train/{i // of_folder:03}/{i % of_folder:06}.jpg"
print(grown)
"""


class ManyFiles(ObjectServer):
    """Lists train/000/000000.jpg to train/099/001999.jpg, which it does not store."""

    def entries_from(self, begin: int, end: int) -> str:
        return "".join(
            f"<Contents><Key>train/{i // OF_FOLDER:03}/{i % OF_FOLDER:06}.jpg</Key>"
            f"<ETag>&quot;{i:032x}&quot;</ETag><Size>{100_000 + i}</Size></Contents>"
            for i in range(begin, end)
        )

    def listing(self, query: dict[str, str]) -> bytes:
        folder = query["prefix"].removeprefix("train/").strip("/")
        first = int(folder) * OF_FOLDER if folder else 0
        last = first + OF_FOLDER if folder else MANY
        if after := query.get("start-after", "").removeprefix("train/").strip("/"):
            assert len(after) == 3, "a folder"
            first = int(after) * OF_FOLDER
        first = int(query.get("continuation-token", first))
        if query.get("delimiter") and not folder:
            names = range(MANY // OF_FOLDER)
            page = "".join(
                f"<CommonPrefixes><Prefix>train/{i:03}/</Prefix></CommonPrefixes>" for i in names
            )
            end = last
        else:
            end = min(first + 1000, last)
            page = self.entries_from(first, end)
        more = f"<NextContinuationToken>{end}</NextContinuationToken>" if end < last else ""
        truncated = f"<IsTruncated>{str(end < last).lower()}</IsTruncated>"
        return f"<ListBucketResult>{truncated}{page}{more}</ListBucketResult>".encode()


def test_many_files_are_listed_in_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    with ManyFiles(bucket="photos") as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
        done = run_code(OPENS, MANY, OF_FOLDER)
        assert done.returncode == 0, done.stderr
        assert len(listings(server)) < 1.2 * MANY / 1000
    assert int(done.stdout) < 400 * MANY
