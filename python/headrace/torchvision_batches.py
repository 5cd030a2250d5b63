# SPDX-License-Identifier: Apache-2.0
"""Batches in the form of torchvision's reference scripts.

``images, targets = batch.detection()`` for its detectors, ``images, masks = batch.segmentation()``
for its segmentation models.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from headrace.errors import declare
from headrace.per_record import Layout, Rows, per_record

_NO_TARGETS = declare(
    "HR0744",
    "config",
    "batch not valid for torchvision's models",
    "torchvision's detectors need boxes as corners in pixels (xyxy) and labels from 1: 0 is the "
    "background, and objects labeled 0 would silently be learned as background. Its "
    "segmentation models need one mask of class ids per image. batch.detection() and "
    "batch.segmentation() check this.",
)

# Names that torchvision's reference scripts use for COCO's fields.
_NAMES = {"areas": "area", "crowd": "iscrowd"}


def detection(
    layout: Layout, values: Mapping[str, Any], image: str = "image"
) -> tuple[list[Any], list[dict[str, Any]]]:
    """The images, and for each a dictionary with the record's other fields."""
    rows = layout.by_name()
    for name, each in rows.items():
        if each.kind == "boxes" and each.box_format not in ("xyxy", ""):
            raise _NO_TARGETS.error(
                f"{name!r} are {each.box_format}",
                hint='convert them with T.ConvertBoundingBoxFormat("xyxy")',
            )
    targets = per_record(layout, values, [])
    images = [target.pop(image) for target in targets]
    for target in targets:
        labels = target.get("labels")
        if labels is not None and _has_zero(labels):
            raise _NO_TARGETS.error(
                "a label is 0, which is the background",
                hint='hr.coco(..., category_ids="keep") keeps the labels of the file, from 1',
            )
        if "image_id" in target:
            target["image_id"] = int(target["image_id"])
    return images, [{_NAMES.get(k, k): v for k, v in target.items()} for target in targets]


def segmentation(
    layout: Layout, values: Mapping[str, Any], image: str = "image", mask: str = "mask"
) -> tuple[Any, Any]:
    """The images unchanged, and the masks as class ids: (B, H, W), int64."""
    masks: Any = values.get(mask)
    shape: tuple[int, ...] = getattr(masks, "shape", ())
    if layout.by_name().get(mask, Rows()).how != "stack" or len(shape) != 4 or shape[1] != 1:
        what = "a list" if isinstance(masks, list) else f"of shape {tuple(shape)}"
        raise _NO_TARGETS.error(
            f"{mask!r} is {what}" if masks is not None else f"no field {mask!r}",
            hint="add a RandomCrop or Resize to one size, or pass the field's name as mask=",
        )
    return values[image], _as_int64(masks[:, 0])


def _has_zero(labels: Any) -> bool:
    return bool((labels == 0).any()) if len(labels) else False


def _as_int64(ids: Any) -> Any:
    if hasattr(ids, "long"):
        return ids.long()
    return ids.astype(np.int64) if hasattr(ids, "astype") else np.asarray(ids).astype(np.int64)
