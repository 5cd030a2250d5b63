# SPDX-License-Identifier: Apache-2.0
"""Images whose pixels a transform reads are decoded in groups of neighboring records: no result may
depend on the group."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import headrace as hr
from headrace import transforms as T

STEPS = {
    "measures": [T.RandomResizedCrop(64), T.ColorJitter(0.4, 0.4, 0.4, 0.1)],
    "seldom": [T.RandomApply([T.RandomEqualize(0.5)], p=0.5), T.Resize((64, 64))],
    "resizes twice": [T.Resize((90, 80)), T.RandomCrop(70), T.Resize((64, 64))],
    "measures twice": [T.AdjustContrast(0.5), T.Resize((64, 64)), T.RandomAutocontrast(0.5)],
    "two images": [
        T.Fork("image", a=[T.RandomCrop(100)], b=[T.RandomCrop(90)]),
        T.AdjustContrast(1.5),
        T.Resize((64, 64)),
    ],
}


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """JPEGs and PNGs of several sizes, and some that are truncated."""
    folder = tmp_path_factory.mktemp("pictures")
    rng = np.random.default_rng(0)
    for i in range(40):
        height, width = rng.integers(120, 400, 2)
        coarse = rng.integers(0, 256, (height // 16 + 1, width // 16 + 1, 3), np.uint8)
        picture = Image.fromarray(coarse).resize(
            (int(width), int(height)), Image.Resampling.BICUBIC
        )
        path = folder / f"{i:02d}.{'png' if i % 7 == 3 else 'jpg'}"
        picture.save(path, **({"quality": 90} if path.suffix == ".jpg" else {}))
        if i % 9 == 4:
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    return folder


def rows(folder: Path, steps: list[Any], **options: Any) -> list[str]:
    """A digest of each row, in order."""
    options = {"batch_size": 1, "threads": 1, "shuffle": False} | options
    loader = hr.Loader(hr.open(folder), steps, on_error="substitute", seed=3, **options)
    fields = ("a", "b") if "Fork" in repr(steps) else ("image",)
    out = []
    for batch in loader:
        for values in zip(*(batch[name] for name in fields), strict=True):
            out.append(
                hashlib.sha256(b"".join(np.asarray(v).tobytes() for v in values)).hexdigest()
            )
    return out


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("threads", [1, 3])
def test_rows_equal_those_of_images_decoded_alone(pictures: Path, steps: str, threads: int) -> None:
    alone = rows(pictures, STEPS[steps])
    assert len(set(alone)) > 20
    assert rows(pictures, STEPS[steps], batch_size=16, threads=threads) == alone


def test_a_record_without_memory_in_its_group_is_decoded_next(pictures: Path) -> None:
    """The memory left next to two batches suffices for some records of a group, not for all."""
    steps = [T.Resize((1100, 1100)), T.AdjustContrast(0.5), T.Resize((64, 64))]
    alone = rows(pictures, steps)
    for mebibytes in (40, 48, 56, 80):
        limit = f"{mebibytes} MiB"
        assert rows(pictures, steps, batch_size=16, threads=2, memory_limit=limit) == alone


def test_a_loop_left_in_mid_epoch_can_start_over(pictures: Path) -> None:
    steps = [T.Resize((64, 64)), T.AdjustContrast(0.5)]
    loader = hr.Loader(pictures, steps, batch_size=8, threads=2, on_error="skip", shuffle=False)
    whole = [batch["image"].copy() for batch in loader]
    for _ in range(20):
        for batch in loader:
            assert np.array_equal(batch["image"], whole[0])
            break
    assert all(np.array_equal(a["image"], b) for a, b in zip(loader, whole, strict=True))
