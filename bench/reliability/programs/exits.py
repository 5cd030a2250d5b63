# SPDX-License-Identifier: Apache-2.0
"""PHOTOS ENDING OPTIONS: receives two batches, says so, and ends in that way."""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
from typing import Any

import numpy as np

import headrace as hr
from headrace import _core
from headrace import transforms as T

HELD: list[Any] = []


def inverted(image: Any) -> Any:
    time.sleep(0.002)
    return np.uint8(255) - image


def batches(photos: str, options: list[str]) -> Any:
    chosen = dict(option.partition("=")[::2] for option in options)
    workers = int(chosen["workers"])
    loader = hr.Loader(
        photos,
        [T.Resize((16, 16)), inverted],
        batch_size=4,
        shuffle=True,
        threads=int(chosen["threads"]),
        **({"python_workers": workers} if workers else {}),
    )
    if "held" in chosen:
        HELD.append(loader)
    return loader.dlpack(device=_core.open_device("cpu")) if "prefetch" in chosen else loader


def received(photos: str, options: list[str]) -> tuple[Any, Any]:
    """What is iterated, and its iterator after two batches."""
    given = batches(photos, options)
    iterator = iter(given)
    if "held" in options:
        HELD.append(iterator)
    next(iterator), next(iterator)
    print("received", flush=True)
    return given, iterator


def receive(photos: str, options: list[str], end: Any) -> None:
    given, iterator = received(photos, options)
    end(given)
    for _ in iterator:  # a program that waits for its signal, or whose main thread has returned
        time.sleep(0.2)


def leave(code: int) -> None:
    sys.exit(code)


def main(photos: str, ending: str, options: str) -> None:
    chosen = options.split()
    if ending == "thread":  # ends with the main thread, in the middle of an epoch
        begun = threading.Event()
        given = (photos, chosen, lambda _: begun.set())
        threading.Thread(target=receive, args=given, daemon=True).start()
        begun.wait()
    elif ending == "atexit":
        atexit.register(lambda: receive(photos, chosen, lambda _: os._exit(0)))
    elif ending == "return":
        received(photos, chosen)
    else:
        receive(photos, chosen, ENDINGS[ending])


def raise_an_error(_: Any) -> None:
    raise RuntimeError("the model has failed")


def close(given: Any) -> None:
    given.close()
    sys.exit(0)


ENDINGS: dict[str, Any] = {
    "raise": raise_an_error,
    "sys.exit": lambda _: leave(7),
    "os._exit": lambda _: os._exit(7),
    "close": close,
    "terminate": lambda _: None,
    "kill": lambda _: None,
}

if __name__ == "__main__":
    main(*sys.argv[1:])
