# SPDX-License-Identifier: Apache-2.0
"""The baseline: PyTorch's DataLoader with Pillow on the same photos. Run as a separate program.

The transforms are torchvision's where it is installed; otherwise this file implements them as
torchvision does for Pillow images (random resized crop, flip, to tensor, normalize).
"""

from __future__ import annotations

import argparse
import importlib
import math
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np

from headrace.insight.demo.timing import time_loop
from headrace.insight.demo.training import TorchTrainer
from headrace.plain_json import json_text

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def pillow_window(width: int, height: int) -> tuple[int, int, int, int]:
    """RandomResizedCrop's window as (left, upper, right, lower)."""
    for _ in range(10):
        area = width * height * random.uniform(0.08, 1.0)
        ratio = math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            x, y = random.randint(0, width - w), random.randint(0, height - h)
            return x, y, x + w, y + h
    w, h = min(width, round(height * 4 / 3)), min(height, round(width * 4 / 3))
    x, y = (width - w) // 2, (height - h) // 2
    return x, y, x + w, y + h


class PillowTransforms:
    """Random resized crop to 224, flip, float32 in 0..1, normalize."""

    name = "Pillow"

    def __init__(self) -> None:
        import torch

        self._mean, self._std = (torch.tensor(v).view(3, 1, 1) for v in (MEAN, STD))

    def __call__(self, picture: Any) -> Any:
        import torch
        from PIL import Image

        window = pillow_window(*picture.size)
        picture = picture.crop(window).resize((224, 224), Image.Resampling.BILINEAR)
        if random.random() < 0.5:
            picture = picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        tensor = torch.from_numpy(np.array(picture)).permute(2, 0, 1).contiguous()
        return tensor.to(torch.float32).div(255).sub_(self._mean).div_(self._std)


def make_transforms() -> Any:
    try:
        V = importlib.import_module("torchvision.transforms")
    except (ImportError, RuntimeError):  # RuntimeError: it does not match the installed torch
        return PillowTransforms()
    steps = [
        V.RandomResizedCrop(224),
        V.RandomHorizontalFlip(),
        V.ToTensor(),
        V.Normalize(MEAN, STD),
    ]
    composed = V.Compose(steps)
    composed.name = "torchvision and Pillow"
    return composed


class Photos:
    """A map-style dataset over a folder with one subfolder per class, like ImageFolder."""

    def __init__(self, root: Path, transforms: Any) -> None:
        self.classes = sorted(p.name for p in root.iterdir() if p.is_dir())
        self._files = [
            (f, i) for i, c in enumerate(self.classes) for f in sorted((root / c).iterdir())
        ]
        self._transforms = transforms

    def __len__(self) -> int:
        return len(self._files)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        from PIL import Image

        path, label = self._files[index]
        with open(path, "rb") as file:
            return self._transforms(Image.open(file).convert("RGB")), label


def main() -> None:
    import torch
    from torch.utils.data import DataLoader

    parser = argparse.ArgumentParser()
    parser.add_argument("photos", type=Path)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--batch-size", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    args = parser.parse_args()
    torch.set_num_threads(1)
    photos = Photos(args.photos, make_transforms())
    dataset: Any = photos  # map-style: only __len__ and __getitem__ are needed
    loader: Any = DataLoader(
        dataset, args.batch_size, shuffle=True, num_workers=args.threads, persistent_workers=True
    )
    feeding = time_loop(loader, args.seconds)
    training = time_loop(loader, args.seconds, TorchTrainer(len(photos.classes)))
    result = {
        "name": f"DataLoader, {photos._transforms.name}",
        "feeding": feeding._asdict(),
        "training": training._asdict(),
    }
    sys.stdout.write(json_text(result))


if __name__ == "__main__":
    main()
