# SPDX-License-Identifier: Apache-2.0
"""Loaders of many types over one folder of photos: orders, batches, transforms."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

import headrace as hr
from headrace import transforms as T

GLOBAL_BATCH = 24  # divisible by 1, 2, 3, 4, 6 and 8 ranks
CROP = (T.RandomResizedCrop(16), T.RandomHorizontalFlip())
COLORS = (T.RandomResizedCrop(16), T.ColorJitter(0.4, 0.4, 0.4), T.RandAugment())


def noisy(image: Any, rng: Any) -> Any:
    """A Python transform that draws random numbers."""
    return image ^ np.uint8(rng.integers(256))


KINDS: dict[str, dict[str, Any]] = {
    "in order": {"transforms": CROP},
    "shuffled": {"transforms": CROP, "shuffle": True},
    "blocks": {"transforms": CROP, "shuffle": "blocks"},
    "streams": {"transforms": CROP, "shuffle": "streams"},
    "colors": {"transforms": COLORS, "shuffle": True},
    "mixed": {"transforms": (*CROP, T.MixUp(num_classes=4, uint8=True)), "shuffle": True},
    "erased": {"transforms": (*CROP, T.RandomErasing(p=0.5)), "shuffle": True},
    "python": {"transforms": (*CROP, noisy), "shuffle": True},
    "dropped": {"transforms": CROP, "shuffle": True, "last_batch": "drop"},
    "padded": {"transforms": CROP, "shuffle": True, "last_batch": "pad"},
    "cached": {"transforms": CROP, "shuffle": True, "cache": 1 << 22},
    "resident": {"transforms": (T.Resize((16, 16)), T.RandomHorizontalFlip()), "resident": True},
    "weighted": {
        "transforms": CROP,
        "sampler": lambda n: hr.sampling.weighted(np.arange(1, n + 1), num_samples=n),
    },
}


def loader_of(kind: str, photos: Path, seed: int, **more: Any) -> hr.Loader:
    options = dict(KINDS[kind])
    steps = list(options.pop("transforms"))
    source = hr.open(photos)
    if "sampler" in options:  # which needs the number of records
        options["sampler"] = options["sampler"](len(source))
    keywords = {"global_batch_size": GLOBAL_BATCH, "fields": ["image", "label", "id"], **options}
    return hr.Loader(source, steps, seed=seed, **{**keywords, **more})


def digest(batch: Any) -> str:
    """A digest that is equal if every value of two batches is."""
    values = hashlib.sha256()
    for field in batch:
        values.update(np.ascontiguousarray(field).tobytes())
    return values.hexdigest()[:16]
