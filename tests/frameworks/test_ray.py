# SPDX-License-Identifier: Apache-2.0
"""Ray: actors on a second node make rows of a loader, and are killed meanwhile."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import random
import runpy
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

if importlib.util.find_spec("ray") is None:  # not imported: ray_cluster says where it listens
    pytest.skip("Ray is not installed", allow_module_level=True)
os.environ["PYTHONPATH"] = os.pathsep.join(
    [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
)
from ray_cluster import HERE, makers, two_nodes

import headrace as hr
from headrace import transforms as T

FAR: dict[str, Any] = {"cpus_per_actor": 0, "resources": {"far": 1}, "lend": "always"}


@pytest.fixture(scope="session")
def cluster() -> Iterator[Any]:
    with two_nodes() as nodes:
        yield nodes


@pytest.fixture(scope="session")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("photos")
    draws = np.random.default_rng(1)
    for number in range(96):
        path = folder / f"{number % 3}" / f"{number:02}.jpg"
        path.parent.mkdir(exist_ok=True)
        small = Image.fromarray(draws.integers(0, 255, (12, 16, 3), np.uint8))
        small.resize((400, 300), Image.Resampling.BICUBIC).save(path, quality=90)
        if number in (7, 31):
            path.write_bytes(path.read_bytes()[:2000])
    return folder


STEPS = [T.RandomResizedCrop(160), T.RandomHorizontalFlip()]
GIVEN: dict[str, Any] = {
    "global_batch_size": 32,
    "shuffle": True,
    "seed": 3,
    "threads": 1,
    "on_error": "substitute",
    "error_budget": 1000,
}


def brighter(image: Any, rng: Any) -> Any:
    """A Python transform, found by its module on the other node."""
    return image // 2 + np.uint8(rng.integers(0, 100))


def hashes(loader: hr.Loader, epochs: int) -> Iterator[str]:
    for _ in range(epochs):
        for batch in loader:
            found = hashlib.blake2b(digest_size=8)
            for value in batch:
                found.update(np.ascontiguousarray(value))
            yield found.hexdigest()


def wait_for_actors(loader: hr.Loader, count: int) -> None:
    """Until so many are ready: before that the loader's threads make all rows."""
    end = time.monotonic() + 110
    while loader.stats().remote["actors"] < count:
        assert time.monotonic() < end, loader.stats().remote
        time.sleep(0.05)


def test_two_ranks_get_their_batches_while_actors_are_killed(cluster: Any, photos: Path) -> None:
    kills, epochs = int(os.environ.get("KILLS_OF_ACTORS", "14")), 3
    wanted = {}
    for rank in range(2):
        with hr.Loader(photos, STEPS, **GIVEN, shard=(rank, 2)) as alone:
            wanted[rank] = list(hashes(alone, epochs)), alone.quarantine
    killed, ready = [0], threading.Barrier(3)
    reports: dict[int, dict[str, Any]] = {}

    def train(rank: int) -> None:
        pool = hr.ray.pool(cpus=2, **FAR)
        waits, rounds, wrong = [], 0, 0
        with hr.Loader(photos, STEPS, **GIVEN, shard=(rank, 2), workers=pool) as loader:
            next(iter(loader))
            wait_for_actors(loader, 1)
            ready.wait(120)
            while rounds == 0 or killed[0] < kills:
                loader.set_epoch(0)
                got = []
                begin = time.perf_counter()
                for found in hashes(loader, epochs):
                    waits.append(time.perf_counter() - begin)
                    got.append(found)
                    time.sleep(0.05)  # a training step
                    begin = time.perf_counter()
                wrong += got != wanted[rank][0]
                rounds += 1
            reports[rank] = {
                "rounds": rounds,
                "wrong": wrong,
                "waits": waits,
                "bad": loader.quarantine,
                "remote": loader.stats().remote,
            }

    trainers = [threading.Thread(target=train, args=(rank,)) for rank in range(2)]
    for trainer in trainers:
        trainer.start()
    draws, done = random.Random(5), 0
    ready.wait(120)
    end = time.monotonic() + 20 + 2 * kills
    while done < kills and time.monotonic() < end:
        time.sleep(draws.uniform(0.2, 1.2))
        alive = makers()
        if alive:
            draws.choice(alive).kill()
            done += 1
    killed[0] = kills
    for trainer in trainers:
        trainer.join()
    assert done > 0
    for rank, report in sorted(reports.items()):
        waits = np.array(report["waits"])
        print(
            f"rank {rank}: {done} kills, {report['rounds']} rounds of {len(wanted[rank][0])} "
            f"batches, {report['wrong']} wrong, wait p50 {np.quantile(waits, 0.5):.3f} p99 "
            f"{np.quantile(waits, 0.99):.3f} max {waits.max():.3f} s, {report['remote']}",
            file=sys.stderr,
        )
        assert report["wrong"] == 0
        assert report["bad"] == wanted[rank][1] != []
        assert report["remote"]["arrived"] > 0
    assert len(reports) == 2
    assert _gone(10)


def _gone(seconds: float) -> bool:
    """Whether no actor lives any more: none outlives its loader."""
    end = time.monotonic() + seconds
    while makers() and time.monotonic() < end:
        time.sleep(0.1)
    return not makers()


def test_steps_in_python_and_arrays_in_memory_cross(cluster: Any) -> None:
    images = np.random.default_rng(2).integers(0, 255, (64, 3, 80, 80), np.uint8)  # over 1 MB
    source = hr.records(image=images, label=np.arange(64))
    given: dict[str, Any] = {"batch_size": 16, "threads": 1, "seed": 1}
    with hr.Loader(source, [brighter], **given) as alone:
        wanted = list(hashes(alone, 2))
    with hr.Loader(source, [brighter], **given, workers=hr.ray.pool(cpus=1, **FAR)) as loader:
        got = list(hashes(loader, 2))
        wait_for_actors(loader, 1)
        assert got == wanted
        end = time.monotonic() + 30
        while not loader.stats().remote["arrived"] and time.monotonic() < end:
            loader.set_epoch(0)
            assert list(hashes(loader, 2)) == wanted
        assert loader.stats().remote["arrived"] > 0
        assert "making a row takes" in repr(loader) or "too few rows" in repr(loader)


def test_a_pool_is_data_and_needs_a_cluster(cluster: Any, photos: Path) -> None:
    import pickle

    pool = hr.ray.pool(cpus=3, store="10 %")
    assert pickle.loads(pickle.dumps(pool)) == pool
    with pytest.raises(hr.ConfigError, match="store is a percentage"):
        hr.ray.pool(store="all")
    assert _gone(10)


def test_elastic_training_commits_each_record_once_an_epoch(cluster: Any, tmp_path: Path) -> None:
    """Ray Train on two workers; one is killed, and three go on, which do not divide the batch."""
    import ray.train
    import ray_elastic
    from ray.train.torch import TorchTrainer

    trainer = TorchTrainer(
        ray_elastic.loop,
        train_loop_config={"log": str(tmp_path)},
        scaling_config=ray.train.ScalingConfig(
            num_workers=(1, 3),
            resources_per_worker={"CPU": 0, "train": 1},
            elastic_resize_monitor_interval_s=1,
        ),
        run_config=ray.train.RunConfig(
            storage_path=str(tmp_path / "runs"),
            failure_config=ray.train.FailureConfig(max_failures=-1),
        ),
    )
    given: dict[str, Any] = {
        "num_cpus": 0,
        "node_ip_address": HERE,
        "object_store_memory": 80 << 20,
    }
    ended: list[Any] = []
    fits = threading.Thread(target=lambda: ended.append(trainer.fit()))
    nodes = [cluster.add_node(resources={"train": 2}, **given)]
    try:
        fits.start()
        while fits.is_alive() and not (tmp_path / "dead").exists():
            time.sleep(0.1)
        nodes.append(cluster.add_node(resources={"train": 1}, **given))  # in the main thread alone
        fits.join()
    finally:
        for node in nodes:
            cluster.remove_node(node)
    assert [result.error for result in ended] == [None]
    begun: list[tuple[float, int, list[int], list[list[Any]]]] = []
    for path in tmp_path.glob("*.jsonl"):
        (time_, *place), *steps = map(json.loads, path.read_text().splitlines())
        begun.append((time_, int(path.name.split("-")[0]), place, steps))
    runs: list[list[tuple[float, int, list[int], list[list[Any]]]]] = []
    for each in sorted(begun, key=lambda one: one[0]):
        if not runs or len(runs[-1]) == runs[-1][0][1]:
            runs.append([])
        runs[-1].append(each)
    assert [run[0][1] for run in runs] in ([2, 3], [2, 2, 3])
    given = {"global_batch_size": 8, "shuffle": True, "seed": 3, "shard": False}
    with hr.Loader(hr.records(number=np.arange(44)), last_batch="keep", **given) as alone:
        wanted = [batch.number.tolist() for _ in range(3) for batch in alone]
    committed: list[list[int]] = []
    for run, later in zip(runs, [*runs[1:], None], strict=True):
        world, place = run[0][1], run[0][2]
        assert all(one[1:3] == (world, place) for one in run) and len(run) == world
        assert place[0] * 6 + place[1] == len(committed)  # as Ray's checkpoint says
        end = later[0][2] if later else [3, 0]
        for together in zip(*(one[3] for one in run), strict=False):
            if together[0][:2] >= end:
                break
            assert len({(step[0], step[1], step[3]) for step in together}) == 1
            committed.append([id for step in together for id in step[2]])
    assert [sorted(ids) for ids in committed] == [sorted(ids) for ids in wanted]


def test_ray_data_has_the_rows_of_one_loader(cluster: Any, photos: Path) -> None:
    import ray.data

    given: dict[str, Any] = {"shuffle": True, "seed": 3, "on_error": "skip"}
    with hr.Loader(photos, STEPS, batch_size=16, threads=1, **given) as alone:
        wanted = np.concatenate([batch.image for batch in alone])
    source = hr.ray.datasource(photos, STEPS, batch_size=16, block="1 MiB", **given)
    context = ray.data.DataContext.get_current()
    context.execution_options.preserve_order = True
    rows = ray.data.read_datasource(source).take_all()
    np.testing.assert_array_equal(np.stack([row["image"] for row in rows]), wanted)
    files = [path.read_bytes() for path in sorted(photos.rglob("*.jpg")) if "07" not in path.name]
    files = [data for data in files if len(data) > 2000]
    cropped = hr.ray.transform([T.CenterCrop(100)], rename={"bytes": "image"})
    made = ray.data.from_items([{"bytes": data} for data in files[:8]]).map_batches(cropped)
    got = np.stack([row["image"] for row in made.take_all()])
    with hr.Loader(hr.records(image=files[:8]), [T.CenterCrop(100)], batch_size=8) as loader:
        np.testing.assert_array_equal(got, next(iter(loader)).image)


def test_a_conversion_by_tasks_is_the_one_of_a_process(
    cluster: Any, photos: Path, tmp_path: Path
) -> None:
    seen: list[int] = []
    job = hr.ray.convert(
        photos,
        tmp_path / "ray",
        "tar",
        parts=3,
        progress=lambda done, parts: seen.append(done),
    )
    assert job["records"] == 96 and seen[-1] == 3
    for part in range(3):
        hr.convert(photos, tmp_path / "here", "tar", part=(part, 3))
    for path in sorted((tmp_path / "here").glob("*.tar")):
        assert path.read_bytes() == (tmp_path / "ray" / path.name).read_bytes()


def test_the_example_trains(
    cluster: Any,
    photos: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for path in photos.rglob("*.jpg"):
        if path.stat().st_size > 2000:
            target = tmp_path / path.parent.name / path.name
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(path.read_bytes())
    script = Path(__file__).parents[2] / "examples" / "ray" / "train.py"
    monkeypatch.setattr(sys, "argv", [str(script), str(tmp_path), "--cpus", "1"])
    runpy.run_path(str(script), run_name="__main__")
    assert "epoch 1: mean" in capsys.readouterr().out
