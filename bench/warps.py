#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cost of warps: CPU time per picture of 224 x 224, compared with other libraries.

    python bench/warps.py [--runs N] [--step NAME]

bench/step_cost.py measures it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import step_cost

from headrace import transforms as T

AFFINE: dict[str, Any] = {"translate": (0.1, 0.1), "scale": (0.8, 1.2)}
PILLOW = {"arithmetic": "pillow"}
OURS: dict[str, Any] = {
    "affine, nearest": T.RandomAffine(30, **AFFINE, shear=10),
    "affine, bilinear": T.RandomAffine(30, **AFFINE, shear=10, interpolation="bilinear"),
    "rotation, bilinear": T.RandomRotation(30, interpolation="bilinear"),
    "perspective, bilinear": T.RandomPerspective(0.5, 1.0),
    "elastic": T.ElasticTransform(),
    "grid": T.GridDistortion(),
    "whole pixels": T.RandomAffine(0, translate=(0.1, 0.1), interpolation="bilinear"),
    "affine, nearest, Pillow's": T.RandomAffine(30, **AFFINE, shear=10, **PILLOW),
    "affine, bilinear, Pillow's": T.RandomAffine(
        30, **AFFINE, shear=10, interpolation="bilinear", **PILLOW
    ),
}


def torchvisions() -> dict[str, Callable[[Any], Any]]:
    from torchvision.transforms import v2

    nearest = v2.InterpolationMode.NEAREST
    bilinear = v2.InterpolationMode.BILINEAR
    steps = {
        "affine, nearest": v2.RandomAffine(30, **AFFINE, shear=10, interpolation=nearest),
        "affine, bilinear": v2.RandomAffine(30, **AFFINE, shear=10, interpolation=bilinear),
        "rotation, bilinear": v2.RandomRotation(30, interpolation=bilinear),
        "perspective, bilinear": v2.RandomPerspective(0.5, 1.0),
        "elastic": v2.ElasticTransform(),
        "whole pixels": v2.RandomAffine(0, translate=(0.1, 0.1), interpolation=bilinear),
    }
    pillows = {f"{name}, Pillow's": step for name, step in steps.items() if "affine" in name}
    return {**steps, **pillows}


def albumentations() -> dict[str, Callable[[Any], Any]]:
    import albumentations as A
    import cv2

    affine = {
        "rotate": (-30, 30),
        "translate_percent": (-0.1, 0.1),
        "scale": (0.8, 1.2),
        "shear": {"x": (-10, 10), "y": (0, 0)},
    }
    nearest, linear = cv2.INTER_NEAREST, cv2.INTER_LINEAR
    steps = {
        "affine, nearest": A.Affine(**affine, interpolation=nearest, p=1.0),
        "affine, bilinear": A.Affine(**affine, interpolation=linear, p=1.0),
        "rotation, bilinear": A.Rotate((-30, 30), interpolation=linear, p=1.0),
        "perspective, bilinear": A.Perspective((0.05, 0.25), interpolation=linear, p=1.0),
        "elastic": A.ElasticTransform(50.0, 5.0, interpolation=linear, p=1.0),
        "grid": A.GridDistortion(interpolation=linear, p=1.0),
        "whole pixels": A.Affine(translate_percent=(-0.1, 0.1), interpolation=linear, p=1.0),
    }
    steps |= {f"{name}, Pillow's": step for name, step in steps.items() if "affine" in name}
    return {name: lambda x, step=step: step(image=x)["image"] for name, step in steps.items()}


if __name__ == "__main__":
    step_cost.run(__doc__, OURS, torchvisions, albumentations)
