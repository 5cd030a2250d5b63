# SPDX-License-Identifier: Apache-2.0
"""Cost of a transform compared with other libraries: CPU time per picture of 224 x 224.

Pictures are uint8 in memory. Headrace's time is a loader's with the step minus the same loader's
without it, on one thread; the others' is for their function, called on the same pictures in this
process, on one thread. Rounds alternate; prints medians, and ratios within a round. A library that
is not installed is skipped.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import headrace as hr

COUNT = 128

Functions = Mapping[str, Callable[[Any], Any]]  # by the step's name


def pictures() -> Any:
    """Smooth, like photos: pure noise would have no meaningful hues."""
    steps = np.random.default_rng(1).integers(-3, 4, (COUNT, 3, 224, 224))
    return np.clip(np.cumsum(steps, axis=-1) + 128, 0, 255).astype(np.uint8)


def microseconds(call: Callable[[], Any], count: int) -> float:
    """CPU time of all threads, per picture."""
    begin = time.process_time()
    call()
    return (time.process_time() - begin) / count * 1e6


def epoch(loader: hr.Loader) -> Callable[[], None]:
    def run() -> None:
        for _ in loader:
            pass

    run()  # the first one starts threads
    return run


def line_of(name: str, ours: list[float], others: Mapping[str, list[float]]) -> str:
    line = f"{name:28} Headrace {statistics.median(ours):7.1f} us"
    for library, spent in others.items():
        ratio = statistics.median(a / b for a, b in zip(spent, ours, strict=True))
        line += f"; {library} {statistics.median(spent):8.1f} us, {ratio:.1f}x"
    return line


def arguments_of(description: str | None, steps: Mapping[str, Any]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--step", choices=steps, action="append")
    arguments = parser.parse_args()
    arguments.step = arguments.step or list(steps)
    return arguments


def run(
    description: str | None,
    ours: Mapping[str, Any],
    torchvisions: Callable[[], Functions],
    albumentations: Callable[[], Functions],
) -> None:
    arguments = arguments_of(description, ours)
    images = pictures()
    theirs = _libraries(images, torchvisions, albumentations)
    source = hr.records(image=np.concatenate([images] * 4))
    options: dict[str, Any] = {"batch_size": 64, "threads": 1}
    plain = epoch(hr.Loader(source, [], **options))
    for name in arguments.step:
        calls = {
            library: (values, functions[name])
            for library, (values, functions) in theirs.items()
            if name in functions and _takes(functions[name], values[0])
        }
        with_it = epoch(hr.Loader(source, [ours[name]], **options))
        own: list[float] = []
        others: dict[str, list[float]] = {library: [] for library in calls}
        for _ in range(arguments.runs):
            spent = microseconds(with_it, len(source))
            own.append(spent - microseconds(plain, len(source)))
            for library, (values, call) in calls.items():
                others[library].append(
                    microseconds(lambda v=values, c=call: [c(value) for value in v], COUNT)
                )
        print(line_of(name, own, others), flush=True)


def _takes(call: Callable[[Any], Any], value: Any) -> bool:
    try:
        call(value)
    except (RuntimeError, ValueError):  # not for such pictures, or not in this build
        return False
    return True


def _libraries(
    images: Any, torchvisions: Callable[[], Functions], albumentations: Callable[[], Functions]
) -> dict[str, tuple[list[Any], Functions]]:
    """By library: the pictures in its format, and its functions."""
    found: dict[str, tuple[list[Any], Functions]] = {}
    rows = [np.ascontiguousarray(image.transpose(1, 2, 0)) for image in images]
    try:
        import torch
        from PIL import Image

        torch.set_num_threads(1)
        functions = torchvisions()
        found["torchvision, tensors"] = ([torch.from_numpy(image) for image in images], functions)
        found["torchvision, Pillow"] = ([Image.fromarray(image) for image in rows], functions)
    except (ImportError, RuntimeError) as error:
        print(f"without torchvision: {error}")
    try:
        import cv2

        cv2.setNumThreads(1)
        found["Albumentations"] = (rows, albumentations())
    except ImportError as error:
        print(f"without Albumentations: {error}")
    return found
