# SPDX-License-Identifier: Apache-2.0
"""PHOTOS RECORDS SECONDS: one loader, epoch after epoch; prints the process's resources."""

from __future__ import annotations

import os
import sys
import time

from headrace.insight.measure.processes import Processes

import headrace as hr
from headrace import transforms as T

EVERY = 0.5  # seconds between lines


def main(photos: str, records: str, seconds: str) -> None:
    process = Processes()
    begin = told = time.monotonic()
    steps = [T.RandomResizedCrop(24), T.RandomHorizontalFlip(), T.ColorJitter(0.4, 0.4, 0.4)]
    loader = hr.Loader(photos, steps, batch_size=32, shuffle=True, threads=2)
    done = 0
    while done < int(records) and time.monotonic() - begin < float(seconds):
        for batch in loader:
            done += len(batch.label)
        if time.monotonic() - told > EVERY:
            told = time.monotonic()
            held = len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))
            print(done, *held, process.memory(), flush=True)
    print(done, 0, 0, 0, flush=True)


main(*sys.argv[1:])
