# SPDX-License-Identifier: Apache-2.0
"""Ray: actors on a second node make rows of a loader, and are killed while they do."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import pickle
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

if importlib.util.find_spec("ray") is None:  # not imported: ray_cluster has the address
    pytest.skip("Ray is not installed", allow_module_level=True)
import ray_steps
from ray_cluster import makers, one_more_node

import headrace as hr
from headrace import transforms as T

pytest_plugins = ["ray_fixtures"]
FAR: dict[str, Any] = {"cpus_per_actor": 0, "resources": {"far": 1}, "offload": "always"}
KILLS = int(os.environ.get("KILLS_OF_ACTORS", "20"))  # 200 take some five minutes
STEPS = [T.RandomResizedCrop(160), T.RandomHorizontalFlip()]
GIVEN: dict[str, Any] = {
    "global_batch_size": 32,
    "shuffle": True,
    "seed": 3,
    "threads": 1,
    "on_error": "substitute",
    "error_budget": 1_000_000,
}

PATIENCE = 300  # seconds; only reached if something hangs


def hashes(loader: hr.Loader, epochs: int) -> Iterator[str]:
    for _ in range(epochs):
        for batch in loader:
            found = hashlib.blake2b(digest_size=8)
            for value in batch:
                found.update(np.ascontiguousarray(value))
            yield found.hexdigest()


def wait_for_actors(loader: hr.Loader, count: int) -> None:
    """Waits until this many are ready: before that the loader's threads make all rows."""
    end = time.monotonic() + PATIENCE
    while loader.stats().remote["actors"] < count:
        assert time.monotonic() < end, loader.stats().remote
        time.sleep(0.05)


def counted(loader: hr.Loader) -> dict[str, Any]:
    """The values that do not depend on who made the rows."""
    stats = loader.stats()
    return {name: stats[name] for name in ("records", "batches", "bad_records", "repaired")}


def test_actors_make_most_rows_and_batches_equal_those_of_one_process(
    cluster: Any, photos: Path
) -> None:
    steps, epochs = [*STEPS, ray_steps.slowly], 4
    with hr.Loader(photos, steps, **GIVEN) as alone:
        wanted = list(hashes(alone, 1 + epochs))
        bad, counts = alone.quarantine, counted(alone)
    share = 0.0
    for _ in range(4):  # other work on the machine may leave actors fewer rows
        with hr.Loader(photos, steps, **GIVEN, workers=hr.ray.pool(cpus=2, **FAR)) as loader:
            got = list(hashes(loader, 1))
            wait_for_actors(loader, 2)
            before = loader.stats().remote["rows"]
            got += hashes(loader, epochs)
            remote = loader.stats().remote
            assert got == wanted
            assert loader.quarantine == bad != [] and counted(loader) == counts
            assert remote["summary"] in repr(loader)
        wait_until_gone()
        share = (remote["rows"] - before) / (96 * epochs)
        if share > 0.5 and "remote workers save" in remote["summary"]:
            break
    assert share > 0.5 and "remote workers save" in remote["summary"], remote


def test_the_number_of_actors_follows_the_cluster(
    cluster: Any, photos: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`cpus="auto"`: the CPUs of the other machines, counted again while the loader runs."""
    monkeypatch.setattr("headrace.ray.actors._AGAIN", 0.2)
    steps = [*STEPS, ray_steps.slowly]
    with hr.Loader(photos, steps, **GIVEN) as alone:
        wanted = list(hashes(alone, 1))
    pool = hr.ray.pool(cpus="auto", resources={"far": 1}, offload="always")
    with hr.Loader(photos, steps, **GIVEN, workers=pool) as loader:

        def train_until(count: int) -> None:
            end = time.monotonic() + PATIENCE
            while loader.stats().remote["actors"] != count:
                assert time.monotonic() < end, loader.stats().remote
                loader.set_epoch(0)
                assert list(hashes(loader, 1)) == wanted

        train_until(1)
        with one_more_node(cluster, cpus=2, resources={"far": 10}):
            train_until(3)
        train_until(1)
    wait_until_gone()


def test_actors_leave_the_cpus_of_this_machine_to_the_trainer(
    cluster: Any, photos: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`cpus="auto"` without `resources`."""
    import ray
    from ray._private.state import available_resources_per_node

    def free() -> dict[str, float]:
        return {node: has.get("CPU", 0) for node, has in available_resources_per_node().items()}

    monkeypatch.setattr("headrace.ray.actors._AGAIN", 0.2)
    here = ray.get_runtime_context().get_node_id()
    with one_more_node(cluster, cpus=2, resources={}):
        pool = hr.ray.pool(cpus="auto", offload="always")
        with hr.Loader(photos, STEPS, **GIVEN, workers=pool) as loader:
            next(iter(loader))
            wait_for_actors(loader, 3)
            end = time.monotonic() + PATIENCE
            while sum(free().values()) != 1:  # known a moment later
                assert time.monotonic() < end, free()
                time.sleep(0.1)
            assert free()[here] == 1
        wait_until_gone()


class Trainer(threading.Thread):
    """One rank: repeats the same epochs until it is stopped, and reports the batches."""

    def __init__(self, photos: Path, rank: int, epochs: int, go_on: Callable[[], bool]) -> None:
        super().__init__()
        self.steps, self.epochs, self.go_on = [*STEPS, ray_steps.slowly], epochs, go_on
        self.photos, self.given = photos, {**GIVEN, "shard": (rank, 2)}
        with hr.Loader(photos, self.steps, **self.given) as alone:
            self.wanted = list(hashes(alone, epochs))
            self.bad, self.wanted_counts = alone.quarantine, counted(alone)
        self.begun = threading.Event()
        self.waits: list[float] = []
        self.rounds = self.wrong = 0

    def run(self) -> None:
        pool = hr.ray.pool(cpus=2, **FAR)
        with hr.Loader(self.photos, self.steps, **self.given, workers=pool) as loader:
            begin = time.perf_counter()
            while self.rounds == 0 or self.go_on():
                got = []
                for found in hashes(loader, self.epochs):
                    if self.begun.is_set():
                        self.waits.append(time.perf_counter() - begin)
                    got.append(found)
                    time.sleep(0.05)  # a training step
                    begin = time.perf_counter()
                self.wrong += sum(a != b for a, b in zip(got, self.wanted, strict=True))
                self.rounds += 1
                if not self.begun.is_set():
                    wait_for_actors(loader, 1)
                    self.begun.set()
                loader.set_epoch(0)
            self.quarantine, self.counts = loader.quarantine, counted(loader)
            self.remote = loader.stats().remote


def test_two_ranks_get_their_batches_while_actors_are_killed(cluster: Any, photos: Path) -> None:
    killed = threading.Event()
    trainers = [Trainer(photos, rank, 3, lambda: not killed.is_set()) for rank in range(2)]
    for trainer in trainers:
        trainer.start()
    try:
        assert all(trainer.begun.wait(2 * PATIENCE) for trainer in trainers)
        draws, done = random.Random(5), 0
        end = time.monotonic() + PATIENCE + 30 * KILLS
        while done < KILLS and time.monotonic() < end:
            time.sleep(draws.uniform(0.2, 1.2))
            if alive := makers():
                draws.choice(alive).kill()
                done += 1
    finally:
        killed.set()
        for trainer in trainers:
            trainer.join()
    assert done == KILLS
    for rank, trainer in enumerate(trainers):
        waits = np.array(trainer.waits)
        rows = trainer.counts["records"]
        print(
            f"rank {rank}: {done} kills, {trainer.rounds} rounds of {len(trainer.wanted)} batches, "
            f"{trainer.wrong} wrong, wait p50 {np.quantile(waits, 0.5):.3f} p99 "
            f"{np.quantile(waits, 0.99):.3f} max {waits.max():.3f} s, {trainer.remote['rows']} of "
            f"{rows} rows by actors, {trainer.remote}",
            file=sys.stderr,
        )
        assert trainer.wrong == 0
        assert trainer.quarantine == trainer.bad
        # Repeated epochs have the same bad records, which count once.
        rounds = {name: trainer.rounds * count for name, count in trainer.wanted_counts.items()}
        assert trainer.counts == {**rounds, "bad_records": len(trainer.bad)}
        assert trainer.remote["rows"] > 0 and trainer.remote["died"] > 0
    assert {Path(bad["file"]).stem for trainer in trainers for bad in trainer.bad} == {"07", "31"}
    wait_until_gone()


def wait_until_gone() -> None:
    end = time.monotonic() + PATIENCE
    while found := makers():
        assert time.monotonic() < end, f"outlived their loader: {found}"
        time.sleep(0.1)


def test_python_transforms_and_arrays_in_memory_are_sent_to_actors(cluster: Any) -> None:
    images = np.random.default_rng(2).integers(0, 255, (64, 3, 80, 80), np.uint8)  # over 1 MB
    source = hr.records(image=images, label=np.arange(64))
    given: dict[str, Any] = {"batch_size": 16, "threads": 1, "seed": 1}
    steps = [ray_steps.brighter]
    with hr.Loader(source, steps, **given) as alone:
        wanted = list(hashes(alone, 2))
    with hr.Loader(source, steps, **given, workers=hr.ray.pool(cpus=1, **FAR)) as loader:
        got = list(hashes(loader, 2))
        wait_for_actors(loader, 1)
        assert got == wanted
        end = time.monotonic() + PATIENCE
        while not loader.stats().remote["received"] and time.monotonic() < end:
            loader.set_epoch(0)
            assert list(hashes(loader, 2)) == wanted
        assert loader.stats().remote["received"] > 0


def test_a_pool_can_be_pickled_and_compared(cluster: Any) -> None:
    pool = hr.ray.pool(cpus=3, store="10 %")
    assert pickle.loads(pickle.dumps(pool)) == pool
    with pytest.raises(hr.ConfigError, match="store is a percentage"):
        hr.ray.pool(store="all")
    wait_until_gone()
