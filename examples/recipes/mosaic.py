# SPDX-License-Identifier: Apache-2.0
"""YOLO's recipe for detection: four records on one canvas, with the boxes of all four.

`python examples/recipes/mosaic.py [INSTANCES.json]` makes batches of 96 x 96. At full size it is
`hr.presets.detection_mosaic(640, mix_within=128)` over
`hr.coco("annotations/instances_train2017.json")`: each image is decoded once for four mosaics.
"""

import sys
from pathlib import Path

import numpy as np

import headrace as hr

examples = Path(__file__).parents[1]
if len(sys.argv) > 1:
    source = hr.coco(sys.argv[1])
else:
    source = hr.coco(examples / "objects.json", images=str(examples / "images"))
    source = hr.subset(source, np.tile(np.arange(len(source)), 8))

train = hr.Loader(
    source,
    hr.presets.detection_mosaic(96, mix_within=20),
    fields=("image", "boxes", "labels"),
    batch_size=10,
    shuffle=True,
    ragged="pad",  # as many rows for each record of a batch, and a mask of those that are its own
)
for batch in train:
    print(f"{batch.image.shape}, boxes {batch.boxes.shape}, of them {int(batch.boxes_mask.sum())}")
