# SPDX-License-Identifier: Apache-2.0
"""Steps for the tests of python_workers=: other processes import them from here."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np


def noise(image: Any, rng: np.random.Generator) -> Any:
    return image ^ rng.integers(0, 256, image.shape, dtype=np.uint8)


def same(image: Any) -> Any:
    return image


class Refilled:
    """Returns the same array each time, refilled."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.buffer = np.empty(shape, np.uint8)

    def __call__(self, image: Any) -> Any:
        self.buffer[...] = 255 - image
        return self.buffer


def picky(image: Any, label: Any) -> dict[str, Any]:
    if label == 1:
        raise RuntimeError("no dogs")
    return {"image": image}


def with_process(image: Any) -> dict[str, Any]:
    return {"image": image, "process": np.int64(os.getpid())}


def overwrite(image: Any) -> Any:
    image[:] = 7
    return image


def complex_numbers(image: Any) -> Any:
    return image.astype(np.complex64)


def ask_to_exit(image: Any) -> Any:
    sys.exit(4)


def kill_itself(image: Any) -> Any:
    os.kill(os.getpid(), signal.SIGKILL)


def crash(image: Any) -> Any:
    ctypes.string_at(0)


def leave(image: Any) -> Any:
    os._exit(3)


def hang(image: Any) -> Any:
    time.sleep(1000)


class Once:
    """Ends its process, but only the first one: then the file exists."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __call__(self, image: Any) -> Any:
        if not self.marker.exists():
            self.marker.touch()
            os._exit(9)
        return image


class HoldTheGil:
    """Reports its process's id, then stays in C code without releasing the GIL."""

    def __init__(self, told: Path) -> None:
        self.told = told

    def __call__(self, image: Any) -> Any:
        self.told.with_suffix(".new").write_text(str(os.getpid()))
        self.told.with_suffix(".new").rename(self.told)
        ctypes.PyDLL(None).sleep(1000)


def words(text: str, data: bytes, vector: Any) -> dict[str, Any]:
    return {"text": text[::-1], "data": data[::-1], "vector": vector * 2}
