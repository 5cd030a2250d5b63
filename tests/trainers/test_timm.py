# SPDX-License-Identifier: Apache-2.0
"""create_loader in place of timm's: train.py's use of a loader, and a kill in mid-epoch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forked import notes_of, output_of
from PIL import Image

torch = pytest.importorskip("torch")
pytest.importorskip("timm")
from headrace.trainers.timm import create_loader  # noqa: E402
from timm.data import FastCollateMixup, create_dataset  # noqa: E402


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("timm")
    for number in range(24):
        folder = root / "train" / f"class{number % 3}"
        folder.mkdir(parents=True, exist_ok=True)
        pixels = np.random.default_rng(number).integers(0, 256, (40, 50, 3), np.uint8)
        Image.fromarray(pixels).save(folder / f"{number}.jpg")
    return root


def loader_of(root: Path, **options: Any) -> Any:
    dataset = create_dataset("", str(root), split="train", is_training=True)
    given = {"is_training": True, "num_workers": 0, "device": torch.device("cpu"), **options}
    return create_loader(dataset, (3, 32, 32), 4, verbose=False, **given)


def set_loader_epoch(loader: Any, epoch: int) -> None:
    """As train.py's _set_loader_epoch of timm 1.0.31."""
    if hasattr(loader.dataset, "set_epoch"):
        loader.dataset.set_epoch(epoch)
    if hasattr(loader.batch_sampler, "set_epoch"):
        loader.batch_sampler.set_epoch(epoch)
    elif hasattr(loader.sampler, "set_epoch"):
        loader.sampler.set_epoch(epoch)


def test_it_has_the_attributes_that_train_py_uses(root: Path) -> None:
    mixup = FastCollateMixup(mixup_alpha=0.8, num_classes=3)
    loader = loader_of(root, collate_fn=mixup)
    set_loader_epoch(loader, 2)
    images, target = next(iter(loader))
    assert images.dtype == torch.float32 and target.shape == (4, 3)
    assert loader.epoch == 2 and len(loader) == 6 and loader.mixup_enabled is True
    loader.mixup_enabled = False  # --mixup-off-epoch
    _, target = next(iter(loader))
    assert torch.equal(target.sort()[0][:, :2] < 0.5, torch.ones(4, 2, dtype=torch.bool))
    python = [part.name.partition("(")[0] for part in loader.report.python]
    assert python == ["PrefetchLoader", "collate_fn=FastCollateMixup"], "the rest is native"


def test_without_the_prefetcher_batches_fit_the_loop(root: Path) -> None:
    images, target = next(iter(loader_of(root, use_prefetcher=False)))
    assert images.shape == (4, 3, 32, 32) and target.dtype == torch.int64


def test_two_ranks_resume_exactly_after_a_kill(root: Path, tmp_path: Path) -> None:
    output_of("trainers/ranks_timm.py", tmp_path, root, cwd=tmp_path)
    for rank in range(2):
        whole, killed, resumed = (
            notes_of(tmp_path, name, rank) for name in ("whole", "killed", "resumed")
        )
        assert len(whole) == 6 and killed == whole[:3] and resumed == whole[1:]
