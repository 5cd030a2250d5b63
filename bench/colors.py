#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a colour step costs: CPU time a picture of 224 x 224, beside those of other libraries.

    python bench/colors.py [--runs N] [--step NAME]

Pictures are uint8 in memory. Headrace's time is a loader's with the step less the same loader's
without it, on one thread; the others' is their function's, called on the same pictures in this
process, on one thread. Rounds alternate; what is printed are medians, and ratios within a round. A
library that is not installed is left out.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import headrace as hr
from headrace import transforms as T

COUNT = 128


def pictures() -> Any:
    """Smooth, as photos are: noise alone would have no hues worth turning."""
    steps = np.random.default_rng(1).integers(-3, 4, (COUNT, 3, 224, 224))
    return np.clip(np.cumsum(steps, axis=-1) + 128, 0, 255).astype(np.uint8)


JITTER = (0.4, 0.4, 0.4, 0.1)
OURS: dict[str, Any] = {
    "ColorJitter": T.ColorJitter(*JITTER),
    "AdjustHue": T.AdjustHue(0.1),
    "AdjustSaturation": T.AdjustSaturation(1.3),
    "AdjustContrast": T.AdjustContrast(1.3),
    "AdjustBrightness": T.AdjustBrightness(1.3),
    "Equalize": T.RandomEqualize(1.0),
    "Posterize": T.RandomPosterize(4, 1.0),
    "Grayscale": T.Grayscale(3),
    "Sharpness": T.RandomAdjustSharpness(1.7, 1.0),
    "GaussianBlur": T.GaussianBlur(23),
    "GaussianNoise": T.GaussianNoise(0.0, 0.1),
    "SaltAndPepper": T.SaltAndPepper(p=1.0),
    "CoarseDropout": T.CoarseDropout((4, 8), p=1.0),
    "GridDropout": T.GridDropout(p=1.0),
    "JPEG": T.JPEG(50),
    "PCALighting": T.PCALighting(),
    "HueSaturationValue": T.HueSaturationValue(p=1.0),
    "MedianBlur 3": T.MedianBlur((3, 3), p=1.0),
    "MedianBlur 5": T.MedianBlur((5, 5), p=1.0),
    "MedianBlur 7": T.MedianBlur((7, 7), p=1.0),
    "MotionBlur": T.MotionBlur((7, 7), p=1.0),
    "CLAHE": T.CLAHE(p=1.0),
}


def torchvisions() -> dict[str, Callable[[Any], Any]]:
    from torchvision.transforms import v2
    from torchvision.transforms.v2 import functional as F

    return {
        "ColorJitter": v2.ColorJitter(*JITTER),
        "AdjustHue": lambda x: F.adjust_hue(x, 0.1),
        "AdjustSaturation": lambda x: F.adjust_saturation(x, 1.3),
        "AdjustContrast": lambda x: F.adjust_contrast(x, 1.3),
        "AdjustBrightness": lambda x: F.adjust_brightness(x, 1.3),
        "Equalize": F.equalize,
        "Posterize": lambda x: F.posterize(x, 4),
        "Grayscale": lambda x: F.rgb_to_grayscale(x, 3),
        "Sharpness": lambda x: F.adjust_sharpness(x, 1.7),
        "GaussianBlur": v2.GaussianBlur(23),
        "GaussianNoise": lambda x: F.gaussian_noise(x, 0.0, 0.1),
        "JPEG": lambda x: F.jpeg(x, 50),
    }


def albumentations() -> dict[str, Callable[[Any], Any]]:
    import albumentations as A

    ranges = {"brightness": (0.6, 1.4), "contrast": (0.6, 1.4), "saturation": (0.6, 1.4)}
    steps = {
        "ColorJitter": A.ColorJitter(**ranges, hue=(-0.1, 0.1), p=1.0),
        "Equalize": A.Equalize(p=1.0),
        "Posterize": A.Posterize(4, p=1.0),
        "GaussianBlur": A.GaussianBlur(blur_limit=(23, 23), sigma_limit=(0.1, 2.0), p=1.0),
        "GaussianNoise": A.GaussNoise((0.1, 0.1), p=1.0),
        "SaltAndPepper": A.SaltAndPepper(p=1.0),
        "CoarseDropout": A.CoarseDropout((4, 8), p=1.0),
        "GridDropout": A.GridDropout(p=1.0),
        "JPEG": A.ImageCompression("jpeg", (50, 50), p=1.0),
        "PCALighting": A.FancyPCA(p=1.0),
        "HueSaturationValue": A.HueSaturationValue(p=1.0),
        "MedianBlur 3": A.MedianBlur((3, 3), p=1.0),
        "MedianBlur 5": A.MedianBlur((5, 5), p=1.0),
        "MedianBlur 7": A.MedianBlur((7, 7), p=1.0),
        "MotionBlur": A.MotionBlur((7, 7), p=1.0),
        "CLAHE": A.CLAHE(p=1.0),
    }
    return {name: lambda x, step=step: step(image=x)["image"] for name, step in steps.items()}


def others(images: Any) -> dict[str, tuple[list[Any], dict[str, Callable[[Any], Any]]]]:
    """By library: the pictures as it takes them, and its functions."""
    found: dict[str, tuple[list[Any], dict[str, Callable[[Any], Any]]]] = {}
    try:
        import torch
        from PIL import Image

        torch.set_num_threads(1)
        functions = torchvisions()
        rows = [np.ascontiguousarray(image.transpose(1, 2, 0)) for image in images]
        found["torchvision, tensors"] = ([torch.from_numpy(image) for image in images], functions)
        found["torchvision, Pillow"] = ([Image.fromarray(image) for image in rows], functions)
    except (ImportError, RuntimeError) as error:
        print(f"without torchvision: {error}")
    try:
        import cv2

        cv2.setNumThreads(1)
        rows = [np.ascontiguousarray(image.transpose(1, 2, 0)) for image in images]
        found["Albumentations"] = (rows, albumentations())
    except ImportError as error:
        print(f"without Albumentations: {error}")
    return found


def microseconds(call: Callable[[], Any], count: int) -> float:
    """CPU time of all threads, a picture."""
    begin = time.process_time()
    call()
    return (time.process_time() - begin) / count * 1e6


def epoch(loader: hr.Loader) -> Callable[[], None]:
    def run() -> None:
        for _ in loader:
            pass

    run()  # the first one starts threads
    return run


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--step", choices=OURS, action="append")
    arguments = parser.parse_args()
    images = pictures()
    theirs = others(images)
    source = hr.records(image=np.concatenate([images] * 4))
    options: dict[str, Any] = {"batch_size": 64, "threads": 1}
    plain = epoch(hr.Loader(source, [], **options))
    for name in arguments.step or OURS:
        ours = epoch(hr.Loader(source, [OURS[name]], **options))
        times: dict[str, list[float]] = {"Headrace": []}
        for _ in range(arguments.runs):
            with_it = microseconds(ours, len(source))
            times["Headrace"].append(with_it - microseconds(plain, len(source)))
            for library, (values, functions) in theirs.items():
                if name not in functions:
                    continue
                call = functions[name]
                try:
                    call(values[0])
                except (RuntimeError, ValueError):  # not for such pictures, or not in this build
                    continue
                spent = microseconds(lambda v=values, c=call: [c(value) for value in v], COUNT)
                times.setdefault(library, []).append(spent)
        line = f"{name:17} Headrace {statistics.median(times['Headrace']):7.1f} us"
        for library, spent in times.items():
            if library == "Headrace":
                continue
            ratios = [a / b for a, b in zip(spent, times["Headrace"], strict=True)]
            line += (
                f"; {library} {statistics.median(spent):8.1f} us, {statistics.median(ratios):.1f}x"
            )
        print(line, flush=True)


if __name__ == "__main__":
    main()
