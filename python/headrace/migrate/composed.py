# SPDX-License-Identifier: Apache-2.0
"""Translates torchvision's Compose, or torch's Sequential, given in place of a loader's list of
transforms.

The input is a Pillow image, as from torchvision's datasets, and a callable gets the result of the
previous transform. Transforms with an equivalent operator run natively.
"""

from __future__ import annotations

from typing import Any

from headrace.errors import Error, warn
from headrace.migrate.originals import value_from_pixels
from headrace.migrate.transform_list import translate
from headrace.migrate.translations.registry import Form, SeveralValues
from headrace.sources import Source

_TRIED, _PROBES = 8, 3  # number of records to inspect, and of images needed
_LYING = ("mask", "masks", "boxes", "keypoints", "video")


def native_steps(source: Source, transforms: Any) -> Any:
    """``transforms``, which is or contains such a composition, as a list of our operators.
    Unchanged if records have more than one image to move: a Python step then gets all of them at
    once (headrace.library_steps)."""
    pictures = [field for field in source.schema if field.is_picture]
    alone = [field.name for field in pictures] == ["image"]
    if not alone or any(str(field.kind) in _LYING for field in source.schema):
        return transforms
    probes = _some_pictures(source)
    if not probes:
        return transforms
    fixed = -1 not in tuple(pictures[0].shape or (-1,))
    steps = []
    try:
        parts = translate(transforms, Form("pil", "uint8", fixed, probes))
    except SeveralValues:  # two views of an image are two fields: T.Views
        return transforms
    if any(part.casts for part in parts):  # dtypes that images do not have
        return transforms
    for part in parts:
        if not part.native:
            names = ", ".join(part.names)
            warn(f"[{names}] runs in Python, one record at a time: {part.note}")
        steps += part.step
    return steps


def _some_pictures(source: Source) -> list[Any]:
    """A few records as Pillow images; none if they are not uint8."""
    out: list[Any] = []
    last = len(source) - 1
    for number in dict.fromkeys((0, len(source) // 2, last, *range(min(_TRIED, last)))):
        try:
            pixels = source[number]["image"]
        except (Error, IndexError):
            continue  # bad records are handled by on_error
        if pixels.dtype == "uint8" and pixels.ndim == 3 and pixels.shape[0] in (1, 3, 4):
            out.append(value_from_pixels(pixels, "pil"))
        if len(out) == _PROBES:
            break
    return out
