# SPDX-License-Identifier: Apache-2.0
"""Datasets for the trials, generated here, so that a run needs no other data."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
from PIL import Image


def picture(rng: np.random.Generator, width: int, height: int) -> Image.Image:
    """A smooth image with some noise: compressible, and different from all others."""
    coarse = rng.integers(0, 256, (4, 4, 3), dtype=np.uint8)
    smooth = np.asarray(Image.fromarray(coarse).resize((width, height), Image.Resampling.BILINEAR))
    noise = rng.integers(-8, 9, smooth.shape)
    return Image.fromarray(np.clip(smooth + noise, 0, 255).astype(np.uint8))


def photos(folder: Path, count: int, random: random.Random, side: tuple[int, int]) -> Path:
    """A folder of ``count`` JPEGs in four classes, each side between the two bounds."""
    rng = np.random.default_rng(random.getrandbits(32))
    for number in range(count):
        place = folder / f"class-{number % 4}" / f"{number:05}.jpg"
        place.parent.mkdir(parents=True, exist_ok=True)
        width, height = rng.integers(side[0], side[1] + 1, 2)
        picture(rng, int(width), int(height)).save(place, quality=90)
    return folder
