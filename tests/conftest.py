# SPDX-License-Identifier: Apache-2.0
"""Images made with Pillow, and expected facts about them, computed without Headrace."""

from __future__ import annotations

import importlib.metadata
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import headrace as hr

CLASSES = ("cat", "dog", "eel")

# A shell that starts the tests in the background makes them ignore Ctrl-C, and all their child
# processes too: the tests of Ctrl-C would wait forever.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def declare_torchvision_operators() -> Any:
    """With a CPU-only torch, torchvision's CUDA wheel cannot load its C++ operators, and its import
    fails because two of them are missing. The tests do not use them, so they are only declared.
    """
    try:
        version = importlib.metadata.version("torch"), importlib.metadata.version("torchvision")
    except importlib.metadata.PackageNotFoundError:
        return None
    if "+cpu" not in version[0] or "+cpu" in version[1]:
        return None
    from torch.library import Library

    operators = Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        operators.define(f"{name}(Tensor boxes, Tensor scores, float iou_threshold) -> Tensor")
    return operators


TORCHVISION_OPERATORS = declare_torchvision_operators()  # which live as long as this object


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Indexes are written to a folder that only the tests use."""
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture(autouse=True)
def normal_priority() -> Iterator[None]:
    """An encoder of another package may have made the thread a real-time one: see
    ``headrace.write.lerobot.priority``."""
    yield
    if hasattr(os, "sched_setscheduler"):
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


@pytest.fixture(autouse=True)
def own_remote_options() -> Iterator[None]:
    """A test's options end with it. No request is sent twice unless the test asks for that: on a
    busy machine, any request may be slow enough.
    """
    before = hr.remote.configure(hedge=False)
    yield
    hr.remote.configure(**before)


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """23 PNG files in three folders, of differing sizes."""
    root = tmp_path_factory.mktemp("pictures")
    rng = np.random.default_rng(1)
    for number in range(23):
        folder = root / CLASSES[number % 3]
        folder.mkdir(exist_ok=True)
        height, width = rng.integers(20, 60, 2)
        pixels = rng.integers(0, 256, (height, width, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{number:02}.png")
    return root


def files_of(root: Path) -> list[Path]:
    """Records in a folder's order: classes sorted, files sorted in each."""
    return [path for folder in sorted(root.iterdir()) for path in sorted(folder.iterdir())]


def label_of(path: Path) -> int:
    return CLASSES.index(path.parent.name)


def labeled_files_of(root: Path) -> list[tuple[Path, int]]:
    return [(path, label_of(path)) for path in files_of(root)]


def pixels_of(path: Path) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """(C, H, W), as Pillow decodes it."""
    return np.asarray(Image.open(path).convert("RGB")).transpose(2, 0, 1)


def resized(path: Path, height: int, width: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    picture = Image.open(path).convert("RGB").resize((width, height), Image.Resampling.BILINEAR)
    return np.asarray(picture).transpose(2, 0, 1)


class Numbers:
    """Records 0 .. n-1 as an object with len() and [i]."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {"x": np.float32([index, -index]), "label": index % 5}
