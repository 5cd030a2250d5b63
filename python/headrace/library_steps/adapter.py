# SPDX-License-Identifier: Apache-2.0
"""Shared by the adapters of libraries: selecting the fields, and the checks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from headrace.errors import declare

CANNOT_TAKE = declare(
    "HR0680",
    "config",
    "fields not supported by the library's transform",
    "A torchvision.transforms.v2 transform takes images, masks, boxes in a known format, "
    "keypoints, and the rows that belong to these as tensors. An Albumentations Compose takes one "
    "image, one mask, masks, and with bbox_params and keypoint_params boxes and keypoints. A "
    "torchvision v1 transform takes one image. For anything else write a function that takes the "
    "fields: def step(image, boxes).",
)
Words = Sequence[int]  # random words: steps.Words


class Taken(NamedTuple):
    """A field as passed to a transform; ``shape``: of one record, -1 where records differ."""

    name: str
    kind: str
    box_format: str = ""
    shape: tuple[int, ...] = ()
    row_group: int = 0
    clamping: str = "soft"

    @property
    def is_picture(self) -> bool:
        return self.kind in ("image", "mask", "video")

    @property
    def has_open_rows(self) -> bool:
        """Whether it is a numeric array with one row per object."""
        return self.kind not in _NO_ROWS and self.shape[:1] == (-1,)


LYING_PIXELS = ("image", "mask", "masks", "video")  # kinds whose values have a height and a width
_NO_ROWS = ("image", "mask", "video", "text", "bytes")
Kinds = Sequence[Taken]
Adapted = Callable[[list[Any], Kinds, Words], list[Any]]


class Adapter(NamedTuple):
    """How to call the transforms of one library."""

    adapted: Callable[[Any], Adapted]  # a function that calls it with the fields' values
    moves: Callable[[Any], bool]  # whether it is known to change positions in the image
    chosen: Callable[[Any, Kinds], list[str]]  # the fields to pass, in the order of the call
    check: Callable[[Any, Kinds], None]  # ConfigError HR0680 if it cannot take these fields


def home_of(transform: Any) -> str:
    """The library of the transform or its base class; "" if unknown."""
    homes = (base.__module__.partition(".")[0] for base in type(transform).__mro__)
    return next((home for home in homes if home in ("torchvision", "albumentations")), "")


def opened(transform: Any) -> Iterator[Any]:
    """The transform, or those in it: Compose, RandomApply, OneOf and similar ones have
    ``transforms``.
    """
    inner: Any = getattr(transform, "transforms", None)
    if home_of(transform) and hasattr(inner, "__iter__"):
        for each in inner:
            yield from opened(each)
    else:
        yield transform


def refuse(transform: Any, fields: Iterable[Taken], why: str = "", hint: str = "") -> Exception:
    """Raises HR0680."""
    given = ", ".join(f"{field.name} ({field.kind})" for field in fields)
    return CANNOT_TAKE.error(
        f"[{type(transform).__name__}] is given {given}" + (f": {why}" if why else ""),
        hint=hint or "def step(image, boxes): ... takes the fields that its arguments name",
    )


def mates(of: Taken, fields: Kinds) -> list[Taken]:
    """The other fields that are declared to have rows for the same objects."""
    same = [f for f in fields if f.row_group == of.row_group and f.kind not in _NO_ROWS]
    return [f for f in same if of.row_group and f.name != of.name]


def canvas_of(fields: Kinds, values: list[Any]) -> tuple[int, int]:
    """Height and width of the first image, whose coordinates the other fields use."""
    for field, value in zip(fields, values, strict=True):
        if hasattr(value, "getbands"):  # a Pillow image
            return value.height, value.width
        if field.kind in LYING_PIXELS:
            return int(value.shape[-2]), int(value.shape[-1])
    return 0, 0


def check_sizes(fields: Kinds, values: list[Any]) -> None:
    """Raises ValueError if the record has rows and images of several sizes: it is unknown which one
    they refer to.
    """
    if not {"boxes", "keypoints", "masks"} & {f.kind for f in fields}:
        return
    canvas = canvas_of(fields, values)
    for field, value in zip(fields, values, strict=True):
        if field.kind in LYING_PIXELS and value.size > 0 and value.shape[-2:] != canvas:
            raise ValueError(f'"{field.name}" is {value.shape[-2:]}, but the image is {canvas}')


def check_rows(fields: Kinds, before: list[Any], after: list[Any], hint: str) -> None:
    """Raises ValueError if rows of one field were dropped, but not the related rows: labels would
    belong to other boxes. For fields without a row group, fields with the same number of rows count
    as related.
    """
    rows = [f for f in fields if f.kind not in _NO_ROWS]
    changed = [
        (f, len(b), len(a))
        for f, b, a in zip(fields, before, after, strict=True)
        if f in rows and np.ndim(b) > 0 and np.ndim(a) > 0
    ]
    for field, count, left in changed:
        if left == count:
            continue
        for other, of_other, left_of_other in changed:
            if (other.row_group, of_other) == (field.row_group, count) and left_of_other != left:
                raise ValueError(
                    f'it returned {left} of {count} rows of "{field.name}" and {left_of_other} of '
                    f'"{other.name}"; {hint}'
                )
