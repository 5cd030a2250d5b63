# SPDX-License-Identifier: Apache-2.0
"""Time of `next()` if batches are ready: `python bench/ragged.py`.

Pictures and boxes, 32 records per batch, as lists, padded and packed; the consumer's steps take
longer than making a batch. Medians, in microseconds.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np

import headrace as hr

RECORDS, BATCH, STEP_SECONDS = 640, 32, 0.1


def records() -> list[dict[str, Any]]:
    random = np.random.default_rng(1)
    sizes = random.integers(160, 320, (RECORDS, 2))
    return [
        {
            "image": random.integers(0, 256, (3, *size), np.uint8),
            "boxes": random.uniform(0, 99, (int(random.integers(1, 400)), 4)).astype(np.float32),
        }
        for size in sizes
    ]


def microseconds(loader: hr.Loader) -> float:
    found = []
    batches = iter(loader)
    for _ in range(len(loader)):
        begin = time.perf_counter()
        batch = next(batches)
        found.append(time.perf_counter() - begin)
        time.sleep(STEP_SECONDS)
        del batch
    return statistics.median(found[2:]) * 1e6


def main() -> None:
    shapes = {"boxes": (-1, 4), "image": (3, -1, -1)}
    source = hr.open(records(), kinds={"boxes": "boxes:xyxy"}, shapes=shapes)
    for case in ("list image", "pad image", "pad boxes", "packed boxes"):
        ragged, field = case.split()
        loader = hr.Loader(source, batch_size=BATCH, fields=(field,), ragged=ragged, threads=2)
        with loader:
            print(f"{case:12} {microseconds(loader):8.0f} us")


if __name__ == "__main__":
    main()
