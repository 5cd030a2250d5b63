# SPDX-License-Identifier: Apache-2.0
"""Promise: an order that mixes blocks of neighboring records requests blocks from remote storage,
not records, and delivers the same batches; ``stats()["remote_reads"]`` counts the requests.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from servers.object_server import Fault, ObjectServer
from test_remote import quick
from timing import with_longer_limits

import headrace as hr

__all__ = ["quick"]

RECORDS, SHARDS, BYTES = 600, 4, 60_000
BLOCK = 8 << 20


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """36 MB in four tar shards, and the same as a pack."""
    folder = tmp_path_factory.mktemp("merged")
    random = np.random.default_rng(1)
    for shard in range(SHARDS):
        with tarfile.open(folder / f"train-{shard}.tar", "w", format=tarfile.USTAR_FORMAT) as tar:
            for number in range(shard * RECORDS // SHARDS, (shard + 1) * RECORDS // SHARDS):
                member = tarfile.TarInfo(f"{number:06}.bin")
                member.size = BYTES
                tar.addfile(member, io.BytesIO(random.bytes(BYTES)))
    hr.pack(hr.open(f"{folder}/train-{{0..3}}.tar"), str(folder / "train.hrpack"))
    return folder


@pytest.fixture
def server(data: Path) -> Iterator[ObjectServer]:
    with ObjectServer() as running:
        for file in data.iterdir():
            running.objects[f"/{file.name}"] = file.read_bytes()
        yield running


def epochs_of(path: str, shuffle: str, epochs: int) -> tuple[list[bytes], hr.Loader]:
    loader = hr.Loader(path, batch_size=20, shuffle=shuffle, shuffle_window=3, seed=5, threads=2)
    batches = []
    for _epoch in range(epochs):
        batches += [bytes(value) for batch in loader for value in batch.bin]
    return batches, loader


@pytest.mark.parametrize("shuffle", ["blocks", "streams"])
@pytest.mark.parametrize("name", ["train-{0..3}.tar", "train.hrpack"])
def test_an_epoch_makes_one_request_per_block(
    server: ObjectServer, data: Path, shuffle: str, name: str
) -> None:
    near, there = epochs_of(f"{data}/{name}", shuffle, 3)
    there.close()
    far, loader = epochs_of(f"{server.url}/{name}", shuffle, 3)
    counts = loader.stats()["remote_reads"]
    loader.close()
    assert far == near
    size = RECORDS * BYTES
    epochs = 3 + 1  # the next one is read ahead
    assert counts["requests"] <= epochs * RECORDS / 10
    assert counts["bytes"] <= (epochs + 0.5) * size
    sent = [request for request in server.requests if "range" in request.headers]
    assert len(sent) <= counts["requests"] + 60, "and those of opening"


def test_little_memory_means_more_requests_and_the_same_batches(
    server: ObjectServer, data: Path
) -> None:
    near, there = epochs_of(f"{data}/train.hrpack", "blocks", 1)
    there.close()
    loader = hr.Loader(
        f"{server.url}/train.hrpack",
        batch_size=20,
        shuffle="blocks",
        shuffle_window=3,
        seed=5,
        threads=2,
        memory_limit="48 MiB",
    )
    assert [bytes(value) for batch in loader for value in batch.bin] == near
    stats = loader.stats()
    loader.close()
    assert stats["memory_peak"] <= 48 << 20
    assert stats["remote_reads"]["requests"] > RECORDS * BYTES // BLOCK


def test_closing_a_loader_ends_its_requests(server: ObjectServer) -> None:
    hr.remote.configure(connections=4)
    source = hr.open(f"{server.url}/train.hrpack")

    def check(late: float) -> None:
        server.requests.clear()
        server.fault = lambda request: Fault(late=late)
        loader = hr.Loader(source, batch_size=20, shuffle=True, threads=2)
        next(iter(loader))
        loader.close()
        assert len(server.requests) < 60, "of 90, the others wait for a connection"
        time.sleep(4 * late)  # those that were under way end
        sent = len(server.requests)
        time.sleep(10 * late)
        assert len(server.requests) == sent

    with_longer_limits(check, (0.05, 0.3, 1, 3))


READS_AND_CLOSES = """
import sys
import time
import headrace as hr

def resident():
    with open("/proc/self/statm") as numbers:
        return int(numbers.read().split()[1]) * 4096

path, most = sys.argv[1], int(sys.argv[2])
hr.remote.configure(connections=8)  # whose buffers stay
for batch in hr.Loader(path, batch_size=20):  # what a process needs once
    break
before = resident()
loader = hr.Loader(path, batch_size=20, shuffle="blocks", shuffle_window=3, threads=2)
for epoch in range(2):
    for batch in loader:
        del batch
loader.close()
del loader
begin = time.monotonic()  # the requests in flight end on another thread
while resident() - before >= most and time.monotonic() < begin + 60:
    time.sleep(0.01)
print(resident() - before)
"""


def test_memory_for_reading_ahead_is_returned_to_the_system(server: ObjectServer) -> None:
    most = RECORDS * BYTES // 3
    command = [sys.executable, "-c", READS_AND_CLOSES, f"{server.url}/train.hrpack", str(most)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(done.stdout) < most
