# SPDX-License-Identifier: Apache-2.0
"""PHOTOS WAY: loads until Ctrl-C, then again in the same process."""

from __future__ import annotations

import signal
import sys
import threading
import time

import headrace as hr
from headrace import transforms as T

STEPS = [T.RandomResizedCrop(32), T.RandomHorizontalFlip()]


def slow(image):
    time.sleep(0.003)
    return image


def loader_of(photos: str, way: str) -> hr.Loader:
    steps = [*STEPS, slow] if way == "python" else STEPS
    return hr.Loader(photos, steps, batch_size=8, shuffle=True, threads=2)


def forever(photos: str, way: str) -> None:
    while True:
        loader = loader_of(photos, way)  # opening is a phase, too
        for _ in range(3):
            for _ in loader:
                if way == "consumer":
                    time.sleep(0.01)
        loader.close()


def main(photos: str, way: str) -> None:
    # A shell that starts this in the background makes it ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    before = threading.active_count()
    try:
        print("ready", flush=True)
        forever(photos, way)
    except KeyboardInterrupt:
        print("interrupted", time.monotonic(), flush=True)
    with loader_of(photos, "") as loader:
        rows = sum(len(batch.label) for batch in loader)
    print("again", rows, threading.active_count() - before, flush=True)


main(*sys.argv[1:])
