# SPDX-License-Identifier: Apache-2.0
"""Training batches of a LeRobot v3 dataset: four cameras, eight frames each, found by time.

`python bench/robot_frames.py make ROOT` writes a dataset with lerobot's own writer (12 episodes of
150 frames, 240 x 320, AV1 as lerobot encodes it); `headrace ROOT` and `lerobot ROOT` read all
of it shuffled, in batches of eight, with two threads, and with a DataLoader of two workers. Each
prints one line of JSON: records per second, CPU milliseconds per record, and the number of
frames that differ from a sequential decode of their file (counted outside of the timed part).
`lerobot` needs `pip install lerobot`.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from process_tree import cpu_seconds

FPS, CAMERAS, EPISODES, LENGTH, HEIGHT, WIDTH = 30, 4, 12, 150, 240, 320
BATCH, WORKERS, CHECKED = 8, 2, 40
NAMES = [f"observation.images.{n}" for n in range(CAMERAS)]
OFFSETS = list(range(-7, 1))
DELTAS: dict[str, list[float]] = {
    **{name: [n / FPS for n in OFFSETS] for name in NAMES},
    "observation.state": [n / FPS for n in OFFSETS],
    "action": [n / FPS for n in range(16)],
}


def make(root: Path) -> None:
    from lerobot.datasets.lerobot_dataset import LeRobotDataset

    shutil.rmtree(root, ignore_errors=True)
    image = {
        "dtype": "video",
        "shape": (HEIGHT, WIDTH, 3),
        "names": ["height", "width", "channels"],
    }
    vector = {"dtype": "float32", "shape": (14,), "names": None}
    features = {**{name: image for name in NAMES}, "observation.state": vector, "action": vector}
    data = LeRobotDataset.create("bench/made", FPS, features, root, use_videos=True)
    random = np.random.default_rng(0)
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    for episode in range(EPISODES):
        shades = random.uniform(1, 3, (CAMERAS, 3))
        for t in range(LENGTH):
            frame: dict[str, Any] = {"task": f"task {episode % 3}"}
            for name, shade in zip(NAMES, shades, strict=True):
                waves = [
                    np.sin((x * a + y * b + 9 * t) / 40) for a, b in ((s, 3 - s) for s in shade)
                ]
                noise = random.normal(0, 4, (HEIGHT, WIDTH, 1))
                pixels = 128 + 90 * np.stack(waves, axis=-1) + noise
                frame[name] = np.clip(pixels, 0, 255).astype(np.uint8)
            for name in ("observation.state", "action"):
                frame[name] = random.normal(size=14).astype(np.float32)
            data.add_frame(frame)
        data.save_episode()
    data.finalize()


def by_headrace(root: Path) -> Iterable[Any]:
    import headrace as hr
    from headrace import transforms as T

    source = hr.lerobot(root, delta_timestamps=DELTAS)
    steps = [T.VideoFramesAt(), T.CenterCrop((HEIGHT, WIDTH)), T.ToDtype("float32", scale=True)]
    return hr.Loader(source, steps, batch_size=BATCH, shuffle=True, threads=WORKERS)


def by_lerobot(root: Path) -> Iterable[Any]:
    import torch
    from lerobot.datasets.lerobot_dataset import LeRobotDataset
    from torch.utils.data import DataLoader

    torch.set_num_threads(1)
    data: Any = LeRobotDataset("bench/made", root, delta_timestamps=DELTAS)
    return DataLoader(data, batch_size=BATCH, shuffle=True, num_workers=WORKERS)


@cache
def decoded(path: str) -> np.ndarray[Any, Any]:
    import av

    with av.open(path) as file:
        frames = [frame.to_ndarray(format="rgb24") for frame in file.decode(video=0)]
    return np.stack(frames).transpose(0, 3, 1, 2)


def wrong_frames(root: Path, records: Iterator[tuple[int, dict[str, Any]]]) -> tuple[int, int]:
    """The number of frames, and how many of them are nearer to another frame of their file."""
    import pyarrow.parquet as pq

    found = [pq.read_table(path) for path in sorted(root.glob("meta/episodes/*/*.parquet"))]
    rows = [row for table in found for row in table.to_pylist()]
    frames = wrong = 0
    for index, record in records:
        row = next(
            row for row in rows if row["dataset_from_index"] <= index < row["dataset_to_index"]
        )
        for name in NAMES:
            chunk, file = (row[f"videos/{name}/{part}"] for part in ("chunk_index", "file_index"))
            whole = decoded(str(root / f"videos/{name}/chunk-{chunk:03d}/file-{file:03d}.mp4"))
            first = round(row[f"videos/{name}/from_timestamp"] * FPS)
            inside = index - row["dataset_from_index"]
            for offset, image in zip(OFFSETS, np.asarray(record[name]), strict=True):
                at = first + min(max(inside + offset, 0), LENGTH - 1)
                near = range(max(at - 3, 0), min(at + 4, len(whole)))
                away = {n: np.abs(image * 255 - whole[n]).mean() for n in near}
                frames += 1
                wrong += min(away, key=lambda n: away[n]) != at or away[at] > 1.5
    return frames, int(wrong)


def main(way: str, root: Path) -> None:
    if way == "make":
        make(root)
        return
    batches = {"headrace": by_headrace, "lerobot": by_lerobot}[way](root)
    records, begin, cpu = 0, time.perf_counter(), cpu_seconds(os.getpid())
    kept: list[Any] = []
    for batch in batches:
        records += len(batch["index"])
        if len(kept) < CHECKED // BATCH:
            kept.append({name: np.array(batch[name]) for name in ("index", *NAMES)})
    wall, cpu = time.perf_counter() - begin, cpu_seconds(os.getpid()) - cpu
    rows = (
        (int(batch["index"][i]), {name: batch[name][i] for name in NAMES})
        for batch in kept
        for i in range(len(batch["index"]))
    )
    checked, wrong = wrong_frames(root, rows)
    print(
        json.dumps(
            {
                "way": way,
                "records": records,
                "records_per_second": round(records / wall, 1),
                "cpu_ms_per_record": round(1000 * cpu / records, 2),
                "frames_checked": checked,
                "frames_wrong": wrong,
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
