# SPDX-License-Identifier: Apache-2.0
"""Promise: with shuffle="streams" the processes of a run together read each byte of the dataset
about once per epoch, and each record exactly once, for any number of processes; and no process
reads a byte twice."""

from __future__ import annotations

import io
import itertools
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from servers.object_server import ObjectServer

import headrace as hr

SHARDS, EACH, EPOCHS = 64, 8, 4
PROGRAM = """
import json, sys
import headrace as hr
from headrace import transforms as T

path, rank, world, epochs = sys.argv[1], *map(int, sys.argv[2:])
hr.remote.configure(hedge=False, stall_seconds=120, least_rate=0)  # no request is sent again
loader = hr.Loader(
    path, [T.CenterCrop(8)], batch_size=16, threads=1, seed=3,
    shuffle="streams", shard=(rank, world), last_batch="keep",
)
labels = [
    [int(label) for batch in loader for label in batch["label"]] for _ in range(epochs)
]
loader.close()
print(json.dumps(labels))
"""


@pytest.fixture(scope="module")
def shards(pictures: Path) -> dict[str, bytes]:
    """Shards whose records have their number as the label."""
    photos = [file.read_bytes() for file in sorted(pictures.rglob("*.png"))]
    out = {}
    for shard in range(SHARDS):
        file = io.BytesIO()
        with tarfile.open(fileobj=file, mode="w", format=tarfile.USTAR_FORMAT) as tar:
            for number in range(shard * EACH, (shard + 1) * EACH):
                photo = photos[number % len(photos)]
                for name, data in (
                    (f"{number:04}.png", photo),
                    (f"{number:04}.cls", b"%d" % number),
                ):
                    member = tarfile.TarInfo(name)
                    member.size = len(data)
                    tar.addfile(member, io.BytesIO(data))
        out[f"/train-{shard:02}.tar"] = file.getvalue()
    return out


# If the number of streams, 64, is not a multiple of the processes, two of them read a stream at a
# border.
@pytest.mark.parametrize(("world", "most"), [(2, 1.02), (3, 1 + 3 / 64), (4, 1.02)])
def test_processes_read_each_byte_about_once(
    world: int,
    most: float,
    shards: dict[str, bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path))
    with ObjectServer() as server:
        paths = []
        for rank in range(world):  # each uses its own names, so that the server knows the client
            server.objects.update({f"/{rank}{name}": data for name, data in shards.items()})
            paths.append(f"{server.url}/{rank}/train-{{00..{SHARDS - 1:02}}}.tar")
            assert len(hr.open(paths[-1])) == SHARDS * EACH  # the index, which is cached
        opened = len(server.requests)
        ranks = [
            subprocess.Popen(
                [sys.executable, "-c", PROGRAM, path, str(rank), str(world), str(EPOCHS)],
                stdout=subprocess.PIPE,
                env=dict(os.environ),
            )
            for rank, path in enumerate(paths)
        ]
        labels = [json.loads(each.communicate()[0]) for each in ranks]
        asked = server.requests[opened:]
        total = sum(map(len, shards.values()))
    for epoch in zip(*labels, strict=True):
        assert sorted(itertools.chain(*epoch)) == list(range(SHARDS * EACH))
    # Which bytes went to which rank: the same ones in all epochs.
    went = {path: bytearray(len(data)) for path, data in server.objects.items()}
    sent = 0  # in all epochs, including what is read ahead of the one after them
    for request in asked:
        if request.path not in went or request.headers["range"] == "bytes=0-4095":
            continue  # requests when opening: whether the pattern is a file, the version of a shard
        first, last = map(int, request.headers["range"].removeprefix("bytes=").split("-"))
        went[request.path][first : last + 1] = b"\1" * (last + 1 - first)
        sent += last + 1 - first
    assert 0.8 * total <= sum(map(sum, went.values())) <= most * total
    assert sent <= (EPOCHS + 1) * most * total
