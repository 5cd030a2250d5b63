# SPDX-License-Identifier: Apache-2.0
"""Typical datasets and transforms of users, and the comparison of batches in the tests of
from_dataloader."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

import headrace as hr


class Invert:
    """A user's transform of Pillow images."""

    def __call__(self, image: Any) -> Any:
        from PIL import ImageOps

        return ImageOps.invert(image)


class Grow:
    """Its output has a different size and dtype."""

    def __call__(self, image: Any) -> Any:
        return np.repeat(np.asarray(image).transpose(2, 0, 1), 2, axis=1).astype(np.float32)


class Counting:
    """Keeps state: each call returns something different."""

    calls = 0

    def __call__(self, image: Any) -> Any:
        from PIL import Image

        Counting.calls += 1
        return Image.fromarray(np.full_like(np.asarray(image), Counting.calls % 256))


class Words:
    """A map-style dataset of an unknown class."""

    def __len__(self) -> int:
        return 11

    def __getitem__(self, index: int) -> dict[str, Any]:
        noise = np.float32([random.random(), np.random.random()])
        return {
            "x": np.full((2, 3), index, np.int32),
            "text": f"n{index}",
            "y": 1.5,
            "noise": noise,
        }


def plus_ten(label: int) -> int:
    return label + 10


def half(label: int) -> Any:
    return np.float32([label / 2, label])


def first_of(batch: Any) -> Any:
    return batch[0]


def translated(dataloader: Any, **options: Any) -> Any:
    return hr.from_dataloader(dataloader, verbose=False, **options)


def assert_same_batches(dataloader: Any, loader: Any, tolerance: float = 0) -> None:
    """Every batch of an epoch, dtypes and shapes included."""
    import torch

    theirs, ours = list(dataloader), list(loader.torch())
    assert len(ours) == len(theirs)
    for ours_batch, theirs_batch in zip(ours, theirs, strict=True):
        assert len(ours_batch) == len(theirs_batch)
        for mine, other in zip(ours_batch, theirs_batch, strict=True):
            assert mine.dtype == other.dtype and mine.shape == other.shape
            torch.testing.assert_close(mine, torch.as_tensor(other), rtol=0, atol=tolerance)
