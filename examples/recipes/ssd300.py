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

# Left, top, right, bottom and what it is: 0 eye, 1 head, 2 shuttle, 3 cup, 4 rocket.
BOXES = {
    "cat": [(132, 84, 207, 147, 0), (298, 108, 346, 162, 0)],
    "astronaut": [(150, 14, 304, 179, 1), (362, 0, 478, 282, 2)],
    "coffee": [(166, 16, 410, 270, 3)],
    "rocket": [(305, 132, 337, 405, 4)],
    "galaxies": [],  # a picture without objects is one as any other
}


def made_records():
    pictures = Path(__file__).parents[1] / "pictures"
    for name, boxes in BOXES.items():
        rows = np.array(boxes, np.float32).reshape(-1, 5)
        yield {
            "image": (pictures / f"{name}.jpg").read_bytes(),
            "boxes": rows[:, :4],
            "labels": rows[:, 4].astype(np.int64),
        }


if len(sys.argv) > 1:
    source = hr.coco(sys.argv[1])
else:
    source = hr.open(
        list(made_records()) * 8,
        kinds={"boxes": "boxes:xyxy"},
        shapes={"boxes": (-1, 4), "labels": (-1,)},
    ).with_row_group("boxes", "labels")

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
