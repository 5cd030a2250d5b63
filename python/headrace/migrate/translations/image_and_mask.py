# SPDX-License-Identifier: Apache-2.0
"""Transforms of an image and its mask, as torchvision's reference script for segmentation defines
them for v1, in transforms.py.

They are the script's own classes, so their name is not sufficient: a class is accepted only if,
with the same seeds, it gives the same result as the definition, on generated images and masks.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import importlib
import random
from collections.abc import Callable
from typing import Any

import numpy as np

from headrace import transforms as T
from headrace.dtypes import dtype_name
from headrace.loader.form import Cast
from headrace.migrate.look import guards
from headrace.migrate.look.pictures import alike
from headrace.migrate.originals import value_from_pixels
from headrace.migrate.seeding import seeded
from headrace.migrate.through import passed_through
from headrace.migrate.translations.arguments import numbers_of
from headrace.migrate.translations.registry import Form, Made, NoOperator, shown, translation

Joint = Callable[[Any, Any], tuple[Any, Any]]

_MASK_FILL = 255  # the id of no class
_SEEDS = 8
_LARGEST = 1 << 14


class Pair:
    """``image, mask = joint(image, mask)`` as a function of a record."""

    def __init__(self, joint: Joint) -> None:
        self.joint = joint

    def __call__(self, record: dict[str, Any]) -> dict[str, Any]:
        image, mask = self.joint(record["image"], record["mask"])
        return {**record, "image": image, "mask": mask}

    def __repr__(self) -> str:
        return shown(self.joint)

    def passed_through(self, records: list[dict[str, Any]]) -> list[Pair]:
        """The transforms to which it passes image and mask, in order. Raises PassesNot."""
        probes = [(record["image"], record["mask"]) for record in records]
        return [Pair(each) for each in passed_through(self.joint, probes)]


@dataclasses.dataclass
class _Defined:
    """Pairs the script's class with ours, and both forms without randomness."""

    as_published: Joint
    ours: list[Any]
    steady: list[Any]
    steadily: Joint
    size: int = 64  # sizes of the generated test images


@translation("headrace.Pair")
def pair(transform: Pair, form: Form) -> Made:
    define = _DEFINITIONS.get(type(transform.joint).__name__)
    mask = form.probes[0]["mask"]
    if define is None or (form.kind == "pil" and getattr(mask, "mode", "") not in ("P", "L")):
        raise NoOperator("a callable of your own")
    try:
        found = define(transform.joint, form)
    except (AttributeError, TypeError):  # it is made from other values
        raise NoOperator("a callable of your own") from None
    if not _does(transform.joint, found, form):
        form.casts.clear()
        raise NoOperator("a callable of your own that behaves differently from the published one")
    return found.ours, found.steady, Pair(found.steadily)


def _does(joint: Joint, found: _Defined, form: Form) -> bool:
    """Whether a copy of it gives the same result as the definition, and keeps no state."""
    try:
        joint = copy.deepcopy(joint)
    except Exception:
        return False
    before = guards.held(joint, ())
    size = found.size
    shapes = ((size - 1, size + 2), (size + 5, size), (size + 9, size + 20))
    for seed in range(_SEEDS):
        given = _made(form, shapes[seed % len(shapes)], seed)
        try:
            results = []
            for each in (joint, found.as_published):
                with seeded(seed):
                    results.append(each(*map(_copy, given)))
            if [alike(*both) for both in zip(*results, strict=True)] != [True, True]:
                return False
        except Exception:
            return False
    return before == guards.held(joint, ())


def _made(form: Form, shape: tuple[int, int], seed: int) -> tuple[Any, Any]:
    """An image and a mask of noise."""
    noise = np.random.default_rng(seed)
    rows = noise.integers(0, 256, (3, *shape), np.uint8)
    classes = noise.integers(0, 21, shape, np.uint8)
    if form.kind == "pil":
        mask = value_from_pixels(classes[None], "pil")
        if form.probes[0]["mask"].mode == "P":
            mask.putpalette([number for index in range(256) for number in (index, 0, 255 - index)])
        return value_from_pixels(rows, "pil"), mask
    image, mask = form.probes[0]["image"], form.probes[0]["mask"]
    floats = rows / np.float32(255) if form.dtype.startswith("float") else rows
    return image.new_tensor(floats), mask.new_tensor(classes)


def _copy(value: Any) -> Any:
    return value.clone() if hasattr(value, "clone") else value.copy()


def _functional() -> Any:
    return importlib.import_module("torchvision.transforms.functional")


def _whole(value: Any) -> int:
    if type(value) is not int or not 0 < value < _LARGEST:
        raise TypeError
    return value


# The published definitions.


def _random_resize(transform: Any, form: Form) -> _Defined:
    least, most = _whole(transform.min_size), _whole(transform.max_size)

    def resized(size: int, image: Any, mask: Any) -> tuple[Any, Any]:
        functional = _functional()
        nearest = functional.InterpolationMode.NEAREST
        return functional.resize(image, size), functional.resize(mask, size, nearest)

    form.fixed = False
    return _Defined(
        lambda image, mask: resized(random.randint(least, most), image, mask),
        [T.RandomResize(least, most + 1)],
        [T.Resize(least)],
        functools.partial(resized, least),
    )


def _flip(transform: Any, form: Form) -> _Defined:
    chance = float(transform.flip_prob)

    def flipped(image: Any, mask: Any) -> tuple[Any, Any]:
        return _functional().hflip(image), _functional().hflip(mask)

    return _Defined(
        lambda image, mask: flipped(image, mask) if random.random() < chance else (image, mask),
        [T.RandomHorizontalFlip(chance)],
        [T.RandomHorizontalFlip(1.0)],
        flipped,
    )


def _random_crop(transform: Any, form: Form) -> _Defined:
    size = _whole(transform.size)

    def padded(image: Any, fill: int) -> Any:
        width, height = image.size
        lack = [0, 0, max(size - width, 0), max(size - height, 0)]
        return _functional().pad(image, lack, fill=fill) if any(lack) else image

    def cropped(image: Any, mask: Any) -> tuple[Any, Any]:
        draw = importlib.import_module("torchvision.transforms").RandomCrop.get_params
        image, mask = padded(image, 0), padded(mask, _MASK_FILL)
        window = draw(image, (size, size))
        return _functional().crop(image, *window), _functional().crop(mask, *window)

    def centered(image: Any, mask: Any) -> tuple[Any, Any]:
        crop = _functional().center_crop
        return crop(padded(image, 0), size), crop(padded(mask, _MASK_FILL), size)

    pad = T.PadIfSmaller(size, mask_fill=_MASK_FILL)
    form.fixed = True
    return _Defined(cropped, [pad, T.RandomCrop(size)], [pad, T.CenterCrop(size)], centered, size)


def _center_crop(transform: Any, form: Form) -> _Defined:
    size = _whole(transform.size)

    def cropped(image: Any, mask: Any) -> tuple[Any, Any]:
        crop = _functional().center_crop
        return crop(image, size), crop(mask, size)

    form.fixed = True
    return _Defined(cropped, [T.CenterCrop(size)], [T.CenterCrop(size)], cropped, size)


def _to_tensor(transform: Any, form: Form) -> _Defined:
    import torch

    def converted(image: Any, mask: Any) -> tuple[Any, Any]:
        classes = torch.as_tensor(np.array(mask), dtype=torch.int64)
        return _functional().pil_to_tensor(image), classes

    form.casts["mask"] = Cast("int64", plane=True)
    return _Defined(converted, [], [], converted)


def _to_dtype(transform: Any, form: Form) -> _Defined:
    dtype, scale = transform.dtype, bool(transform.scale)

    def converted(image: Any, mask: Any) -> tuple[Any, Any]:
        if not scale:
            return image.to(dtype=dtype), mask
        return _functional().convert_image_dtype(image, dtype), mask

    ours = [T.ToDtype(dtype_name(dtype), scale=scale)]
    return _Defined(converted, ours, ours, converted)


def _normalize(transform: Any, form: Form) -> _Defined:
    mean, std = numbers_of(transform.mean), numbers_of(transform.std)

    def normalized(image: Any, mask: Any) -> tuple[Any, Any]:
        return _functional().normalize(image, mean=mean, std=std), mask

    ours = [T.Normalize(mean, std)]
    return _Defined(normalized, ours, ours, normalized)


_DEFINITIONS: dict[str, Callable[[Any, Form], _Defined]] = {
    "RandomResize": _random_resize,
    "RandomHorizontalFlip": _flip,
    "RandomCrop": _random_crop,
    "CenterCrop": _center_crop,
    "PILToTensor": _to_tensor,
    "ToDtype": _to_dtype,
    "Normalize": _normalize,
}
