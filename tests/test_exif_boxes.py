# SPDX-License-Identifier: Apache-2.0
"""Boxes and instance masks match the image as rotated by its Exif tag."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import headrace as hr
from headrace import transforms as T


@pytest.mark.parametrize("orientation", range(1, 9))
def test_boxes_fit_the_image_rotated_by_its_exif_tag(orientation: int, tmp_path: Path) -> None:
    upright = np.zeros((24, 32), np.uint8)
    upright[4:12, 18:28] = 255
    stored = {
        1: upright,
        2: upright[:, ::-1],
        3: upright[::-1, ::-1],
        4: upright[::-1],
        5: upright.T,
        6: upright.T[::-1],
        7: upright.T[::-1, ::-1],
        8: upright.T[:, ::-1],
    }
    picture = Image.fromarray(np.ascontiguousarray(stored[orientation])).convert("RGB")
    exif = picture.getexif()
    exif[0x0112] = orientation
    picture.save(tmp_path / "0.jpg", quality=100, exif=exif)
    annotation = {"id": 1, "image_id": 0, "category_id": 1, "bbox": [18, 4, 10, 8]}
    annotation["segmentation"] = [[18, 4, 28, 4, 28, 12, 18, 12]]
    images = [{"id": 0, "file_name": "0.jpg", "width": 32, "height": 24}]
    path = tmp_path / "instances.json"
    categories = [{"id": 1, "name": "box"}]
    path.write_text(
        json.dumps({"images": images, "annotations": [annotation], "categories": categories})
    )
    source = hr.coco(str(path), boxes="xyxy", masks=True)
    steps = [T.RandomHorizontalFlip(1), T.Pad(3)]
    (batch,) = hr.Loader(source, steps, batch_size=1, ragged="list", exif_orientation=True)
    shown = np.asarray(batch.image[0])[0] > 127
    np.testing.assert_array_equal(np.asarray(batch.masks[0])[0] == 1, shown)
    ys, xs = np.nonzero(shown)
    assert batch.boxes[0].tolist() == [[xs.min(), ys.min(), xs.max() + 1, ys.max() + 1]]
