# SPDX-License-Identifier: Apache-2.0
"""Promise: a server's failures in the middle of a run are retried, or end the run with an error
that says what happened: bursts of rejections, names that do not resolve, endless listings. Nothing
hangs, and no record is skipped because of them."""

from __future__ import annotations

import io
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from servers.object_server import Fault, Keys, ObjectServer, Request
from test_remote import STEPS, bucket, epoch_of, put_folder, quick, same, server, tar
from test_remote_listings import cloud
from timing import PATIENCE

import headrace as hr

__all__ = ["bucket", "cloud", "quick", "server", "tar"]


class Storm:
    """Requests for images get this answer, ``length`` of them after the first ``calm`` ones."""

    def __init__(self, status: int, calm: int, length: int) -> None:
        self.fault = Fault(status=status, headers={"Retry-After": "0"} if status == 503 else {})
        self.calm, self.left = calm, length
        self.lock = threading.Lock()

    def __call__(self, request: Request) -> Fault | None:
        with self.lock:
            if not request.path.endswith(".png") or self.left == 0:
                return None
            self.calm -= 1
            if self.calm >= 0:
                return None
            self.left -= 1
            return self.fault


@pytest.mark.parametrize("on_error", ["raise", "skip", "substitute"])
@pytest.mark.parametrize("status", [403, 503])
def test_failures_that_persist_end_the_run(
    bucket: ObjectServer, pictures: Path, status: int, on_error: str
) -> None:
    put_folder(bucket, pictures, "/photos/train")
    bucket.fault = Storm(status, calm=4, length=10**9)
    loader = hr.Loader(
        "s3://photos/train", STEPS, batch_size=2, on_error=on_error, error_budget=1000
    )
    with loader, pytest.raises(hr.StorageError, match=rf"HR02[23]1.*{status}"):
        list(loader)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_temporary_failures_change_no_batch(
    bucket: ObjectServer, pictures: Path, status: int
) -> None:
    put_folder(bucket, pictures, "/photos/train")
    bucket.fault = storm = Storm(status, calm=6, length=60)
    hr.remote.configure(retries=1000, first_pause=0.01, longest_pause=0.05)
    with hr.Loader(
        "s3://photos/train", STEPS, batch_size=4, shuffle=True, seed=5, threads=2
    ) as loader:
        once = [np.array(batch["image"]) for batch in loader]
        again = [np.array(batch["image"]) for batch in loader]
    assert same(once, epoch_of(pictures))
    assert storm.left == 0 and len(again) == len(once)


def test_files_that_vanish_in_mid_run_follow_the_policy(
    bucket: ObjectServer, pictures: Path
) -> None:
    put_folder(bucket, pictures, "/photos/train")
    source = hr.open("s3://photos/train")
    gone = sorted(path for path in bucket.objects if "/cat/" in path)[:3]
    for path in gone:
        del bucket.objects[path]
    with hr.Loader(source, STEPS, batch_size=4, on_error="skip", error_budget=5) as loader:
        assert sum(len(batch["image"]) for batch in loader) == 20
    with (
        hr.Loader(source, STEPS, batch_size=4) as loader,
        pytest.raises(hr.Error, match=r"HR0201.*\n?.*cat"),
    ):
        list(loader)


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Length": "10"},  # and more of them
        {"Content-Range": "bytes 0-9/999999"},
        {"Content-Range": "bytes 100-199/200"},
    ],
)
def test_a_length_that_contradicts_the_range_is_an_error(
    server: ObjectServer, tar: Path, headers: dict[str, str]
) -> None:
    server.objects["/train.tar"] = tar.read_bytes()
    source = hr.open(f"{server.url}/train.tar")
    server.fault = lambda request: Fault(headers=headers)
    with pytest.raises(hr.Error, match="HR0223"):
        source[20]


def test_a_host_name_that_does_not_resolve_is_reported(tar: Path) -> None:
    hr.remote.configure(retries=2)
    with pytest.raises(hr.StorageError, match=r"HR0221.*(resolve|host).*after 3 attempts"):
        hr.open("http://no-such-host.invalid/train.tar")


def test_a_server_that_vanishes_in_mid_run_ends_the_run(tar: Path) -> None:
    hr.remote.configure(retries=3)
    with ObjectServer() as running:
        running.objects["/train.tar"] = tar.read_bytes()
        source = hr.open(f"{running.url}/train.tar")
    with pytest.raises(hr.StorageError, match=r"HR0221.*after 4 attempts"):
        source[20]


# Listings.


@pytest.fixture
def deep(bucket: ObjectServer, pictures: Path) -> Iterator[ObjectServer]:
    """200 class folders, and some of them deep."""
    content = next(pictures.rglob("*.png")).read_bytes()
    for number in range(200):
        bucket.objects[f"/photos/deep/{number:03}/a.png"] = content
    for number in range(40):
        bucket.objects[f"/photos/deep/{number:03}/x-y/{number}.png"] = content
        bucket.objects[f"/photos/deep/{number:03}/x/{number}/b.png"] = content
    yield bucket


def lists(server: ObjectServer) -> list[Request]:
    return [request for request in server.requests if "list-type" in request.query]


@pytest.mark.parametrize(("page", "most_listings"), [(50, 207), (1000, 5)])
def test_many_folders_are_listed_at_once(
    deep: ObjectServer, tmp_path: Path, page: int, most_listings: int
) -> None:
    deep.page = page
    together = threading.Barrier(4)
    left = 4 if page == 50 else 0  # fewer requests list it otherwise
    lock = threading.Lock()

    def hold(request: Request) -> Fault | None:
        """Parts of the listing are sent once four of them are under way."""
        nonlocal left
        with lock:
            held = left > 0 and "start-after" in request.query
            left -= held
        if held:
            together.wait(PATIENCE)
        return None

    deep.fault = hold
    source = hr.open("s3://photos/deep")
    assert len(source) == 280 and len(source.classes) == 200
    requests = lists(deep)
    assert len(requests) <= most_listings, "folders below others are listed with them"
    assert left == 0 and not together.broken
    pages = [tuple(sorted(request.query.items())) for request in requests]
    assert len(set(pages)) == len(pages), "no page is fetched twice"
    for path, content in deep.objects.items():
        file = tmp_path / path.removeprefix("/photos/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    near = hr.open(str(tmp_path / "deep"))
    order = [near.key(i).removeprefix(str(tmp_path / "deep")) for i in range(len(near))]
    assert [source.key(i).removeprefix("s3://photos/deep") for i in range(len(source))] == order


def test_pages_of_a_folder_are_fetched_once(bucket: ObjectServer, pictures: Path) -> None:
    bucket.page = 5
    for file in pictures.rglob("*.png"):
        bucket.objects[f"/photos/flat/{file.name}"] = file.read_bytes()
    assert len(hr.open("s3://photos/flat")) == 23
    asked = [request.query for request in lists(bucket) if request.query["prefix"] == "flat/"]
    pages = [query.get("continuation-token") for query in asked]
    assert len(pages) == 5 and len(set(pages)) == 5, pages


@pytest.mark.parametrize("tokens", [1, 2])
@pytest.mark.parametrize("pages_of", ["files", "folders", "files of folders"])
def test_a_listing_whose_tokens_come_again_is_an_error(
    cloud: tuple[ObjectServer, str, str],
    monkeypatch: pytest.MonkeyPatch,
    pages_of: str,
    tokens: int,
) -> None:
    """The pages A, A, ... or A, B, A, ..."""
    server, under, path = cloud
    folders = [""] if pages_of == "files" else [f"/{number:02}" for number in range(20)]
    for folder in folders:
        for number in range(1 if pages_of == "folders" else 70):
            server.objects[f"{under}{folder}/{number:03}.png"] = b"not read"
    server.page = 6 if pages_of == "folders" else 30
    entries = server.entries

    def circular(prefix: str, delimiter: str, after: str) -> list[tuple[str, bytes | None]]:
        whole = entries(prefix, delimiter, "")
        last = server.page * tokens - 1
        repeats = last < len(whole) - 1 and after == whole[last][0]
        return whole if repeats else entries(prefix, delimiter, after)

    monkeypatch.setattr(server, "entries", circular)
    server.fault = lambda request: Fault(status=410) if request.number > 500 else None
    with pytest.raises(hr.StorageError, match=r"HR0221.*the listing repeats itself"):
        hr.open(path)
    assert len(server.requests) < 200


@pytest.mark.parametrize("flat", [False, True])
def test_hostile_names_are_records_under_their_names(
    bucket: ObjectServer, pictures: Path, flat: bool
) -> None:
    content = next(pictures.rglob("*.png")).read_bytes()
    names = [
        *(
            "a b+c=d&e",
            "%41",
            "100%",
            "<x>'\"\\",
            "~!$(),;@:",
            "é\u202e\ufeff",
            "a?b#c",
            "-",
        ),
        *("\t", "\x7f", "{0..9}", "*", "[a]", "a\nb", "very" * 50),
    ]
    folders = [f"{number}{name}" for number, name in enumerate(names)] if not flat else ["all"]
    for folder in folders:
        for name in names:
            bucket.objects[f"/photos/odd/{folder}/{name}.png"] = content
    source = hr.open("s3://photos/odd")
    assert len(source) == len(folders) * len(names)
    read = [source[i]["image"] for i in range(len(source))]
    assert all(image is not None for image in read)
    asked = {request.path for request in bucket.requests if request.path.endswith(".png")}
    assert asked == set(bucket.objects)


# An index next to the data.


@pytest.fixture
def shards(bucket: ObjectServer, tar: Path) -> ObjectServer:
    for number in range(5):
        bucket.objects[f"/photos/train/part-{number}.tar"] = tar.read_bytes()
    return bucket


def opened_elsewhere(
    server: ObjectServer, path: str, monkeypatch: pytest.MonkeyPatch, cache: Path
) -> tuple[int, list[Request]]:
    """The records, and the requests of a machine with an empty cache."""
    monkeypatch.setenv("HEADRACE_CACHE", str(cache))
    before = hr.remote.configure(retries=5)  # clears what is known about objects
    hr.remote.configure(**before)
    begun = len(server.requests)
    return len(hr.open(path)), server.requests[begun:]


def test_an_index_next_to_the_data_is_used_by_other_machines(
    shards: ObjectServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    records, asked = opened_elsewhere(shards, "s3://photos/train", monkeypatch, tmp_path / "a")
    assert records == 115
    without = len(asked)
    stored = hr.index("s3://photos/train", next_to_data=True)["files"]
    assert [file["is_new"] for file in stored] == [True]
    (path,) = {path for path in shards.objects if "/.headrace/" in path}
    assert stored[0]["path"] == "s3:/" + path and stored[0]["bytes"] == len(shards.objects[path])
    records, asked = opened_elsewhere(shards, "s3://photos/train", monkeypatch, tmp_path / "b")
    assert records == 115
    assert len(asked) < without
    shard_reads = [request for request in asked if request.path.endswith(".tar")]
    assert {request.headers.get("range") for request in shard_reads} <= {"bytes=0-4095"}
    assert path in {request.path for request in asked}
    assert not hr.index("s3://photos/train", next_to_data=True)["files"][0]["is_new"]
    # Another version of a shard has another index.
    shards.objects["/photos/train/part-3.tar"] = tar_of(2)
    records, asked = opened_elsewhere(shards, "s3://photos/train", monkeypatch, tmp_path / "c")
    assert records == 4 * 23 + 2
    assert hr.index("s3://photos/train", next_to_data=True)["files"][0]["is_new"]


def tar_of(count: int) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for number in range(count):
            info = tarfile.TarInfo(f"{number}.cls")
            info.size = 1
            tar.addfile(info, io.BytesIO(b"1"))
    return out.getvalue()


def test_a_damaged_index_next_to_the_data_is_not_used(
    shards: ObjectServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    hr.index("s3://photos/train", next_to_data=True)
    (path,) = {path for path in shards.objects if "/.headrace/" in path}
    whole = shards.objects[path]
    for number, damaged in enumerate(
        (b"", whole[: len(whole) // 2], whole[:-1] + b"\1", b"x" * 99)
    ):
        shards.objects[path] = damaged
        records, _ = opened_elsewhere(
            shards, "s3://photos/train", monkeypatch, tmp_path / str(number)
        )
        assert records == 115


def test_an_upload_that_is_interrupted_leaves_nothing(
    shards: ObjectServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    hr.remote.configure(retries=2)
    shards.fault = lambda request: (
        Fault(status=500, loses=True) if request.method == "PUT" else None
    )
    with pytest.raises(hr.StorageError, match=r"HR0221.*500"):
        hr.index("s3://photos/train", next_to_data=True)
    assert not [path for path in shards.objects if ".headrace" in path]
    # The answer is lost, the object is not: the second try finds it.
    shards.fault = lambda request: (
        Fault(closes=0) if request.method == "PUT" and len(puts(shards)) == 4 else None
    )
    assert hr.index("s3://photos/train", next_to_data=True)["files"]
    records, _ = opened_elsewhere(shards, "s3://photos/train", monkeypatch, tmp_path / "other")
    assert records == 115


def puts(server: ObjectServer) -> list[Request]:
    return [request for request in server.requests if request.method == "PUT"]


def test_an_index_of_read_only_storage_is_written_to_a_folder(
    server: ObjectServer, tar: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for number in range(3):
        server.objects[f"/data/part-{number}.tar"] = tar.read_bytes()
    pattern = f"{server.url}/data/part-{{0..2}}.tar"
    with pytest.raises(hr.Error, match="HR0229"):
        hr.index(pattern, next_to_data=True)
    (written,) = hr.index(pattern, next_to_data=tmp_path / "index")["files"]
    (file,) = (tmp_path / "index").iterdir()
    server.objects[written["path"].removeprefix(server.url)] = file.read_bytes()
    records, asked = opened_elsewhere(server, pattern, monkeypatch, tmp_path / "other")
    assert records == 69
    assert any(file.name in request.path for request in asked)


def test_formats_without_an_index_file_are_refused(pictures: Path, bucket: ObjectServer) -> None:
    put_folder(bucket, pictures, "/photos/train")
    for source in (str(pictures), "s3://photos/train"):
        with pytest.raises(hr.ConfigError, match="HR0230"):
            hr.index(source, next_to_data=True)
    assert Keys.key and not puts(bucket)
