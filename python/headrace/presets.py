# SPDX-License-Identifier: Apache-2.0
"""Usual recipes, as lists of transforms that may be changed and extended.

>>> import headrace as hr
>>> [step.name for step in hr.presets.imagenet_eval(224)][:2]
['Resize', 'CenterCrop']
"""

from __future__ import annotations

from typing import Any

from headrace import transforms as T
from headrace.dtypes import dtype_name

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


def normalized(
    dtype: Any = "float32",
    mean: tuple[float, ...] = IMAGENET_MEAN,
    std: tuple[float, ...] = IMAGENET_STD,
) -> list[T.Transform]:
    """uint8 pixels to normalized ones. "uint8" leaves them; the rest is rounded from float32."""
    name = dtype_name(dtype)
    if name == "uint8":
        return []
    steps = [T.ToDtype("float32", scale=True), T.Normalize(mean, std)]
    if name != "float32":
        steps.append(T.ToDtype(name))
    return steps


def imagenet_train(
    size: int = 224, *, dtype: Any = "float32", interpolation: Any = "bilinear"
) -> list[T.Transform]:
    """RandomResizedCrop, flip, normalize: the usual training recipe."""
    return [
        T.RandomResizedCrop(size, interpolation=interpolation),
        T.RandomHorizontalFlip(),
        *normalized(dtype),
    ]


def imagenet_eval(
    size: int = 224,
    *,
    resize: int | None = None,
    dtype: Any = "float32",
    interpolation: Any = "bilinear",
) -> list[T.Transform]:
    """Resize the shorter side, crop the centre, normalize. resize: default, size * 256 / 224."""
    return [
        T.Resize(resize or round(size * 256 / 224), interpolation=interpolation),
        T.CenterCrop(size),
        *normalized(dtype),
    ]
