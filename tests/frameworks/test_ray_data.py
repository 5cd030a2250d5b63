# SPDX-License-Identifier: Apache-2.0
"""Ray Data's blocks are a loader's batches, and a conversion by Ray tasks is the same as by one
process.
"""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

if importlib.util.find_spec("ray") is None:  # not imported: ray_cluster has the address
    pytest.skip("Ray is not installed", allow_module_level=True)

from ray_cluster import processes

import headrace as hr
from headrace import transforms as T

pytest_plugins = ["ray_fixtures"]
BAD = ("07.jpg", "31.jpg")  # number of photos
STEPS = [T.RandomResizedCrop(160), T.RandomHorizontalFlip()]


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


@pytest.mark.parametrize("blocks", [2, 5, 48, 200])
def test_ray_data_has_each_row_once_when_whole_batches_are_bad(
    blocks: int, cluster: Any, photos: Path
) -> None:
    import ray.data

    given: dict[str, Any] = {"shuffle": True, "seed": 3, "on_error": "skip", "batch_size": 1}
    with hr.Loader(photos, [T.CenterCrop(8)], threads=1, **given) as alone:
        wanted = np.concatenate([batch.image for batch in alone])
    assert len(wanted) == 96 - len(BAD)
    source = hr.ray.datasource(photos, [T.CenterCrop(8)], **given)
    ray.data.DataContext.get_current().execution_options.preserve_order = True
    rows = ray.data.read_datasource(source, override_num_blocks=blocks).take_all()
    np.testing.assert_array_equal(np.stack([row["image"] for row in rows]), wanted)


def test_a_conversion_by_tasks_equals_that_of_one_process(
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


def test_parts_of_killed_processes_are_redone(cluster: Any, photos: Path, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    killed = 0

    def kill(done: int, parts: int) -> None:
        nonlocal killed
        seen.append((done, parts))
        if done in (1, 4):
            tasks = processes("ray::make")
            killed += len(tasks)
            for task in tasks:
                task.kill()

    photos = shutil.copytree(photos, tmp_path / "photos")
    for path in photos.rglob("*.jpg"):
        if path.name in BAD:
            path.write_bytes(path.read_bytes()[:100])
    job = hr.ray.convert(photos, tmp_path / "ray", parts=8, progress=kill, verify=True)
    assert killed > 0 and seen[-1] == (8, 8)
    hr.pack(photos, tmp_path / "here", shards=8)
    names = [path.name for path in sorted((tmp_path / "here").glob("*.hrpack"))]
    assert names == [file["file"] for file in job["files"]] and len(names) == 8
    for name in names:
        made = (tmp_path / "ray" / name).read_bytes()
        assert made == (tmp_path / "here" / name).read_bytes()
    assert [bad["record"] for bad in job["unusable"]] == [
        number for number, key in enumerate(map(hr.open(photos).key, range(96))) if key[-6:] in BAD
    ]
    assert not (tmp_path / "ray" / "unfinished").exists()
    stamps = [(tmp_path / "ray" / name).stat().st_mtime_ns for name in names]
    assert hr.ray.convert(photos, tmp_path / "ray", parts=8) == job  # all are kept
    assert stamps == [(tmp_path / "ray" / name).stat().st_mtime_ns for name in names]


def test_an_error_in_a_part_fails_the_job_and_complete_parts_are_kept(
    cluster: Any, photos: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(photos, tmp_path / "photos")
    source = hr.open(folder)
    file = folder / "2" / "95.jpg"
    renamed = file.rename(folder / "2" / "96.jpg")  # since it was opened
    with pytest.raises(hr.ConfigError, match="HR0172"):
        hr.ray.convert(source, tmp_path / "out", "tar", parts=3)
    renamed.rename(file)
    assert hr.ray.convert(folder, tmp_path / "out", "tar", parts=3)["records"] == 96


def test_indexes_made_by_tasks_merge_into_one_index(
    cluster: Any, whole_photos: Path, tmp_path: Path
) -> None:
    hr.ray.run(hr.jobs.Job("index", whole_photos, tmp_path / "parts", parts=2))
    assert hr.jobs.merge(tmp_path / "parts")["indexed"] == 94
    hr.index(whole_photos, tmp_path / "whole.rows")
    made = (tmp_path / "parts" / "index.rows").read_bytes()
    assert made == (tmp_path / "whole.rows").read_bytes()
