# SPDX-License-Identifier: Apache-2.0
"""A transform of Albumentations as a step.

A Compose gets ``image``, ``mask`` and ``masks``, and if it has bbox_params and keypoint_params, the
boxes and keypoints. An extra column of row numbers shows which boxes remain, so that all fields of
their row group lose the same rows, whether or not label_fields lists them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.library_steps.adapter import (
    Adapted,
    Adapter,
    Kinds,
    Taken,
    Words,
    check_rows,
    check_sizes,
    mates,
    opened,
    refuse,
)

# Names of our formats in Albumentations.
_FORMATS = {
    "xyxy": "pascal_voc",
    "xywh": "coco",
    "xyxy_normalized": "albumentations",
    "cxcywh_normalized": "yolo",
}


def _moves(transform: Any) -> bool:
    bases = (base for each in opened(transform) for base in type(each).__mro__)
    return any(base.__name__ == "DualTransform" for base in bases)


def _params(transform: Any, of: str) -> Any:
    """Its BboxParams ("bboxes") or KeypointParams ("keypoints"); None if it has none."""
    processor = getattr(transform, "processors", {}).get(of)
    return getattr(processor, "params", None)


def _chosen(transform: Any, seen: Kinds) -> list[str]:
    boxes, points = _params(transform, "bboxes"), _params(transform, "keypoints")
    if not (_moves(transform) or boxes or points):
        return ["image"]
    wanted: list[str] = []

    def first(kind: str, preferred: str = "") -> Taken | None:
        of_kind = [f for f in seen if f.kind == kind]
        named = [f for f in of_kind if f.name == preferred]
        found = named or of_kind
        wanted.extend(field.name for field in found[:1])
        return found[0] if found else None

    if first("image", "image") is None:
        return ["image"]
    first("mask", "mask")
    first("masks")
    box = first("boxes") if boxes else None
    if points:
        first("keypoints")
    if boxes and box:
        wanted += [f.name for f in mates(box, seen)]
        wanted += list(boxes.label_fields or ())
    names = {f.name for f in seen}
    unknown = [name for name in wanted if name not in names]
    if unknown:
        raise refuse(
            transform,
            seen,
            f"label_fields names {unknown[0]!r}, which is not a field",
            "label_fields= lists fields of the record; it may be omitted, since rows follow "
            "their boxes",
        )
    return [f.name for f in seen if f.name in wanted]


def _check(transform: Any, fields: Kinds) -> None:
    kinds = [f.kind for f in fields]
    if kinds in (["image"], ["tensor"]):
        return
    for kind in ("image", "mask", "masks", "boxes", "keypoints"):
        if kinds.count(kind) > 1:
            raise refuse(transform, fields, f"it takes one field of the kind {kind}")
    if "image" not in kinds:
        raise refuse(transform, fields, "it needs an image", 'fields=("image", "mask")')
    boxes, points = _params(transform, "bboxes"), _params(transform, "keypoints")
    for field in fields:
        if field.kind == "boxes":
            _check_boxes(transform, fields, field, boxes)
        elif field.kind == "keypoints" and (
            points is None
            or points.format != "xy"
            or points.remove_invisible
            or points.label_fields
        ):
            raise refuse(
                transform,
                fields,
                "it may drop keypoints, and other fields would no longer match",
                "Compose(..., keypoint_params=KeypointParams('xy', remove_invisible=False))",
            )
        elif field.kind in ("text", "bytes", "tensor", "label") and "boxes" not in kinds:
            raise refuse(transform, fields, f'"{field.name}" has no related boxes')


def _check_boxes(transform: Any, fields: Kinds, field: Taken, params: Any) -> None:
    format_ = _FORMATS.get(field.box_format)
    if format_ is None:
        raise refuse(
            transform,
            fields,
            f'the format of "{field.name}" is {field.box_format or "unknown"}',
            f'it takes one of {", ".join(_FORMATS)}: kinds={{"boxes": "boxes:xyxy"}}',
        )
    if getattr(params, "format", None) != format_:
        raise refuse(
            transform,
            fields,
            f'"{field.name}" is {field.box_format}',
            f"Compose(..., bbox_params=BboxParams({format_!r}))",
        )


def _adapted(transform: Any) -> Adapted:
    """Calls a transform that takes (H, W, C) by name and can be seeded."""

    def call(values: list[Any], fields: Kinds, words: Words) -> list[Any]:
        if hasattr(transform, "set_random_seed"):
            transform.set_random_seed(words[0])
        check_sizes(fields, values)
        labels = getattr(_params(transform, "bboxes"), "label_fields", None) or ()
        given: dict[str, Any] = {}
        for field, value in zip(fields, values, strict=True):
            given.update(_given(field, value))
            if field.name in labels:
                given[field.name] = value.tolist()
        if len(fields) == 1:  # a single tensor counts as an image
            picture = np.ascontiguousarray(values[0].transpose(1, 2, 0))
            return [_channels_first(transform(image=picture)["image"])]
        out = transform(**given)
        back = _Back(out, fields, len(given.get("bboxes", ())))
        returned = [back.value(f, value) for f, value in zip(fields, values, strict=True)]
        hint = "source.with_row_group() declares related fields, label_fields= lists labels"
        check_rows(fields, values, returned, hint)
        return returned

    return call


def _given(field: Taken, value: Any) -> dict[str, Any]:
    if field.kind == "mask":
        return {"mask": np.ascontiguousarray(value[0])}
    if field.kind == "masks":
        planes = value.reshape(-1, *value.shape[-2:])
        planes = planes.view(np.uint8) if planes.dtype == bool else planes
        return {"masks": planes} if len(planes) else {}
    if field.kind == "boxes":
        if value.dtype.kind != "f":
            raise TypeError(
                f"{field.name} is {value.dtype}, but Albumentations computes in float32: "
                "deliver floats, or use the transforms of Headrace"
            )
        return {"bboxes": _numbered(value.reshape(-1, 4))}
    if field.kind == "keypoints":
        return {"keypoints": _numbered(value.reshape(-1, value.shape[-1])[:, :2])}
    if field.kind == "image":
        return {"image": np.ascontiguousarray(value.transpose(1, 2, 0))}
    return {}


def _numbered(rows: Any) -> Any:
    """float32 rows with the row number as the last column, exact up to 16 million rows."""
    return np.column_stack([rows, np.arange(len(rows))]).astype(np.float32)


class _Back:
    """The results, by field."""

    def __init__(self, out: dict[str, Any], fields: Kinds, count: int) -> None:
        self._out = out
        boxes = [f for f in fields if f.kind == "boxes"]
        self._kept = np.arange(count)  # numbers of the remaining rows of boxes
        if boxes:
            self._boxes = np.asarray(out["bboxes"], np.float64).reshape(-1, 5)
            self._kept = self._boxes[:, 4].astype(np.int64)
        labels = {f.name for f in fields if f.kind in ("tensor", "label")}
        self._rows = {f.name for b in boxes for f in mates(b, fields)}
        if boxes and boxes[0].row_group == 0:
            self._rows |= labels

    def value(self, field: Taken, before: Any) -> Any:
        if field.kind == "boxes":
            boxes = self._boxes[:, :4].astype(before.dtype)
            return boxes.reshape(before.shape) if before.ndim == 1 and len(boxes) == 1 else boxes
        if field.kind == "keypoints":
            moved = np.asarray(self._out["keypoints"], np.float64).reshape(-1, 3)
            after = before.reshape(-1, before.shape[-1]).copy()
            after[moved[:, 2].astype(np.int64), :2] = moved[:, :2]
            return self._left(field, after.reshape(before.shape))
        if field.kind == "masks":
            return self._left(field, self._masks(before))
        if field.kind == "mask":
            return _channels_first(self._out["mask"])
        if field.kind == "image":
            return _channels_first(self._out["image"])
        return self._left(field, before)

    def _masks(self, before: Any) -> Any:
        if not before.size:
            height, width = _channels_first(self._out["image"]).shape[1:]
            return np.zeros((*before.shape[:-2], height, width), before.dtype)
        planes = np.asarray(self._out["masks"])
        planes = planes.view(bool) if before.dtype == bool else planes
        return planes.reshape(*before.shape[:-2], *planes.shape[-2:])

    def _left(self, field: Taken, value: Any) -> Any:
        return value[self._kept] if field.name in self._rows else value


def _channels_first(value: Any) -> Any:
    if hasattr(value, "detach"):  # ToTensorV2 gives (C, H, W), and masks as (H, W)
        return value if value.ndim == 3 else value[None]
    return np.atleast_3d(value).transpose(2, 0, 1)


ADAPTER = Adapter(_adapted, _moves, _chosen, _check)
