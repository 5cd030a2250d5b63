# SPDX-License-Identifier: Apache-2.0
"""PHOTOS LIMIT THREADS: an epoch with a slow consumer; prints its peak memory."""

from __future__ import annotations

import sys
import threading
import time

from headrace.insight.measure.processes import Processes

import headrace as hr
from headrace import transforms as T

TOO_SMALL = "HR0702"


def main(photos: str, limit: str, threads: str) -> None:
    list(hr.Loader(photos, [T.Resize((8, 8))], batch_size=1, threads=1, sampler=[0]))  # loads code
    process = Processes()
    before, most, ended = process.memory(), 0, threading.Event()

    def watch() -> None:
        nonlocal most
        while not ended.wait(0.002):
            most = max(most, process.memory())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        loader = hr.Loader(
            photos,
            [T.RandomResizedCrop(224)],
            batch_size=8,
            shuffle=True,
            threads=int(threads),
            memory_limit=int(limit),
        )
        for _ in loader:
            time.sleep(0.02)
    except hr.ConfigError as problem:  # before any batch was made
        if problem.code != TOO_SMALL:
            raise
        print("refused", flush=True)
        return
    finally:
        ended.set()
        watcher.join()
    print(most - before, flush=True)


main(*sys.argv[1:])
