# SPDX-License-Identifier: Apache-2.0
"""Promise: opening a remote dataset takes few sequential round trips: requests that do not depend
on an answer are sent together, none is sent twice, and the batches are the same as from the disk.

No time is measured: the server holds requests that must be concurrent until all have arrived.
"""

from __future__ import annotations

import io
import tarfile
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from servers.object_server import Fault, ObjectServer, Request
from test_remote import bucket, quick, server
from timing import PATIENCE

import headrace as hr

__all__ = ["bucket", "quick", "server"]

RECORDS, BYTES = 60, 30_000


class Together:
    """Holds the first `count` requests of a kind until the last of them has arrived."""

    def __init__(self, count: int, which: Callable[[Request], bool]) -> None:
        self.which, self.left = which, count
        self.barrier = threading.Barrier(count)
        self.lock = threading.Lock()

    def __call__(self, request: Request) -> Fault | None:
        with self.lock:
            held = self.left > 0 and self.which(request)
            self.left -= held
        if held:
            self.barrier.wait(PATIENCE)
        return None

    @property
    def came(self) -> bool:
        return self.left == 0 and not self.barrier.broken


@pytest.fixture(autouse=True)
def patient(quick: None) -> None:
    """No request is given up while the server holds it."""
    hr.remote.configure(stall_seconds=2 * PATIENCE)


@pytest.fixture(scope="module")
def packs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """1.8 MB of bytes: one.hrpack, and the folder shards/ of four."""
    folder = tmp_path_factory.mktemp("packs")
    random = np.random.default_rng(1)
    with tarfile.open(folder / "all.tar", "w", format=tarfile.USTAR_FORMAT) as tar:
        for number in range(RECORDS):
            member = tarfile.TarInfo(f"{number:06}.bin")
            member.size = BYTES
            tar.addfile(member, io.BytesIO(random.bytes(BYTES)))
    source = hr.open(str(folder / "all.tar"))
    hr.pack(source, str(folder / "one.hrpack"))
    hr.pack(source, str(folder / "shards"), shards=4)
    return folder


def batches_of(path: str | Path) -> list[bytes]:
    with hr.Loader(str(path), batch_size=4, shuffle=True, seed=5) as loader:
        return [bytes(record) for batch in loader for record in batch["bin"]]


def put(server: ObjectServer, folder: Path, under: str) -> None:
    for file in folder.rglob("*.hrpack"):
        server.objects[f"{under}/{file.relative_to(folder)}"] = file.read_bytes()


def test_both_ends_of_a_pack_are_read_in_one_round_trip(server: ObjectServer, packs: Path) -> None:
    put(server, packs, "")
    server.fault = ends = Together(2, lambda request: True)
    path = f"{server.url}/one.hrpack"
    assert len(hr.open(path)) == RECORDS and ends.came
    ranges = [request.headers["range"] for request in server.requests]
    assert sorted(ranges) == ["bytes=-262144", "bytes=0-65535"], "and no other request"
    server.fault = lambda request: None
    assert batches_of(path) == batches_of(packs / "one.hrpack")


def test_shards_in_a_list_are_opened_concurrently(server: ObjectServer, packs: Path) -> None:
    content = (packs / "all.tar").read_bytes()
    paths = [f"{server.url}/{i}.tar" for i in range(12)]
    server.objects.update({f"/{i}.tar": content for i in range(12)})
    server.fault = looks = Together(12, lambda request: request.path in server.objects)
    assert len(hr.open(paths, format="webdataset")) == 12 * RECORDS and looks.came


def test_the_records_of_the_first_batch_are_requested_together(
    server: ObjectServer, packs: Path
) -> None:
    put(server, packs, "")
    source = hr.open(f"{server.url}/one.hrpack")
    opened = len(server.requests)
    server.fault = batch = Together(4, lambda request: request.number >= opened)
    with hr.Loader(source, batch_size=8, shuffle=True, seed=5, threads=1) as loader:
        first = next(iter(loader))
    assert batch.came and len(first["bin"]) == 8


@pytest.mark.parametrize(
    "fault",
    [
        Fault(status=403),
        Fault(status=404),
        Fault(status=416),
        Fault(whole=True),
        Fault(cut=1000),
        Fault(headers={"Content-Range": f"bytes 0-262143/{1 << 24}"}),
    ],
)
def test_a_missing_suffix_range_is_requested_by_offset(
    server: ObjectServer, packs: Path, fault: Fault
) -> None:
    put(server, packs, "")
    from_end: list[Request] = []

    def answer(request: Request) -> Fault | None:
        if not request.headers["range"].startswith("bytes=-"):
            return None
        from_end.append(request)
        return fault

    server.fault = answer
    assert len(hr.open(f"{server.url}/one.hrpack")) == RECORDS
    assert from_end


@pytest.mark.parametrize("status", [500, 503])
def test_a_refused_suffix_range_is_not_requested_again(
    server: ObjectServer, packs: Path, status: int
) -> None:
    put(server, packs, "")
    refused: list[Request] = []

    def answer(request: Request) -> Fault | None:
        if not request.headers["range"].startswith("bytes=-"):
            return None
        refused.append(request)
        return Fault(status=status)

    server.fault = answer
    assert len(hr.open(f"{server.url}/one.hrpack")) == RECORDS
    assert len(refused) == 1


def test_the_end_of_another_version_is_not_used(server: ObjectServer, packs: Path) -> None:
    content = (packs / "one.hrpack").read_bytes()
    server.objects["/one.hrpack"] = content
    head = threading.Event()

    def replaced(request: Request) -> Fault | None:
        if request.headers["range"].startswith("bytes=-"):
            head.wait(PATIENCE)
            return Fault(headers={"ETag": '"another"'})
        head.set()
        return None

    server.fault = replaced
    source = hr.open(f"{server.url}/one.hrpack")
    assert len(source) == RECORDS
    assert any(request.headers.get("if-match") for request in server.requests)


def test_the_shards_of_a_pack_are_opened_together(bucket: ObjectServer, packs: Path) -> None:
    put(bucket, packs, "/photos")
    bucket.fault = together = Together(
        6, lambda request: request.path[-12:] in {f"{i:05}.hrpack" for i in (1, 2, 3)}
    )
    assert len(hr.open("s3://photos/shards")) == RECORDS and together.came
    bucket.fault = lambda request: None
    assert batches_of("s3://photos/shards") == batches_of(packs / "shards")


def test_a_small_shard_is_read_with_one_request(bucket: ObjectServer, tmp_path: Path) -> None:
    hr.pack(hr.records(number=np.arange(40)), str(tmp_path / "shards"), shards=4)
    put(bucket, tmp_path, "/photos")
    assert hr.open("s3://photos/shards").column("number").tolist() == list(range(40))
    for number in range(1, 4):
        ranges = [
            request.headers["range"]
            for request in bucket.requests
            if request.path.endswith(f"{number:05}.hrpack")
        ]
        size = (tmp_path / f"shards/shard-{number:05}.hrpack").stat().st_size
        assert ranges == [f"bytes=0-{size - 1}"]


def test_a_missing_shard_of_a_remote_pack_is_named(bucket: ObjectServer, packs: Path) -> None:
    put(bucket, packs, "/photos")
    del bucket.objects["/photos/shards/shard-00002.hrpack"]
    with pytest.raises(hr.DataError, match=r"HR0445.*shard 2"):
        hr.open("s3://photos/shards")
    source = hr.open("s3://photos/shards", recover=True)
    assert len(source) == len(hr.open(str(packs / "shards"))) // 2


def span_of(request: Request) -> tuple[int, int]:
    first, _, last = request.headers.get("range", "bytes=0-").removeprefix("bytes=").partition("-")
    return int(first), int(last or -1) + 1


def test_tokens_are_fingerprinted_in_one_round_trip(server: ObjectServer) -> None:
    for shard in range(3):
        tokens = np.random.default_rng(shard).integers(0, 50_000, 500_000).astype(np.uint16)
        server.objects[f"/t-{shard}.bin"] = tokens.tobytes()

    def is_block(request: Request) -> bool:
        begin, end = span_of(request)
        return request.path.endswith(".bin") and begin > 0 and end - begin == 4096

    server.fault = blocks = Together(3 * 15, is_block)  # the first one of each is cached
    source = hr.tokens(f"{server.url}/t-{{0..2}}.bin", window=1000)
    assert len(source) == 3 * 499 and blocks.came
    begins = [span_of(request) for request in server.seen("/t-0.bin") if not is_block(request)]
    assert begins == [(0, 4096), (0, 1 << 14)], "its begin is read once after the look"
