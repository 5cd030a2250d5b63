# SPDX-License-Identifier: Apache-2.0
"""Sizes, crops, flips, and erasing."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from headrace import transforms as T
from headrace.migrate.originals import pixels_from_value
from headrace.migrate.translations.arguments import (
    antialias_of,
    fill_of,
    numbers_of,
    sibling,
    size_of,
)
from headrace.migrate.translations.registry import (
    Form,
    Made,
    NoOperator,
    image_of,
    translation,
)


@translation("Resize", resamples=True)
def resize(transform: Any, form: Form) -> Made:
    ours = T.Resize(
        size_of(transform.size),
        interpolation=transform.interpolation,
        max_size=transform.max_size,
        antialias=antialias_of(transform, form),
    )
    short_edge = (
        transform.size is None or isinstance(transform.size, int) or len(transform.size) == 1
    )
    form.fixed = not short_edge
    return [ours], [ours], transform


@translation("RandomResizedCrop", resamples=True, sizes=True)
def random_resized_crop(transform: Any, form: Form) -> Made:
    how = {"interpolation": transform.interpolation, "antialias": antialias_of(transform, form)}
    size = size_of(transform.size)
    ours = T.RandomResizedCrop(size, scale=transform.scale, ratio=transform.ratio, **how)
    whole = [size, size] if isinstance(size, int) else size
    original = sibling(transform, "Resize")(whole, **how)
    return [ours], [T.Resize(whole, **how)], original


@translation("CenterCrop", sizes=True)
def center_crop(transform: Any, form: Form) -> Made:
    ours = T.CenterCrop(size_of(transform.size))
    return [ours], [ours], transform


@translation("Pad")
def pad(transform: Any, form: Form) -> Made:
    padding = transform.padding if isinstance(transform.padding, int) else list(transform.padding)
    ours = T.Pad(padding, fill=fill_of(transform.fill, form), padding_mode=transform.padding_mode)
    return [ours], [ours], transform


@translation("RandomCrop", sizes=True)
def random_crop(transform: Any, form: Form) -> Made:
    size, fill, mode = (
        size_of(transform.size),
        fill_of(transform.fill, form),
        transform.padding_mode,
    )
    padding = _padding_of(transform)
    ours = T.RandomCrop(
        size,
        padding=padding,
        pad_if_needed=transform.pad_if_needed,
        fill=fill,
        padding_mode=mode,
    )
    crop = _centered(transform)
    if not padding:
        return [ours], [T.CenterCrop(size)], crop
    left, top, right, bottom = padding

    def padded(value: Any) -> Any:
        """Runs the transform itself, with the whole image as the only possible window."""
        height, width = pixels_from_value(image_of(value)).shape[-2:]
        whole = copy.copy(transform)
        whole.size = (height + top + bottom, width + left + right)
        return whole(value)

    steady = [T.Pad(padding, fill=fill, padding_mode=mode), T.CenterCrop(size)]
    return [ours], steady, lambda value: crop(padded(value))


def _centered(transform: Any) -> Callable[[Any], Any]:
    """torchvision's CenterCrop of the same size, on an image padded in advance: if CenterCrop does
    the padding, its boxes can be off by a pixel."""
    crop, pad = sibling(transform, "CenterCrop")(transform.size), sibling(transform, "Pad")

    def centered(value: Any) -> Any:
        size = pixels_from_value(image_of(value)).shape[-2:]
        lack = [max(0, wanted - there) for wanted, there in zip(crop.size, size, strict=True)]
        if any(lack):
            value = pad([lack[1] // 2, lack[0] // 2, (lack[1] + 1) // 2, (lack[0] + 1) // 2])(value)
        return crop(value)

    return centered


def _padding_of(transform: Any) -> list[int] | None:
    """Padding as left, top, right, bottom. v2 stores left, right, top, bottom, and v1 the original
    argument."""
    given = transform.padding
    if given is None or given == 0:
        return None
    if isinstance(given, int):
        return [given] * 4
    sides = [int(extent) for extent in given]
    if type(transform).__module__.startswith("torchvision.transforms.v2"):
        left, right, top, bottom = sides
        return [left, top, right, bottom]
    return {1: sides * 4, 2: sides * 2}.get(len(sides), sides)


@translation("RandomHorizontalFlip", "RandomVerticalFlip")
def flip(transform: Any, form: Form) -> Made:
    kind = getattr(T, type(transform).__name__)
    always = copy.copy(transform)
    always.p = 1.0
    return [kind(p=float(transform.p))], [kind(p=1.0)], always


@translation("RandomErasing")
def random_erasing(transform: Any, form: Form) -> Made:
    if form.kind == "pil":
        raise NoOperator("torchvision cannot erase in Pillow images")
    value = transform.value
    noise = value is None or isinstance(value, str)
    if noise and form.dtype == "uint8":
        raise NoOperator('value="random" is noise around 0, which uint8 cannot hold')
    ours = T.RandomErasing(
        p=float(transform.p),
        scale=numbers_of(transform.scale),
        ratio=numbers_of(transform.ratio),
        value="random" if noise else numbers_of(value),
    )
    return [ours], [], lambda value: value  # without randomness, it does nothing
