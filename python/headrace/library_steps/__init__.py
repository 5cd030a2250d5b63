# SPDX-License-Identifier: Apache-2.0
"""Transforms of torchvision and Albumentations as steps.

A transform that changes only colors takes ``image``. A transform that moves, crops or resizes gets
all fields with image coordinates, and the rows that belong to them, in one call with one random
draw; the adapters define how. ``T.Python(transform, fields=...)`` selects the fields instead.
"""

from __future__ import annotations

from typing import Any

from headrace import _core
from headrace.library_steps import albumentations, torchvision
from headrace.library_steps.adapter import Adapter, Kinds, Taken, Words, home_of, opened

__all__ = [
    "Kinds",
    "Taken",
    "Words",
    "adapter_of",
    "home_of",
    "is_composed",
    "moves",
    "native_names",
    "opened",
]

_ADAPTERS = {"torchvision": torchvision.ADAPTER, "albumentations": albumentations.ADAPTER}


def adapter_of(transform: Any) -> Adapter:
    """What translates a transform of its library. REQUIRES: home_of() knows the transform."""
    return _ADAPTERS[home_of(transform)]


def moves(transform: Any) -> bool:
    """Whether it is known to change positions in the image."""
    return bool(home_of(transform)) and adapter_of(transform).moves(transform)


def is_composed(transforms: Any) -> bool:
    """Whether it is a composition of torchvision or torch, given instead of a list; or an object
    that has one as its ``transforms``, as the presets of torchvision's reference scripts do.
    """
    homes = {"Compose": "torchvision", "Sequential": "torch"}
    for each in (transforms, getattr(transforms, "transforms", None)):
        kind = type(each)
        if homes.get(kind.__name__) == kind.__module__.partition(".")[0]:
            return callable(transforms)
    return False


def native_names(transform: Any) -> list[str]:
    """The transforms in it that have an operator in headrace.transforms."""
    known = _core.operators()
    names = [type(each).__name__ for each in opened(transform) if home_of(each) == "torchvision"]
    return sorted({name for name in names if name in known})
