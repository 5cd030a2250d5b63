# SPDX-License-Identifier: Apache-2.0
"""A transform of your own: any Python function may be in the list.

`python examples/python_step.py [FOLDER]`
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np

import headrace as hr
from headrace import transforms as T


def speckle(image: Any, rng: np.random.Generator) -> Any:
    """Sets one pixel of a hundred to white. Arguments are fields; rng belongs to this record."""
    return np.where(rng.random(image.shape[1:]) < 0.01, np.uint8(255), image)


loader = hr.Loader(
    sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent / "images",
    [T.RandomResizedCrop(64), speckle, T.RandomHorizontalFlip()],
    fields="image",
    batch_size=4,
    seed=1,
)
for (images,) in loader:
    white = (images == 255).all(axis=1).mean()
    print(f"{images.dtype} {images.shape}, {white:.1%} of the pixels are white")

# The draws are a function of (seed, epoch, position): a repeated batch has the same speckles.
assert np.array_equal(loader.batch(0, 0).image, loader.batch(0, 0).image)
