# SPDX-License-Identifier: Apache-2.0
"""Promise: the ranks of a machine share one ``cache=``. Batches are the same as without it,
whatever happens to a rank, and nothing remains of it when all ranks have exited."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from headrace.drawing.png import png_from_pixels
from timing import PATIENCE, wait_until

import headrace as hr
from headrace import transforms as T

RECORDS, EPOCHS = 96, 3
CACHE = "4 MiB"  # the images have 1 MB
MEMORY = "/memfd:headrace-records-"

multiprocessing.set_forkserver_preload(["headrace.transforms"])  # forks start in no time


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Images of noise, which is incompressible: 10.9 kB each."""
    rng = np.random.default_rng(1)
    for i in range(RECORDS):
        pixels = rng.integers(0, 256, (3, 60, 60), np.uint8)
        (tmp_path / f"{i:03}.png").write_bytes(png_from_pixels(pixels))
    return tmp_path


def loader_of(folder: Path, **given: Any) -> hr.Loader:
    options = {"global_batch_size": 16, "shuffle": True, "seed": 3, "threads": 2}
    steps = [T.RandomCrop(48), T.RandomHorizontalFlip()]
    return hr.Loader(folder, steps, **{**options, "memory_limit": "128 MiB", **given})


def digest_of(batch: Any) -> str:
    return hashlib.blake2b(batch.image.tobytes(), digest_size=8).hexdigest()


def expected(folder: Path, rank: int, ranks: int) -> list[list[str]]:
    """The batches of this rank in each epoch, without a cache."""
    with loader_of(folder, shard=(rank, ranks)) as plain:
        return [[digest_of(batch) for batch in plain] for _ in range(EPOCHS)]


def run_rank(folder: Path, rank: int, ranks: int, pipe: Connection, given: dict[str, Any]) -> None:
    """A process that executes requests: "batch", "epoch", "stats", or None to end."""
    names = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": ranks, "LOCAL_WORLD_SIZE": ranks}
    os.environ.update({name: str(value) for name, value in names.items()})
    loader = loader_of(folder, **{"cache": CACHE, **given})
    running = iter(loader)
    while (asked := pipe.recv()) is not None:
        if asked == "batch":
            pipe.send(digest_of(next(running)))
        elif asked == "epoch":
            pipe.send([digest_of(batch) for batch in running])
            running = iter(loader)
        else:
            pipe.send((dict(loader.stats()["cache"]), repr(loader), "torch" in sys.modules))


class Job:
    """Processes that are the ranks of one job."""

    def __init__(self, folder: Path, ranks: int, method: str, given: dict[str, Any]) -> None:
        context: Any = multiprocessing.get_context(method)
        self.pipes, self.processes = [], []
        for rank in range(ranks):
            ours, its = context.Pipe()
            self.pipes.append(ours)
            process = context.Process(target=run_rank, args=(folder, rank, ranks, its, given))
            process.start()
            its.close()
            self.processes.append(process)

    def ask(self, what: Any, *ranks: int) -> list[Any]:
        """The answers of these ranks, which work at the same time; of all where none is given."""
        asked = ranks or range(len(self.pipes))
        for rank in asked:
            self.pipes[rank].send(what)
        return [self.pipes[rank].recv() for rank in asked]

    def cache(self) -> list[dict[str, int]]:
        return [cache for cache, _, _ in self.ask("stats")]

    def kill(self, *ranks: int) -> None:
        for rank in ranks:
            os.kill(self.processes[rank].pid or 0, signal.SIGKILL)
            self.processes[rank].join()


@contextmanager
def job(folder: Path, ranks: int, method: str = "forkserver", **given: Any) -> Iterator[Job]:
    running = Job(folder, ranks, method, given)
    try:
        yield running
        for pipe, process in zip(running.pipes, running.processes, strict=True):
            if process.is_alive():
                pipe.send(None)
                process.join(PATIENCE)
                assert process.exitcode == 0
    finally:
        for process in running.processes:
            process.kill()
            process.join()


def proportional_bytes(pid: int) -> int:
    """This process's part of the cache's memory, where pages of n processes count as an nth."""
    total, counted = 0, False
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        head, _, rest = line.partition(" ")
        if "-" in head:
            counted = MEMORY in line
        elif head == "Pss:" and counted:
            total += int(rest.split()[0]) * 1024
    return total


def memory_of(process: int | str) -> set[str]:
    """The names of the caches that a process has."""
    try:
        lines = Path(f"/proc/{process}/maps").read_text().splitlines()
    except OSError:
        return set()  # it has ended, or is another user's
    return {line[line.index(MEMORY) :] for line in lines if MEMORY in line}


def memory_of_all() -> set[str]:
    return set().union(*map(memory_of, filter(str.isdigit, os.listdir("/proc"))))


@pytest.mark.parametrize(
    ("ranks", "method"), [(2, "forkserver"), (4, "forkserver"), (8, "forkserver"), (2, "spawn")]
)
def test_ranks_hold_the_records_once_and_read_each_once(
    folder: Path, ranks: int, method: str
) -> None:
    with job(folder, ranks, method) as running:
        for epoch in range(EPOCHS):
            seen = running.ask("epoch")
            assert seen == [expected(folder, rank, ranks)[epoch] for rank in range(ranks)]
        caches = running.cache()
        assert {cache["records"] for cache in caches} == {RECORDS}
        assert {cache["limit"] for cache in caches} == {4 << 20}
        (held,) = {cache["bytes"] for cache in caches}
        assert RECORDS * 60 * 60 * 3 < held < 1.1 * RECORDS * 60 * 60 * 3
        # Of an epoch's records a rank has read 1/ranks itself, and read-ahead counts the next one.
        assert sum(cache["misses"] for cache in caches) <= 2 * RECORDS
        assert sum(cache["shared_hits"] for cache in caches) > RECORDS / 2

        def is_held_once() -> bool:
            """While no rank maps further pages, as the threads that read ahead do."""
            pss = sum(proportional_bytes(process.pid or 0) for process in running.processes)
            return 0.8 * held < pss < 1.05 * held

        wait_until(is_held_once, "the ranks hold the cache several times, or not")
        (name,) = set().union(*(memory_of(process.pid or 0) for process in running.processes))
        for _, text, has_torch in running.ask("stats"):
            assert "4 MiB, shared by the processes of this machine" in text
            assert not has_torch
    assert name not in memory_of_all()


def test_a_rank_killed_while_filling_the_cache_harms_no_other_rank(folder: Path) -> None:
    wanted = [expected(folder, rank, 4) for rank in range(4)]
    with job(folder, 4) as running:
        assert running.ask("batch") == [each[0][0] for each in wanted]
        running.kill(3)  # its threads read ahead
        rest = running.ask("epoch", 0, 1, 2)
        assert rest == [each[0][1:] for each in wanted[:3]]
        for epoch in range(1, EPOCHS):
            assert running.ask("epoch", 0, 1, 2) == [each[epoch] for each in wanted[:3]]
        with job(folder, 4) as again:  # another job, or the same one restarted
            for epoch in range(EPOCHS):
                assert again.ask("epoch") == [each[epoch] for each in wanted]
            assert again.cache()[3]["shared_hits"] > 0


def test_nothing_remains_after_all_ranks_are_killed(folder: Path) -> None:
    before = set(os.listdir("/dev/shm"))
    with job(folder, 2) as running:
        running.ask("epoch")
        (name,) = memory_of(running.processes[0].pid or 0)
        running.kill(0)
        assert memory_of(running.processes[1].pid or 0) == {name}
        running.kill(1)
        assert name not in memory_of_all()
    assert not [name for name in set(os.listdir("/dev/shm")) - before if "headrace" in name]
    with job(folder, 2) as running:
        assert running.ask("epoch") == [expected(folder, rank, 2)[0] for rank in range(2)]
        assert sum(cache["misses"] for cache in running.cache()) >= RECORDS


def test_two_jobs_with_equal_options_share_one_cache(folder: Path) -> None:
    with job(folder, 2) as first:
        for _epoch in range(2):
            first.ask("epoch")
        with job(folder, 4) as second, job(folder, 2, cache="5 MiB") as larger:
            assert second.ask("epoch") == [expected(folder, rank, 4)[0] for rank in range(4)]
            assert [cache["misses"] for cache in second.cache()] == [0] * 4
            larger.ask("epoch")
            assert sum(cache["misses"] for cache in larger.cache()) >= RECORDS


def test_a_rewritten_file_is_not_read_from_another_ranks_cache(folder: Path) -> None:
    with job(folder, 2) as first:
        first.ask("epoch")
        for path in folder.iterdir():
            path.write_bytes(png_from_pixels(np.zeros((3, 60, 60), np.uint8)))
        zeros = digest_of(next(iter(loader_of(folder, shard=(0, 2)))))
        with job(folder, 2) as second:
            assert set(second.ask("epoch")[0]) == {zeros}


def test_ranks_that_cannot_share_get_an_equal_part_of_the_bytes(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Mine:
        def __len__(self) -> int:
            return 20

        def __getitem__(self, i: int) -> dict[str, Any]:
            return {"image": (folder / f"{i:03}.png").read_bytes()}

    def made(source: Any, **given: Any) -> hr.Loader:
        return loader_of(source, global_batch_size=8, shard=False, **given)

    assert "4 MiB, of this process\n" in repr(made(folder, cache=CACHE))
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    text = repr(made(Mine(), cache=CACHE))
    assert "1 MiB, of this process alone: other processes cannot recognize this source" in text
    with pytest.raises(hr.ConfigError, match="cannot recognize this source") as raised:
        made(Mine(), cache=CACHE, cache_scope="node")
    assert raised.value.code == "HR0299"
    loader = made(folder, cache=CACHE)
    list(loader)
    assert loader.stats()["cache"]["limit"] == 4 << 20
    own = made(folder, cache=CACHE, cache_scope="process")
    assert own.stats()["cache"]["records"] == 0 and "MiB, of this process\n" in repr(own)
    with pytest.raises(hr.ConfigError, match="cache of 256 MiB per rank leaves no memory of 128"):
        made(folder, cache="1 GiB")
    with pytest.raises(hr.ConfigError, match="cache_scope must be"):
        made(folder, cache=CACHE, cache_scope="machine")
