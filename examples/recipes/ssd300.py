# SPDX-License-Identifier: Apache-2.0
"""SSD's recipe for detection: colours, zoom out, IoU crop, flip, and targets as torchvision's.

`python examples/recipes/ssd300.py [INSTANCES.json]` makes batches of 96 x 96. At full size it is
`hr.presets.detection_ssd(300)` over `hr.coco("annotations/instances_train2017.json")`, and the
model torchvision's ssd300_vgg16().
"""

import sys
from pathlib import Path

import numpy as np

import headrace as hr

objects = Path(__file__).parents[1] / "pictures" / "objects.json"
source = hr.coco(sys.argv[1] if len(sys.argv) > 1 else objects)
if len(sys.argv) == 1:
    source = hr.subset(source, np.tile(np.arange(len(source)), 8))

train = hr.Loader(
    source,
    hr.presets.detection_ssd(96),
    fields=("image", "boxes", "labels"),
    batch_size=10,
    shuffle=True,
    ragged="packed",  # boxes of all records one after another: what a device likes
)
for batch in train:
    targets = batch.per_record("boxes", "labels")  # a dictionary for each record
    assert all(len(target["boxes"]) == len(target["labels"]) for target in targets)
    print(f"{batch.image.shape}, boxes left of each: {[len(t['boxes']) for t in targets]}")
