# SPDX-License-Identifier: Apache-2.0
"""From a torch DataLoader to Headrace, with a report on each part.

`python examples/migrate.py`

Headrace does not know this dataset, so it continues to run as a Python transform, here in two
processes. torchvision's ImageFolder, CIFAR10, MNIST, CocoDetection and others become native.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import headrace as hr

IMAGES = Path(__file__).parent / "images"


class Photos:
    """A torch Dataset: a length, and records by index."""

    def __init__(self, folder: Path) -> None:
        self.files = sorted(folder.glob("*.jpg"))

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        image = Image.open(self.files[index]).convert("RGB").resize((64, 64))
        pixels = np.asarray(image, np.float32).transpose(2, 0, 1) / 255
        return pixels, index


# Worker processes import this file, so code that must run only once is under the guard.
if __name__ == "__main__":
    try:
        from torch.utils.data import DataLoader
    except ImportError:
        sys.exit(print("This example needs PyTorch: pip install torch"))

    theirs = DataLoader(Photos(IMAGES), batch_size=4, num_workers=2)  # type: ignore[arg-type]
    ours = hr.from_dataloader(theirs, python_workers=2)
    for images, labels in ours.torch():
        print(images.dtype, tuple(images.shape), labels.tolist())
