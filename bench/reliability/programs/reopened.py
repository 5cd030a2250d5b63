# SPDX-License-Identifier: Apache-2.0
"""PHOTOS COUNT SECONDS: loaders one after the other; prints the process's resources every 50."""

from __future__ import annotations

import gc
import os
import sys
import time

from headrace.insight.measure.processes import Processes

import headrace as hr
from headrace import transforms as T


def main(photos: str, count: str, seconds: str) -> None:
    process = Processes()
    until = time.monotonic() + float(seconds)
    source = hr.open(photos)
    for number in range(int(count)):
        loader = hr.Loader(source, [T.RandomResizedCrop(32)], batch_size=8, shuffle=True, threads=2)
        iterator = iter(loader)
        next(iterator)
        if number % 3 == 0:
            loader.close()
        elif number % 3 == 1:
            list(iterator)
        del loader, iterator
        if number % 50 == 49:
            gc.collect()
            held = len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))
            print(number + 1, *held, process.memory(), flush=True)
            if time.monotonic() > until:
                break


main(*sys.argv[1:])
