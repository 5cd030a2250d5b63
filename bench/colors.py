#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cost of color transforms: CPU time per image of 224 x 224, compared with other libraries.

    python bench/colors.py [--runs N] [--step NAME]

bench/step_cost.py measures it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import step_cost

from headrace import transforms as T

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
    "PillowGaussianBlur": T.PillowGaussianBlur(2.0),
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


if __name__ == "__main__":
    step_cost.run(__doc__, OURS, torchvisions, albumentations)
