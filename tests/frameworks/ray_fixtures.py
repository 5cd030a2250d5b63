# SPDX-License-Identifier: Apache-2.0
"""Fixtures shared by all tests of Ray: one cluster, and photos."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from ray_cluster import two_nodes


@pytest.fixture(scope="session")
def cluster() -> Iterator[Any]:
    with two_nodes() as nodes:
        yield nodes


@pytest.fixture(scope="session")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """96 photos in three classes, two of which are truncated: 07 and 31."""
    folder = tmp_path_factory.mktemp("photos")
    draws = np.random.default_rng(1)
    for number in range(96):
        path = folder / f"{number % 3}" / f"{number:02}.jpg"
        path.parent.mkdir(exist_ok=True)
        small = Image.fromarray(draws.integers(0, 255, (12, 16, 3), np.uint8))
        small.resize((400, 300), Image.Resampling.BICUBIC).save(path, quality=90)
        if number in (7, 31):
            path.write_bytes(path.read_bytes()[:2000])
    return folder


@pytest.fixture(scope="session")
def whole_photos(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The photos that are not truncated."""
    folder = tmp_path_factory.mktemp("whole")
    for path in photos.rglob("*.jpg"):
        if path.stat().st_size > 2000:
            target = folder / path.parent.name / path.name
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(path.read_bytes())
    return folder
