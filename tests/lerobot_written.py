# SPDX-License-Identifier: Apache-2.0
"""A robot's recordings, how tests write them as a LeRobot dataset, and how they read its files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.parquet as pq
import videos

import headrace as hr
from headrace import transforms as T

LENGTHS = [5, 40, 1]
TOP, WRIST = "observation.images.top", "observation.images.wrist"
TASKS = ["fold the towel"] * 5 + ["open the drawer"] * 41
FPS = 30
SMALL = np.zeros((4, 3, 64, 64), np.uint8)


class Robot(NamedTuple):
    source: hr.Source
    columns: dict[str, np.ndarray[Any, Any]]
    frames: dict[str, np.ndarray[Any, Any]]  # (N, H, W, 3), by camera


def recorded() -> Robot:
    total = sum(LENGTHS)
    random = np.random.default_rng(8)
    columns: dict[str, np.ndarray[Any, Any]] = {
        "observation.state": random.normal(size=(total, 6)).astype(np.float32),
        "action": random.normal(size=(total, 4)),
        "next.done": np.isin(np.arange(total), np.cumsum(LENGTHS) - 1),
        "step": random.integers(-5, 5, total),
        "episode_index": np.repeat([7, 3, 9], LENGTHS),
    }
    frames = {TOP: videos.moving(total, 64, 96, seed=2), WRIST: videos.moving(total, seed=3)}
    frames[WRIST] = frames[WRIST][:, :, :48].repeat(2, 1).repeat(2, 2)  # 96 x 96
    pictures = {name: np.ascontiguousarray(f.transpose(0, 3, 1, 2)) for name, f in frames.items()}
    source = hr.records(**columns, **pictures, task=TASKS, note=[f"n{i}" for i in range(total)])
    return Robot(source.with_kinds(dict.fromkeys(frames, "image")), columns, frames)


def written(robot: Robot, out: Path, **options: Any) -> Path:
    hr.convert(robot.source, out, "lerobot", **{"fps": FPS, **options})
    return out


def read(root: Path, **how: Any) -> dict[str, Any]:
    """All records that hr.lerobot reads, by field."""
    loader = hr.Loader(
        hr.lerobot(root, **how), [T.VideoFramesAt()], batch_size=64, shuffle=False, ragged="list"
    )
    return dict(next(iter(loader))._asdict())


def table(root: Path, folder: str) -> dict[str, list[Any]]:
    out: dict[str, list[Any]] = {}
    for path in sorted((root / folder).glob("*/*.parquet")):
        for name, values in pq.ParquetFile(path).read().to_pydict().items():
            out.setdefault(name, []).extend(values)
    return out


def info_of(root: Path) -> dict[str, Any]:
    return dict(json.loads((root / "meta/info.json").read_text()))
