# SPDX-License-Identifier: Apache-2.0
"""Default boxes get the same targets as from DALI's box_encoder."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace import transforms as T


def encoded(boxes: Any, labels: Any, anchors: Any, offset: bool, stds: Any) -> Any:
    """DALI's box_encoder, following its rules, in float32."""
    f32 = np.float32
    low = np.maximum(boxes[:, None, :2], anchors[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], anchors[None, :, 2:])
    common = np.maximum(high - low, f32(0)).prod(2, dtype=f32)
    area = lambda b: (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1])  # noqa: E731
    iou = common / (area(boxes)[:, None] + area(anchors)[None] - common)
    for row in range(len(boxes)):
        iou[row, np.flatnonzero(iou[row] == iou[row].max())[-1]] = 2
    center = lambda b: np.concatenate([f32(0.5) * (b[:, :2] + b[:, 2:]), b[:, 2:] - b[:, :2]], 1)  # noqa: E731
    of, out = center(anchors), np.zeros_like(anchors) if offset else center(anchors)
    classes = np.zeros(len(anchors), np.int64)
    for at in range(len(anchors)):
        best = np.flatnonzero(iou[:, at] == iou[:, at].max())[-1] if len(boxes) else None
        if best is None or not iou[best, at] > 0.5:
            continue
        classes[at] = labels[best]
        box = center(boxes[best : best + 1])[0]
        if offset:
            box[:2] = (box[:2] - of[at, :2]) / of[at, 2:]
            box[2:] = np.log(box[2:] / of[at, 2:])
            box /= f32(stds)
        out[at] = box
    return out, classes


@pytest.mark.parametrize("offset", [False, True])
def test_each_anchor_gets_the_same_box_as_from_dali(offset: bool) -> None:
    rng = np.random.default_rng(2)
    corners = np.sort(rng.uniform(0, 1, (60, 2, 2)), 1).astype("f4")
    anchors = np.concatenate([corners.reshape(60, 4), corners[:4].reshape(4, 4)])  # some equal
    data = []
    for rows in (0, 1, 3, 12):
        boxes = np.sort(rng.uniform(0, 1, (rows, 2, 2)), 1).astype("f4").reshape(-1, 4)
        boxes[rows // 2 :] = anchors[rng.integers(0, 60, rows - rows // 2)]
        data.append({"image": np.zeros((3, 8, 8), np.uint8), "boxes": boxes})
        data[-1]["labels"] = np.arange(1, rows + 1)
    shapes = {"boxes": (-1, 4), "labels": (-1,)}
    source = hr.open(data, kinds={"boxes": "boxes:xyxy_normalized"}, shapes=shapes)
    stds = [0.1, 0.1, 0.2, 0.2]
    step = T.EncodeBoxes(anchors.ravel().tolist(), offset=offset, stds=stds)
    loader = hr.Loader(
        source.with_row_group("boxes", "labels"), [step], batch_size=4, shuffle=False
    )
    batch = next(iter(loader))
    assert batch.boxes.shape == (4, 64, 4) and batch.labels.shape == (4, 64)
    for i, record in enumerate(data):
        boxes, labels = encoded(record["boxes"], record["labels"], anchors, offset, stds)
        np.testing.assert_array_equal(batch.labels[i], labels)
        np.testing.assert_allclose(batch.boxes[i], boxes, rtol=3e-7, atol=1e-7)
    with pytest.raises(hr.ConfigError, match="no area"):
        hr.Loader(source, [T.EncodeBoxes([0.5, 0.5, 0.5, 0.9])], batch_size=2)
