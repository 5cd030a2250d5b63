#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One image at a time without a loader: hr.decode, Pillow and, if it is installed, OpenCV.

    python bench/decode_one.py FOLDER [--rounds 5]

Decodes the JPEGs of a folder that contain the window, from memory on one thread, whole and as the
resized window. Rounds alternate; prints the medians of CPU milliseconds per image.
"""

from __future__ import annotations

import argparse
import importlib
import io
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import headrace as hr

WINDOW, SIZE = (20, 30, 150, 180), (224, 224)


def by_headrace(data: bytes) -> Any:
    return hr.decode(data)


def by_pillow(data: bytes) -> Any:
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))


def window_by_headrace(data: bytes) -> Any:
    return hr.decode(data, window=WINDOW, size=SIZE)


def window_by_pillow(data: bytes) -> Any:
    top, left, height, width = WINDOW
    image = Image.open(io.BytesIO(data)).convert("RGB")
    image = image.crop((left, top, left + width, top + height))
    return np.asarray(image.resize(SIZE[::-1], Image.Resampling.BILINEAR))


def opencv() -> Callable[[bytes], Any] | None:
    try:
        cv2 = importlib.import_module("cv2")
    except ImportError:
        return None
    cv2.setNumThreads(1)
    return lambda data: cv2.cvtColor(
        cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB
    )


def contains_window(path: Path) -> bool:
    top, left, height, width = WINDOW
    with Image.open(path) as image:
        return image.width >= left + width and image.height >= top + height


def milliseconds(decode: Callable[[bytes], Any], files: list[bytes]) -> float:
    begin = time.process_time()
    for data in files:
        decode(data)
    return (time.process_time() - begin) / len(files) * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    paths = sorted(args.folder.rglob("*.jp*g"))
    files = [path.read_bytes() for path in paths if contains_window(path)]
    mean = statistics.mean(map(len, files))
    print(f"{len(files)} JPEGs of {mean / 1e3:.0f} kB; CPU milliseconds per image")
    whole = {"hr.decode": by_headrace, "Pillow": by_pillow}
    if other := opencv():
        whole["OpenCV"] = other
    window = {"hr.decode": window_by_headrace, "Pillow": window_by_pillow}
    for name, ways in (("whole image", whole), ("window", window)):
        rounds = [
            {way: milliseconds(f, files) for way, f in ways.items()} for _ in range(args.rounds)
        ]
        found = {way: statistics.median(each[way] for each in rounds) for way in ways}
        print(f"{name:12}", *(f"{way} {each:.2f}" for way, each in found.items()))


if __name__ == "__main__":
    main()
