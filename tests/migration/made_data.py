# SPDX-License-Identifier: Apache-2.0
"""Small datasets for tests, in the layouts that training scripts expect."""

from __future__ import annotations

import csv
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

# No network requests, and nothing is written into the user's home.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("NO_ALBUMENTATIONS_UPDATE", "1")
os.environ.setdefault("YOLO_CONFIG_DIR", tempfile.gettempdir())
os.environ.setdefault("YOLO_OFFLINE", "1")

CLASSES = ("cat", "dog", "eel")
COUNT = 36
# Widths and heights: landscape, portrait and square.
SIZES = ((120, 90), (90, 120), (100, 100), (128, 72), (75, 131))


def photo(number: int, size: tuple[int, int]) -> Image.Image:
    """Smooth colors with some edges, which suit JPEG; no two alike."""
    width, height = size
    y, x = np.mgrid[0:height, 0:width]
    waves = [128 + 100 * np.sin(x / (7 + k + number % 5) + y / (11 - k) + number) for k in range(3)]
    image = Image.fromarray(np.stack(waves, axis=-1).astype(np.uint8))
    draw = ImageDraw.Draw(image)
    left, top = 10 + number % 20, 12 + number % 17
    draw.rectangle((left, top, left + 30, top + 24), fill=(200, 30, number * 7 % 256))
    return image


def save(number: int, path: Path, size: tuple[int, int] | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    photo(number, size or SIZES[number % len(SIZES)]).save(path, quality=90)
    return path


def image_folder(root: Path, size: tuple[int, int] | None = None) -> Path:
    """root/train/CLASS/NUMBER.jpg and root/val/CLASS/NUMBER.jpg"""
    for number in range(COUNT):
        name = CLASSES[number % len(CLASSES)]
        save(number, root / "train" / name / f"{number:03}.jpg", size)
        if number < COUNT // 2:
            save(number + COUNT, root / "val" / name / f"{number:03}.jpg", size)
    return root


def table(root: Path) -> Path:
    """root/images/NUMBER.jpg, and root/train.csv with a line per image: image,label"""
    with (root / "train.csv").open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["image", "label"])
        for number in range(COUNT):
            path = save(number, root / "images" / f"{number:03}.jpg")
            out.writerow([path.name, number % len(CLASSES)])
    return root


def coco(root: Path) -> Path:
    """root/train2017/NUMBER.jpg and root/annotations/instances_train2017.json; likewise val2017.

    Up to three objects per image, of three of COCO's categories, with polygons; each seventh
    image of train2017 has none, and one object in nine is a crowd (run lengths).
    """
    categories = [{"id": 1, "name": "person"}, {"id": 3, "name": "car"}, {"id": 18, "name": "dog"}]
    (root / "annotations").mkdir(parents=True, exist_ok=True)
    for split, count in (("train2017", COUNT), ("val2017", COUNT // 2)):
        images: list[dict[str, Any]] = []
        objects: list[dict[str, Any]] = []
        for number in range(count):
            width, height = SIZES[number % len(SIZES)]
            name = f"{number:012}.jpg"
            save(number, root / split / name)
            images.append({"id": number + 1, "file_name": name, "width": width, "height": height})
            for k in range(0 if number % 7 == 3 else 1 + number % 3):
                objects.append(_object(len(objects) + 1, number, k, width, height))
        found = {"images": images, "annotations": objects, "categories": categories}
        (root / "annotations" / f"instances_{split}.json").write_text(json.dumps(found))
    return root


def _object(identity: int, number: int, k: int, width: int, height: int) -> dict[str, Any]:
    x, y = 5.0 + 9 * k + number % 4, 6.5 + 7 * k
    w, h = width / 3 + 2.25 * k, height / 2.5
    corners: Any = [[x, y, x + w, y, x + w, y + h, x + w / 3, y + h]]
    crowd = int(identity % 9 == 0)
    if crowd:
        corners = {"counts": [width * height // 2, 200, width * height - width * height // 2 - 200]}
        corners["size"] = [height, width]
    return {
        "id": identity,
        "image_id": number + 1,
        "category_id": (1, 3, 18)[(number + k) % 3],
        "bbox": [x, y, w, h],
        "area": w * h,
        "iscrowd": crowd,
        "segmentation": corners,
    }


def voc(root: Path) -> Path:
    """root/VOCdevkit/VOC2012 as torchvision.datasets.VOCSegmentation reads it, train and val."""
    base = root / "VOCdevkit" / "VOC2012"
    names: dict[str, list[str]] = {"train": [], "val": []}
    for number in range(COUNT):
        name = f"2007_{number:06}"
        names["val" if number % 3 == 2 else "train"].append(name)
        size = SIZES[number % len(SIZES)]
        save(number, base / "JPEGImages" / f"{name}.jpg", size)
        mask = Image.new("P", size, 0)
        mask.putpalette([c for index in range(256) for c in (index, 255 - index, index * 7 % 256)])
        draw = ImageDraw.Draw(mask)
        draw.ellipse((10, 10, 50, 40 + number % 9), fill=1 + number % 20)
        draw.line((0, 0, size[0], size[1]), fill=255, width=3)
        (base / "SegmentationClass").mkdir(parents=True, exist_ok=True)
        mask.save(base / "SegmentationClass" / f"{name}.png")
    (base / "ImageSets" / "Segmentation").mkdir(parents=True)
    for split, listed in names.items():
        text = "".join(f"{name}\n" for name in listed)
        (base / "ImageSets" / "Segmentation" / f"{split}.txt").write_text(text)
    return root


def yolo(root: Path) -> Path:
    """NUMBER.jpg below images, and NUMBER.txt below labels: class, then x, y, w, h."""
    for number in range(COUNT):
        save(number, root / "images" / "train" / f"{number:03}.jpg")
        rows = [
            f"{(number + k) % 3} {0.3 + 0.1 * k:.4f} {0.4 + 0.05 * k:.4f} 0.2500 0.3000"
            for k in range(number % 4)
        ]
        path = root / "labels" / "train" / f"{number:03}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(rows))
    return root
