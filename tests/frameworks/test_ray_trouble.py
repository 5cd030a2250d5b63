# SPDX-License-Identifier: Apache-2.0
"""Failures of Ray give clear errors, or rows are made locally: the loader never hangs, delivers
other bytes, or fills the disk."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

if importlib.util.find_spec("ray") is None:  # not imported: ray_cluster has the address
    pytest.skip("Ray is not installed", allow_module_level=True)
from ray_cluster import HERE, spills
from test_ray import FAR, GIVEN, STEPS, hashes, wait_for_actors

import headrace as hr

pytest_plugins = ["ray_fixtures"]


@pytest.mark.parametrize("killed", ["gcs", "node"])
def test_this_process_finishes_the_epoch_if_the_head_dies(whole_photos: Path, killed: str) -> None:
    """Where Ray's processes on this machine die, too, Ray ends the trainer with exit code 1: as
    soon as it touches an object, at the latest."""
    script = Path(__file__).with_name("ray_head_dies.py")
    command = [sys.executable, str(script), str(whole_photos), killed]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    print(done.returncode, done.stdout, done.stderr[-2000:], file=sys.stderr)
    if killed == "node" and done.returncode:  # no hang, and no exception or crash of ours
        assert done.returncode == 1 and "killed" in done.stdout.splitlines()
        assert "Traceback" not in done.stderr
        return
    assert done.returncode == 0
    report = json.loads(done.stdout.splitlines()[-1])
    assert report["right"] and report["received"] > 0
    assert report["wait"] < 120 and report["close"] < 120  # no hang
    assert killed == "gcs" or "HR0838" in report["summary"]


def given_up(loader: hr.Loader, epochs: int = 2) -> str:
    """Batches of this many epochs; then the log messages about workers that were given up."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        for _ in range(600):
            loader.set_epoch(0)
            list(hashes(loader, epochs))
            if heard:
                break
    says = loader.stats().remote["summary"]
    assert says.startswith("rows are made here: ") and says in repr(loader)
    assert loader.stats().remote["received"] == 0
    return str(heard[0].message)


def test_actors_of_another_version_are_refused(cluster: Any, photos: Path, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import headrace._core\nheadrace._core.__version__ = '0.0.1'\n"
    )
    path = os.pathsep.join([str(tmp_path), os.environ["PYTHONPATH"]])
    pool = hr.ray.pool(cpus=1, **FAR, runtime_env={"env_vars": {"PYTHONPATH": path}})
    with hr.Loader(photos, STEPS, **GIVEN, workers=pool) as loader:
        told = given_up(loader)
    assert "HR0837 remote worker makes different rows: version of Headrace: 0.0.1 there" in told


def test_a_dataset_that_differs_on_the_actors_is_refused(
    cluster: Any, photos: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(photos, tmp_path / "photos")
    with hr.Loader(folder, STEPS, **GIVEN, workers=hr.ray.pool(cpus=1, **FAR)) as loader:
        shutil.copy(folder / "0" / "00.jpg", folder / "0" / "01.jpg")  # since it was opened
        assert "HR0172 " in (told := given_up(loader)) and "97 records here, 96 there" in told


def test_actors_that_cannot_import_a_transform_are_abandoned(
    cluster: Any, photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "only_here.py").write_text("def same(image):\n    return image\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    steps = [*STEPS, importlib.import_module("only_here").same]
    with hr.Loader(photos, steps, **GIVEN, workers=hr.ray.pool(cpus=1, **FAR)) as loader:
        assert "ModuleNotFoundError: No module named 'only_here'" in given_up(loader)


@pytest.fixture
def small_store(cluster: Any) -> Iterator[int]:
    """Capacity in bytes of a store on a third node, the smallest that Ray allows."""
    size = 80 << 20
    node = cluster.add_node(
        num_cpus=0, resources={"small": 10}, node_ip_address=HERE, object_store_memory=size
    )
    yield size
    cluster.remove_node(node)


def test_rows_in_transit_do_not_fill_the_object_store(
    cluster: Any, small_store: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, Any] = {"batch_size": 24, "threads": 1, "seed": 1}
    source = hr.simulated(240, image=(3, 1024, 1024))  # batches of 75 MB
    small = {"cpus_per_actor": 0, "resources": {"small": 1}, "offload": "always"}
    with hr.Loader(source, **given) as alone:
        wanted = list(hashes(alone, 1))
    with hr.Loader(source, **given, workers=hr.ray.pool(cpus=2, **small)) as loader:
        next(iter(loader))
        wait_for_actors(loader, 2)
        loader.set_epoch(0)
        assert list(hashes(loader, 1)) == wanted
        remote = loader.stats().remote
        assert remote["bytes_limit"] == small_store // 4 and remote["received"] > 0
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    halves = hr.ray.pool(cpus=1, **small)
    with hr.Loader(source, **given, shard=(1, 2), workers=halves) as loader:
        next(iter(loader))
        wait_for_actors(loader, 1)
        assert loader.stats().remote["bytes_limit"] == small_store // 8
    little = hr.ray.pool(cpus=1, **small, store="2 %")
    with hr.Loader(source, **given, workers=little) as loader:
        assert "HR0839 too large for remote workers: 1 rows of 3,145,7" in given_up(loader, 1)
    assert spills(cluster) == []


def test_arrays_larger_than_the_object_store_are_refused(cluster: Any, small_store: int) -> None:
    images = np.zeros((15, 3, 1000, 1000), np.uint8)
    source = hr.records(image=images, label=np.arange(15))
    with hr.Loader(source, batch_size=5, workers=hr.ray.pool(cpus=1, **FAR)) as loader:
        told = given_up(loader, 1)
    assert "HR0839 too large for remote workers: arrays in memory have 45,0" in told
    assert spills(cluster) == []
