# SPDX-License-Identifier: Apache-2.0
"""Python transforms on one thread and in processes: records/s, and the cost of passing a record
between them.

`python bench/python_workers.py [--milliseconds 2] [--workers 0 1 2] [--repeat 5]`

The runs alternate; prints the medians. A step that holds the GIL shows the gain of processes; one
that does nothing with a picture of 224x224x3 shows their cost, in CPU time of both sides.
"""

from __future__ import annotations

import argparse
import functools
import resource
import statistics
import time
from typing import Any

import numpy as np

import headrace as hr

RECORDS = 512


class Busy:
    """Holds the GIL for a number of loop iterations."""

    def __init__(self, turns: int) -> None:
        self.turns = turns

    def __call__(self, image: Any) -> Any:
        total = 0
        for turn in range(self.turns):
            total += turn
        return image


def same(image: Any) -> Any:
    return image


def turns_in(milliseconds: float) -> int:
    """Seconds per iteration, minimum of a few measurements."""
    begins = []
    for _ in range(5):
        begin = time.thread_time()
        Busy(200_000)(None)
        begins.append(time.thread_time() - begin)
    return round(200_000 * milliseconds / 1000 / min(begins))


def cpu_seconds() -> float:
    """CPU time of this process and of children it has waited for."""
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


def measure(step: Any, side: int, workers: int, epochs: int) -> tuple[float, float]:
    """Records/s, and CPU microseconds per record, of epochs after the first one."""
    picture = np.random.default_rng(0).integers(0, 256, (3, side, side), dtype=np.uint8)
    source = hr.records(image=np.broadcast_to(picture, (RECORDS, *picture.shape)))
    loader = hr.Loader(source, [step], batch_size=64, python_workers=workers)
    with loader:
        for _ in loader:
            pass
        begin, cpu = time.perf_counter(), _cpu_with(loader)
        for _ in range(epochs):
            for _ in loader:
                pass
        seconds, cpu = time.perf_counter() - begin, _cpu_with(loader) - cpu
    return epochs * RECORDS / seconds, cpu / (epochs * RECORDS) * 1e6


def _cpu_with(loader: hr.Loader) -> float:
    """CPU seconds of this process and of the loader's workers."""
    total = cpu_seconds()
    for process in loader.stats()["python_workers"]["processes"]:
        with open(f"/proc/{process}/schedstat") as file:
            total += int(file.read().split()[0]) / 1e9
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--milliseconds", type=float, default=2)
    parser.add_argument("--workers", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    busy = Busy(turns_in(options.milliseconds))
    steps = {
        f"{options.milliseconds:g} ms of Python": functools.partial(measure, busy, 32, epochs=1),
        "nothing, 224x224x3": functools.partial(measure, same, 224, epochs=4),
    }
    for name, run in steps.items():
        found: dict[int, list[tuple[float, float]]] = {count: [] for count in options.workers}
        for _ in range(options.repeat):
            for count in options.workers:
                found[count].append(run(workers=count))
        for count, results in found.items():
            rate, cpu = (statistics.median(values) for values in zip(*results, strict=True))
            print(f"{name}: {count} workers: {rate:8.0f} records/s, {cpu:7.0f} us of CPU a record")


if __name__ == "__main__":
    main()
