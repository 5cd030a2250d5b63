# SPDX-License-Identifier: Apache-2.0
"""Shared by translations: arguments read from torchvision's objects."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterable
from typing import Any

from headrace.migrate.translations.registry import (
    Form,
    Made,
    NoOperator,
    image_of,
    resampled_by_torch,
)


def sibling(transform: Any, name: str) -> Any:
    """Another class in the module of the transform's class."""
    return getattr(sys.modules[type(transform).__module__], name)


def size_of(size: Any) -> Any:
    return size if size is None or isinstance(size, int) else [int(extent) for extent in size]


def fill_of(fill: Any, form: Form) -> Any:
    """torchvision's fill value of images as numbers: v2 may have one per type."""
    fill = fill_or_none(fill, form)
    return 0 if fill is None else fill


def fill_or_none(fill: Any, form: Form) -> Any:
    """Like ``fill_of``, but None stays None."""
    if isinstance(fill, dict):
        image = type(image_of(form.probes[0]))
        own = [key for key in fill if isinstance(key, type) and issubclass(image, key)]
        try:
            fill = fill[own[0] if own else "others"]  # or a defaultdict's
        except KeyError:
            raise NoOperator("its fill does not cover images") from None
    if callable(fill):
        raise NoOperator("its fill is not a constant")
    return fill


def mask_fill_of(fill: Any) -> int:
    """torchvision's fill value of masks: in a dictionary, that of masks; otherwise that of
    images."""
    if isinstance(fill, dict):
        own = [key for key in fill if getattr(key, "__name__", "") == "Mask"]
        fill = fill[own[0]] if own else fill.get("others")
    values = [0.0] if fill is None else numbers_of(fill)
    if len(values) > 1:
        return 0  # a color, which masks do not have
    if values[0] != int(values[0]):
        raise NoOperator("its fill of masks is not a whole number")
    return int(values[0])


def antialias_of(transform: Any, form: Form) -> bool:
    """Pillow always antialiases, regardless of torchvision's argument."""
    return form.kind == "pil" or not resampled_by_torch(transform)


def arithmetic_of(transform: Any, form: Form) -> str:
    """The library whose arithmetic for colors the original uses."""
    if form.kind == "pil":
        return "pillow"
    if type(transform).__module__.startswith("torchvision.transforms.v2"):
        return "torch"
    raise NoOperator("torchvision's v1 transforms compute colors of tensors differently")


def with_chance(
    transform: Any, kind: Callable[[float], Any], form: Form, floats: bool = False
) -> Made:
    """A step applied with probability ``p``; in comparisons, both sides always apply it. floats:
    whether it also has torchvision v2's arithmetic for float32.
    """
    if floats:
        refuse_other_floats(transform, form)
    else:
        refuse_floats(form)
    always = copy.copy(transform)
    always.p = 1.0
    return [kind(float(transform.p))], [kind(1.0)], always


def refuse_floats(form: Form) -> None:
    if form.kind != "pil" and form.dtype != "uint8":
        raise NoOperator("Headrace computes these colors on uint8, but the input here is floats")


def refuse_other_floats(transform: Any, form: Form) -> None:
    """Rejects float input except float32 with torchvision v2's arithmetic."""
    if form.dtype != "float32" or not type(transform).__module__.startswith(
        "torchvision.transforms.v2"
    ):
        refuse_floats(form)


def numbers_of(values: Any) -> list[float]:
    values = values.tolist() if hasattr(values, "tolist") else values
    return [float(value) for value in (values if isinstance(values, Iterable) else [values])]
