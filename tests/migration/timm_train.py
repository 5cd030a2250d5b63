# SPDX-License-Identifier: Apache-2.0
"""timm's train.py: create_dataset, create_loader with its prefetcher, FastCollateMixup."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
from timm.data import FastCollateMixup, Mixup, create_dataset, create_loader
from torch import nn

MIXUP = {
    "mixup_alpha": 0.8,
    "cutmix_alpha": 1.0,
    "prob": 1.0,
    "switch_prob": 0.5,
    "mode": "batch",
    "label_smoothing": 0.1,
    "num_classes": 3,
}


def loaders(
    root: Path,
    *,
    batch_size: int = 8,
    prefetcher: bool = True,
    mixup: dict[str, Any] | None = None,
    workers: int = 0,
    size: int = 64,
    **options: Any,
) -> Any:
    """The training and the validation loader, and mixup_fn for a loop without the prefetcher."""
    dataset_train = create_dataset(
        "", root=str(root), split="train", is_training=True, batch_size=batch_size
    )
    dataset_eval = create_dataset(
        "", root=str(root), split="val", is_training=False, batch_size=batch_size
    )
    common = {
        "input_size": (3, size, size),
        "batch_size": batch_size,
        "num_workers": workers,
        "device": torch.device("cpu"),
        "use_prefetcher": prefetcher,
    }
    collate_fn = FastCollateMixup(**mixup) if mixup and prefetcher else None
    mixup_fn = Mixup(**mixup) if mixup and not prefetcher else None
    train: dict[str, Any] = {
        "re_prob": 0.25,
        "re_mode": "pixel",
        "auto_augment": "rand-m7-mstd0.5-inc1",
        "color_jitter": 0.4,
        "interpolation": "random",
    }
    loader_train = create_loader(
        dataset_train, is_training=True, collate_fn=collate_fn, **common, **{**train, **options}
    )
    loader_eval = create_loader(
        dataset_eval, is_training=False, interpolation="bicubic", crop_pct=0.9, **common
    )
    return loader_train, loader_eval, mixup_fn


def train_one_epoch(
    epoch: int, model: nn.Module, loader: Any, optimizer: Any, mixup_fn: Any
) -> float:
    if getattr(loader, "mixup_enabled", False) and epoch >= 1:  # --mixup-off-epoch 1
        loader.mixup_enabled = False
    sampler = getattr(loader, "sampler", None)
    if hasattr(sampler, "set_epoch"):
        sampler.set_epoch(epoch)
    last = 0.0
    for index, (images, target) in enumerate(loader):
        if mixup_fn is not None:
            images, target = mixup_fn(images, target)
        loss = nn.functional.cross_entropy(model(images), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        assert index < len(loader)
        last = loss.item()
    return last


def validate(model: nn.Module, loader: Any) -> int:
    seen = 0
    with torch.no_grad():
        for images, _target in loader:
            model(images)
            seen += images.size(0)
    return seen


def main(root: Path, epochs: int = 2) -> None:
    loader_train, loader_eval, mixup_fn = loaders(root, mixup=MIXUP)
    model = nn.Sequential(nn.Conv2d(3, 4, 8, stride=8), nn.ReLU(), nn.Flatten(), nn.Linear(256, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(epochs):
        loss = train_one_epoch(epoch, model, loader_train, optimizer, mixup_fn)
        print(f"epoch {epoch}: loss {loss:.3f}, {validate(model, loader_eval)} validated")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
