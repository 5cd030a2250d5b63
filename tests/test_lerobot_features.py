# SPDX-License-Identifier: Apache-2.0
"""Features and cameras that are selected, or skipped because they cannot be read."""

from __future__ import annotations

import json
import pickle
import warnings
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("av", reason="av makes the videos, and says what is in them")
pytest.importorskip("pyarrow", reason="pyarrow writes the tables")

import pyarrow as pa
import pyarrow.parquet as pq
import videos
from lerobot_folders import (
    LENGTHS,
    TOP,
    WRIST,
    Folder,
    check,
    edit_info,
    loader,
    opened,
    refused,
)

import headrace as hr

if MISSING := videos.missing_decoder():
    pytest.skip(MISSING, allow_module_level=True)


pytest_plugins = ["lerobot_fixtures"]

COUNTS = pa.array([0] * sum(LENGTHS), pa.int64())
WORDS = pa.array([["a", "b"]] * sum(LENGTHS))


def add_feature(root: Path, name: str, values: Any, dtype: str, shape: list[int]) -> None:
    at = 0
    for number in range(2):
        path = root / f"data/chunk-000/file-{number:03d}.parquet"
        table = pq.ParquetFile(path).read()
        part = values[at : at + len(table)]
        at += len(table)
        pq.write_table(table.append_column(name, part), path)
    features = json.loads((root / "meta/info.json").read_text())["features"]
    edit_info(root, features={**features, name: {"dtype": dtype, "shape": shape}})


@pytest.mark.parametrize(
    ("name", "values", "dtype", "shape"),
    [
        ("left-arm", COUNTS, "int64", [1]),
        ("left arm", COUNTS, "int64", [1]),
        ("key", COUNTS, "int64", [1]),
        ("task", pa.array(["x"] * sum(LENGTHS)), "string", [1]),
        ("action_is_pad", COUNTS, "int64", [1]),
        (f"{TOP}_times", COUNTS, "int64", [1]),
        ("words", WORDS, "string", [2]),
        ("depth", COUNTS, "complex64", [1]),
    ],
)
def test_a_feature_that_cannot_be_read_is_skipped_and_named(
    copy: Path, folder: Folder, name: str, values: Any, dtype: str, shape: list[int]
) -> None:
    add_feature(copy, name, values, dtype, shape)
    there = Folder(copy, folder.fps, folder.columns, folder.frames)
    with pytest.warns(hr.Warning, match=name) as warned:
        source = opened(there)
    assert len(warned) == 1
    assert "features=" in str(warned[0].message)
    check(folder, next(iter(loader(source))))
    chosen = ["observation.state", "action", "next.done"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check(folder, next(iter(loader(opened(there, features=chosen)))))
        again = pickle.loads(pickle.dumps(source))
    assert again.fingerprint == source.fingerprint
    deltas = {"action": [0]}
    refused("HR0163", name, copy, features=[name, "action"], delta_timestamps=deltas)


def test_only_selected_features_are_read(folder: Folder) -> None:
    source = hr.lerobot(folder.root, features=["action"], cameras=[])
    batch = next(iter(hr.Loader(source, batch_size=2)))
    made = {"timestamp", "frame_index", "episode_index", "index", "task_index", "task"}
    assert set(batch._fields) - {"key", "id", "valid"} == {"action", *made}


def test_a_camera_whose_name_is_not_a_field_is_skipped_and_named(copy: Path) -> None:
    name = "cam-high"
    path = copy / "meta/info.json"
    path.write_text(path.read_text().replace(WRIST, name))
    with pytest.warns(hr.Warning, match=name):
        assert name not in repr(hr.lerobot(copy))
    refused("HR0163", name, copy, cameras=[name])
    assert len(hr.lerobot(copy, cameras=[TOP])) == sum(LENGTHS)
