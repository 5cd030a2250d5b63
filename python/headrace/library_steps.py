# SPDX-License-Identifier: Apache-2.0
"""Transforms of torchvision and Albumentations as steps.

They take ``image``, or the fields that ``T.Python(transform, fields=("image", "mask"))`` names.
Those cross in one call, so that one draw moves all of them, each as its kind is moved.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from headrace import _core
from headrace.errors import declare

_CANNOT_TAKE = declare(
    "HR0680",
    "config",
    "fields that a library's transform cannot take",
    "A transform of torchvision.transforms.v2 takes images and masks together, an Albumentations "
    "transform one image and one mask, one of torchvision's first version one image. For anything "
    "else (boxes, whose format only you know) write a function that takes the fields: "
    "def step(image, boxes).",
)

Words = Sequence[int]  # of randomness: steps.Words
Kinds = Sequence[str]  # of the fields, in their order
Adapted = Callable[[list[Any], Kinds, Words], list[Any]]


def home_of(transform: Any) -> str:
    """The library that the transform comes from, if it is one of those known here."""
    home = type(transform).__module__.partition(".")[0]
    return home if home in _ADAPTERS else ""


def adapted(transform: Any) -> Adapted:
    """What calls it with the values of fields. REQUIRES: check() has passed."""
    return _ADAPTERS[home_of(transform)](transform)


def check(transform: Any, kinds: Kinds) -> None:
    """ConfigError where it cannot take fields of these kinds in one call."""
    if list(kinds) in (["image"], ["tensor"]):
        return
    if home_of(transform) == "albumentations":
        fits = sorted(kinds) == ["image", "mask"]
    else:
        second = type(transform).__module__.startswith("torchvision.transforms.v2")
        fits = (second or len(kinds) == 1) and set(kinds) <= {"image", "mask", "masks"}
    if not fits:
        raise _CANNOT_TAKE.error(
            f"[{type(transform).__name__}] is given fields of the kinds {', '.join(kinds)}",
            hint="def step(image, boxes): ... takes any fields by the names of its arguments",
        )


def moves(transform: Any) -> bool:
    """Whether it is known to change where things are in a picture."""
    return any(_moves(each) for each in _opened(transform))


def native_names(transform: Any) -> list[str]:
    """Those in it that headrace.transforms has as well."""
    known = _core.operators()
    names = [type(each).__name__ for each in _opened(transform) if home_of(each) == "torchvision"]
    return sorted({name for name in names if name in known})


def _opened(transform: Any) -> Iterator[Any]:
    """It, or what is in it: Compose, RandomApply, OneOf and their like have ``transforms``."""
    inner: Any = getattr(transform, "transforms", None)
    if home_of(transform) and hasattr(inner, "__iter__"):
        for each in inner:
            yield from _opened(each)
    else:
        yield transform


def _moves(transform: Any) -> bool:
    kind = type(transform)
    if home_of(transform) == "albumentations":
        return any(base.__name__ == "DualTransform" for base in kind.__mro__)
    place = kind.__module__
    if place.startswith("torchvision.transforms"):
        named = place.endswith(".transforms") and kind.__name__ in _GEOMETRY_OF_V1
        return named or place.endswith(("._geometry", "._auto_augment", ".autoaugment"))
    return False


# Those of torchvision.transforms (v1), where all classes are in one module.
_GEOMETRY_OF_V1 = {
    "CenterCrop",
    "ElasticTransform",
    "FiveCrop",
    "Pad",
    "RandomAffine",
    "RandomCrop",
    "RandomHorizontalFlip",
    "RandomPerspective",
    "RandomResizedCrop",
    "RandomRotation",
    "RandomVerticalFlip",
    "Resize",
    "TenCrop",
}


def _torchvision(transform: Any) -> Adapted:
    """torchvision draws from torch's global generator: seeded for the record, then put back."""

    def call(values: list[Any], kinds: Kinds, words: Words) -> list[Any]:
        torch = sys.modules["torch"]
        tv_tensors = sys.modules.get("torchvision.tv_tensors")
        given = [torch.from_numpy(value) for value in values]
        if tv_tensors:
            given = [
                (tv_tensors.Mask if kind in ("mask", "masks") else tv_tensors.Image)(tensor)
                for kind, tensor in zip(kinds, given, strict=True)
            ]
        state = torch.random.get_rng_state()
        torch.random.default_generator.manual_seed(words[0] | words[1] << 32)
        try:
            out = transform(*given)
        finally:
            torch.random.set_rng_state(state)
        return [out] if len(given) == 1 else list(out)

    return call


def _albumentations(transform: Any) -> Adapted:
    """Albumentations takes (H, W, C) by name and can be seeded."""

    def call(values: list[Any], kinds: Kinds, words: Words) -> list[Any]:
        if hasattr(transform, "set_random_seed"):
            transform.set_random_seed(words[0])
        names = ["mask" if kind == "mask" else "image" for kind in kinds]
        given = {}
        for name, value in zip(names, values, strict=True):
            pixels = value[0] if name == "mask" else value.transpose(1, 2, 0)
            given[name] = np.ascontiguousarray(pixels)
        out = transform(**given)
        return [_channels_first(out[name]) for name in names]

    return call


def _channels_first(value: Any) -> Any:
    if hasattr(value, "detach"):  # ToTensorV2 gives (C, H, W), and masks as (H, W)
        return value if value.ndim == 3 else value[None]
    return np.atleast_3d(value).transpose(2, 0, 1)


_ADAPTERS: dict[str, Callable[[Any], Adapted]] = {
    "torchvision": _torchvision,
    "albumentations": _albumentations,
}
