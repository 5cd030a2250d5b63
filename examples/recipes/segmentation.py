# SPDX-License-Identifier: Apache-2.0
"""A recipe for segmentation: the mask follows its image, and resampling never creates new ids.

`python examples/recipes/segmentation.py` makes batches of 96 x 96 from masks that are made here. At
full size it is `hr.presets.segmentation_train(480)` over your folder of images and masks.
"""

from pathlib import Path

import numpy as np

import headrace as hr


def made_records():
    """Images, and a mask of what is brighter than their mean."""
    for path in sorted((Path(__file__).parents[1] / "images").glob("*.jpg")):
        image = hr.records(image=[str(path)])[0]["image"]
        mean = image.mean(0)
        yield {"image": image, "mask": (mean > mean.mean()).astype(np.uint8)[None]}


source = hr.open(
    list(made_records()) * 4,
    kinds={"mask": "mask"},
    shapes={"image": (3, -1, -1), "mask": (1, -1, -1)},
)
train = hr.Loader(source, hr.presets.segmentation_train(96, base=120), batch_size=8, shuffle=True)
for batch in train:
    images, masks = batch.segmentation()  # (B, 3, H, W) float32 and (B, H, W) int64
    assert images.shape[-2:] == masks.shape[-2:]
    found = set(np.unique(masks).tolist())
    assert found <= {0, 1, 255}, found
    print(f"{images.shape} {images.dtype}, masks {masks.shape} {masks.dtype} with ids {found}")
