# SPDX-License-Identifier: Apache-2.0
"""SSD's recipe for detection: colors, zoom out, IoU crop, flip, and targets like torchvision's.

`python examples/recipes/ssd300.py [INSTANCES.json]` makes batches of 96 x 96. At full size it is
`hr.presets.detection_ssd(300)` over
`hr.coco("annotations/instances_train2017.json", category_ids="keep")`, and the model torchvision's
ssd300_vgg16(). The ids are kept because that model takes label 0 for the background.
"""

import sys
from pathlib import Path

import numpy as np

import headrace as hr

examples = Path(__file__).parents[1]
if len(sys.argv) > 1:
    source = hr.coco(sys.argv[1], category_ids="keep")
else:
    images = examples / "images"
    source = hr.coco(examples / "objects.json", images=str(images), category_ids="keep")
    source = hr.subset(source, np.tile(np.arange(len(source)), 8))

train = hr.Loader(
    source,
    hr.presets.detection_ssd(96),
    fields=("image", "boxes", "labels"),
    batch_size=10,
    shuffle=True,
    ragged="packed",  # boxes of all records in one tensor: efficient for a device
)
for batch in train:
    images, targets = batch.detection()  # as model(images, targets) takes them
    assert all(target["labels"].min(initial=1) > 0 for target in targets)
    assert all(len(target["boxes"]) == len(target["labels"]) for target in targets)
    print(f"{batch.image.shape}, boxes left of each: {[len(t['boxes']) for t in targets]}")
