#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A remote LeRobot dataset, compared with the same one on the local disk.

    python bench/far_robot.py build/far_robot [--threads 1] [--rounds 3] [--gop 2]

Writes a dataset (two cameras of 240 x 320, 1,200 frames each, AV1 as LeRobot encodes it) and reads
it, two frames of each camera per record, from the disk and from a server in a separate process
(object_store.py) that answers after a lognormal latency of 50 ms and sends 90 MB/s per connection.
Epochs from both alternate; of two consecutive remote epochs the second counts. Rates are medians,
CPU time is the client's process and the decoder's. `bytes` are those that the server sent in an
epoch, over the size of the videos; `first epoch` includes the tables of the videos.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
from object_store import ObjectStore
from process_tree import cpu_seconds

import headrace as hr
from headrace import transforms as T

LATENCY, RATE, FPS = 0.05, 90e6, 30
HEIGHT, WIDTH, EPISODES, LENGTH = 240, 320, 8, 150
CAMERAS = ["observation.images.top", "observation.images.wrist"]
ORDERS: tuple[Any, ...] = (False, "blocks", True)


def make(root: Path, gop: int) -> None:
    random = np.random.default_rng(0)
    count = EPISODES * LENGTH
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    fields: dict[str, Any] = {}
    for camera in CAMERAS:
        frames = np.empty((count, 3, HEIGHT, WIDTH), np.uint8)
        slopes = random.uniform(1, 3, 3)
        for t in range(count):
            waves = [np.sin((x * a + y * (3 - a) + 9 * t) / 40) for a in slopes]
            noise = random.normal(0, 16, (1, HEIGHT, WIDTH))
            frames[t] = np.clip(128 + 90 * np.stack(waves) + noise, 0, 255)
        fields[camera] = frames
    fields["action"] = random.normal(size=(count, 14)).astype(np.float32)
    fields["episode_index"] = np.repeat(np.arange(EPISODES), LENGTH)
    fields["task"] = ["wait"] * count
    source = hr.records(**fields).with_kinds({camera: "image" for camera in CAMERAS})
    hr.convert(source, str(root), to="lerobot", fps=FPS, gop=gop, video_files_size_in_mb=8)


def loader_of(place: str, shuffle: Any, threads: int) -> hr.Loader:
    deltas = {camera: [-3 / FPS, 0] for camera in CAMERAS}
    steps = [T.VideoFramesAt(), T.Resize((224, 224)), T.ToDtype("float32", scale=True)]
    source = hr.lerobot(place, delta_timestamps=deltas)
    return hr.Loader(source, steps, batch_size=32, shuffle=shuffle, threads=threads, seed=3)


def epoch(loader: hr.Loader) -> tuple[float, float]:
    """Records per second, and CPU milliseconds per record."""
    cpu, began = cpu_seconds(os.getpid()), time.perf_counter()
    records = sum(len(batch["index"]) for batch in loader)
    seconds = time.perf_counter() - began
    return records / seconds, 1000 * (cpu_seconds(os.getpid()) - cpu) / records


def compare(given: argparse.Namespace, store: ObjectStore, size: int, shuffle: Any) -> None:
    records = EPISODES * LENGTH

    def since(before: dict[str, Any]) -> str:
        now = store.counts()
        requests = (now["requests"] - before["requests"]) / records
        share = (now["bytes"] - before["bytes"]) / size
        return f"{requests:.3f} requests per record, bytes {share:.3f}"

    near = loader_of(str(given.root / "robot"), shuffle, given.threads)
    far = loader_of(f"{store.url}/data/robot", shuffle, given.threads)
    before = store.counts()
    print(f"  first epoch: {epoch(far)[0]:.0f}/s, {since(before)}", flush=True)
    disk, remote, counted = [], [], ""
    for number in range(given.rounds + 1):  # the first one is start-up
        one = epoch(near)
        epoch(far)  # uses what was read ahead while the other one ran
        before = store.counts()
        other = epoch(far)
        counted = since(before)
        if number:
            disk.append(one)
            remote.append(other)
    near.close()
    far.close()
    ratios = [f[0] / d[0] for d, f in zip(disk, remote, strict=True)]
    (rate, cpu), (far_rate, far_cpu) = (
        tuple(statistics.median(each[i] for each in rounds) for i in range(2))
        for rounds in (disk, remote)
    )
    print(
        f"  disk {rate:.0f}/s, far {far_rate:.0f}/s: {statistics.median(ratios):.0%}"
        f" ({min(ratios):.0%} to {max(ratios):.0%}); CPU ms per record {cpu:.2f}, {far_cpu:.2f};"
        f" {counted}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--gop", type=int, default=2)
    given = parser.parse_args()
    given.root = given.root / str(given.gop)
    if not (given.root / "robot").exists():
        given.root.mkdir(parents=True, exist_ok=True)
        make(given.root / "robot", given.gop)
    files = list((given.root / "robot").rglob("*.mp4"))
    size = sum(path.stat().st_size for path in files)
    print(json.dumps({"files": len(files), "bytes": size, "gop": given.gop}))
    with ObjectStore(given.root, latency=LATENCY, rate=RATE) as store:
        for shuffle in ORDERS:
            print(f"shuffle={shuffle!r}")
            compare(given, store, size, shuffle)


if __name__ == "__main__":
    main()
