# SPDX-License-Identifier: Apache-2.0
"""Ultralytics' own loader with its default augmentation: mosaic, scale and translation, HSV, flip.

It runs unmodified in a separate environment; Headrace contains none of its code.
"""

import os

import torch
from coco_rows import records_for
from protocol import serve


def write_dataset(job):
    """Pictures and labels in its format: each picture under a different name for each of its
    repeats."""
    images, labels = (os.path.join(job.prepared, name) for name in ("images", "labels"))
    os.makedirs(images, exist_ok=True)
    os.makedirs(labels, exist_ok=True)
    most = 0
    for path, (height, width), boxes, classes in records_for(job):
        lines = []
        for (x, y, w, h), label in zip(boxes, classes, strict=True):
            box = ((x + w / 2) / width, (y + h / 2) / height, w / width, h / height)
            lines.append(" ".join(map(str, [label, *(min(max(v, 0.0), 1.0) for v in box)])))
            most = max(most, label)
        name = os.path.splitext(os.path.basename(path))[0]
        for number in range(job.repeat):
            link = os.path.join(images, f"{number:03}-{name}.jpg")
            if not os.path.exists(link):
                os.symlink(path, link)
            with open(os.path.join(labels, f"{number:03}-{name}.txt"), "w") as file:
                file.write("\n".join(lines))
    return images, most + 1


def make_batches(job):
    from ultralytics.cfg import get_cfg
    from ultralytics.data.build import build_dataloader, build_yolo_dataset

    torch.set_num_threads(1)
    images, classes = write_dataset(job)
    config = get_cfg(overrides={"task": "detect", "mode": "train", "imgsz": 640, "fraction": 1.0})
    data = {"names": {i: str(i) for i in range(classes)}, "nc": classes, "channels": 3}
    dataset = build_yolo_dataset(config, images, job.batch_size, data, mode="train")
    loader = build_dataloader(dataset, job.batch_size, job.threads, shuffle=True)
    return lambda: (len(batch["img"]) for batch in loader)


serve(make_batches)
