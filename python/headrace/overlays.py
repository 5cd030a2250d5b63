# SPDX-License-Identifier: Apache-2.0
"""What of a record is drawn over its picture: which fields, and where their numbers say it lies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from headrace.charts.drawn import Overlay

Numbers = np.ndarray[Any, Any]

# Corners (left, top, right, bottom) of boxes by what their numbers are.
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
_SHARES = "_normalized"  # of formats whose numbers are shares of the picture's sides
_NAMES = ("labels", "label", "category_ids", "categories", "class_ids", "classes")


def can_be_drawn(output: Mapping[str, Any]) -> bool:
    """Whether a field, as the engine describes an output, is drawn or names what is."""
    if output["kind"] == "boxes":
        return output["box_format"].removesuffix(_SHARES) in _CORNERS
    names_rows = output["name"] in _NAMES and len(output["shape"]) == 1
    return output["kind"] in ("mask", "masks", "keypoints") or names_rows


def overlay_of(
    fields: Mapping[str, Any],
    outputs: Mapping[str, Mapping[str, Any]],
    size: tuple[int, int],
    classes: Any,
) -> Overlay:
    """Of one record's fields, over a picture of ``size`` (height, width); ``classes`` are the names
    of labels, where the source has them."""
    boxes, masks, ids, points, names = [], [], [], [], []
    for name, value in fields.items():
        kind = outputs[name]["kind"]
        if kind == "boxes":
            boxes.append(_around(value.reshape(-1, 4), outputs[name]["box_format"], size))
        elif kind == "masks" and value.dtype.kind in "biu":  # others are maps, such as depth
            masks.append(value.reshape(-1, *value.shape[-2:]))
        elif kind == "mask" and value.dtype.kind in "biu":
            ids.append(value[0])
        elif kind == "keypoints":
            rows = value if value.ndim > 2 else value[None]
            points.append(rows.reshape(len(rows), -1, value.shape[-1]))
        elif value.dtype.kind in "iu":
            names = [_called(int(number), classes) for number in value]
    return Overlay(boxes, masks, ids, points, names)


def _around(boxes: Numbers, box_format: str, size: tuple[int, int]) -> Numbers:
    """(n, 4) -> the corners (n, 4, 2) in pixels, one after the other around each box."""
    numbers = boxes.astype(np.float64)
    if box_format.endswith(_SHARES):
        numbers *= (size[1], size[0]) * 2
    left, top, right, bottom = _CORNERS[box_format.removesuffix(_SHARES)](numbers)
    corners = [(left, top), (right, top), (right, bottom), (left, bottom)]
    return np.stack([np.stack(corner, 1) for corner in corners], 1)


def _called(number: int, classes: Any) -> str:
    """The label's name, or its number."""
    try:
        return str(classes[number]) if classes and number >= 0 else str(number)
    except (IndexError, KeyError, TypeError):
        return str(number)
