# SPDX-License-Identifier: Apache-2.0
"""Overlays of a record's image: selects the fields to draw, and converts their coordinates."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from headrace.drawing.drawn import Overlay

Numbers = np.ndarray[Any, Any]

# Corners (left, top, right, bottom) of boxes, by box format.
_CORNERS: dict[str, Callable[[Numbers], Sequence[Numbers]]] = {
    "xyxy": lambda b: (b[:, 0], b[:, 1], b[:, 2], b[:, 3]),
    "xywh": lambda b: (b[:, 0], b[:, 1], b[:, 0] + b[:, 2], b[:, 1] + b[:, 3]),
    "cxcywh": lambda b: (
        b[:, 0] - b[:, 2] / 2,
        b[:, 1] - b[:, 3] / 2,
        b[:, 0] + b[:, 2] / 2,
        b[:, 1] + b[:, 3] / 2,
    ),
}
# The same for rotated boxes: x, y of all four corners, in order around the box.
_TURNED: dict[str, Callable[[Numbers], Sequence[Numbers]]] = {
    "xyxyxyxy": lambda b: list(b.T),
    "xywhr": lambda b: _from_corner(*b.T),
    "cxcywhr": lambda b: _from_center(*b.T),
}
_SHARES = "_normalized"  # suffix of formats relative to the image's size
_NAMES = ("labels", "label", "category_ids", "categories", "class_ids", "classes")


def can_be_drawn(output: Mapping[str, Any]) -> bool:
    """Whether a field, given by the engine's description of an output, is drawn or labels what is
    drawn.
    """
    if output["kind"] == "boxes":
        return output["box_format"].removesuffix(_SHARES) in {**_CORNERS, **_TURNED}
    names_rows = output["name"] in _NAMES and len(output["shape"]) == 1
    return output["kind"] in ("mask", "masks", "keypoints") or names_rows


def overlay_of(
    fields: Mapping[str, Any],
    outputs: Mapping[str, Mapping[str, Any]],
    size: tuple[int, int],
    classes: Any,
) -> Overlay:
    """The overlay of one record's fields on an image of ``size`` (height, width); ``classes`` are
    the names of labels, if the source has them.
    """
    boxes, masks, ids, points, names = [], [], [], [], []
    for name, value in fields.items():
        kind = outputs[name]["kind"]
        if kind == "boxes":
            rows = value.reshape(-1, value.shape[-1])
            boxes.append(_around(rows, outputs[name]["box_format"], size))
        elif kind == "masks" and value.dtype.kind in "biu":  # others are maps, such as depth
            masks.append(value.reshape(-1, *value.shape[-2:]))
        elif kind == "mask" and value.dtype.kind in "biu":
            ids.append(value[0])
        elif kind == "keypoints":
            rows = value if value.ndim > 2 else value[None]
            each = math.prod(rows.shape[1:-1])  # -1 would be ambiguous without rows
            points.append(rows.reshape(len(rows), each, rows.shape[-1]))
        elif value.dtype.kind in "iu":
            names = [_called(int(number), classes) for number in value]
    return Overlay(boxes, masks, ids, points, names)


def _around(boxes: Numbers, box_format: str, size: tuple[int, int]) -> Numbers:
    """(n, 4), or (n, 5 or 8) for rotated boxes -> the corners (n, 4, 2) in pixels, in order around
    each box."""
    numbers = boxes.astype(np.float64)
    if box_format.endswith(_SHARES):
        numbers *= (size[1], size[0]) * (numbers.shape[1] // 2)
    known = box_format.removesuffix(_SHARES)
    if known in _TURNED:
        return np.stack(_TURNED[known](numbers), 1).reshape(-1, 4, 2)
    left, top, right, bottom = _CORNERS[known](numbers)
    corners = [(left, top), (right, top), (right, bottom), (left, bottom)]
    return np.stack([np.stack(corner, 1) for corner in corners], 1)


def _from_corner(
    x: Numbers, y: Numbers, width: Numbers, height: Numbers, degrees: Numbers
) -> list[Numbers]:
    cos, sin = np.cos(np.deg2rad(degrees)), np.sin(np.deg2rad(degrees))
    across, down = (width * cos, -width * sin), (height * sin, height * cos)
    steps = [(0, 0), across, (across[0] + down[0], across[1] + down[1]), down]
    return [start + by for step in steps for start, by in zip((x, y), step, strict=True)]


def _from_center(
    x: Numbers, y: Numbers, width: Numbers, height: Numbers, degrees: Numbers
) -> list[Numbers]:
    *_, to_x, to_y = _from_corner(0 * x, 0 * y, width / 2, height / 2, degrees)[:6]
    return _from_corner(x - to_x, y - to_y, width, height, degrees)


def _called(number: int, classes: Any) -> str:
    """The label's name, or its number."""
    try:
        return str(classes[number]) if classes and number >= 0 else str(number)
    except (IndexError, KeyError, TypeError):
        return str(number)
