# SPDX-License-Identifier: Apache-2.0
"""Ray Train with a number of workers that changes, and the examples."""

from __future__ import annotations

import importlib.util
import runpy
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

if importlib.util.find_spec("ray") is None:  # not imported: ray_cluster has the address
    pytest.skip("Ray is not installed", allow_module_level=True)
import elastic_log
from ray_cluster import HERE

import headrace as hr
from headrace import transforms as T

pytest_plugins = ["ray_fixtures"]
EXAMPLES = Path(__file__).parents[2] / "examples" / "ray"


def test_elastic_training_commits_each_record_once_per_epoch(cluster: Any, tmp_path: Path) -> None:
    """Ray Train on two workers; one is killed, and three continue, although the batch size is not a
    multiple of three."""
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
        nodes.append(cluster.add_node(resources={"train": 1}, **given))  # only in the main thread
        fits.join()
    finally:
        for node in nodes:
            cluster.remove_node(node)
    assert [result.error for result in ended] == [None]
    runs = elastic_log.runs_in(tmp_path)
    assert [run.world for run in runs] in ([2, 3], [2, 2, 3])
    steps = elastic_log.committed(runs)
    assert len(steps) == ray_elastic.EPOCHS * elastic_log.BATCHES
    elastic_log.check(steps, ray_elastic.EPOCHS)


def run_example(name: str, *arguments: object, monkeypatch: Any, capsys: Any) -> str:
    """Output of a driver that joins the running cluster."""
    script = EXAMPLES / f"{name}.py"
    monkeypatch.setattr(sys, "argv", [str(script), *map(str, arguments)])
    runpy.run_path(str(script), run_name="__main__")
    return str(capsys.readouterr().out)


def test_every_example_is_run_here() -> None:
    examples = {path.stem for path in EXAMPLES.glob("*.py")}
    tested = {name.removeprefix("test_example_") for name in globals() if "test_example_" in name}
    assert examples == tested != set()


def test_example_train(cluster: Any, whole_photos: Path, monkeypatch: Any, capsys: Any) -> None:
    """Its measurements are the same as for a loader without a pool."""
    said = run_example("train", whole_photos, "--cpus", 1, monkeypatch=monkeypatch, capsys=capsys)
    steps = [T.RandomResizedCrop(64), T.RandomHorizontalFlip(), T.ToDtype("float32", scale=True)]
    with hr.Loader(whole_photos, steps, batch_size=16, shuffle=True) as alone:
        for epoch in range(2):
            mean = float(np.mean([batch.image.mean() for batch in alone]))
            assert f"epoch {epoch}: mean {mean:.6f}\n" in said
    assert " rows by " in said


def test_example_elastic(
    cluster: Any, whole_photos: Path, tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    """Two workers do not divide batches of 15, and commit each record of six batches per epoch."""
    given = ("--workers", 1, 2, "--storage", tmp_path, "--global-batch-size", 15)
    said = run_example("elastic", whole_photos, *given, monkeypatch=monkeypatch, capsys=capsys)
    assert "180 records in 2 epochs, loss " in said
    assert list(tmp_path.rglob("run.pt"))


def test_example_data(cluster: Any, whole_photos: Path, monkeypatch: Any, capsys: Any) -> None:
    said = run_example("data", whole_photos, monkeypatch=monkeypatch, capsys=capsys)
    with hr.Loader(whole_photos, [T.Resize(256), T.CenterCrop(224)], batch_size=94) as alone:
        mean = float(next(iter(alone)).image.mean((1, 2, 3)).mean())
    assert f"94 images, mean brightness {mean:.4f}\n" in said


def test_example_convert(
    cluster: Any, whole_photos: Path, tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    given = (whole_photos, tmp_path / "shards", "--to", "tar", "--parts", 3)
    for _ in range(2):  # the second call keeps all parts
        said = run_example("convert", *given, monkeypatch=monkeypatch, capsys=capsys)
        assert "3 of 3 parts\n94 records, " in said and said.endswith(" bytes in 3 files\n")
    made, whole = hr.open(tmp_path / "shards"), hr.open(whole_photos)
    assert made.column("label").tolist() == whole.column("label").tolist()
    assert made.engine.read(93)["image"] == whole.engine.read(93)["image"]
