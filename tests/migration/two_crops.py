# SPDX-License-Identifier: Apache-2.0
"""MoCo's and SimSiam's main scripts: ImageFolder and two random views of each image."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

import torch
from PIL import ImageFilter
from torch import nn
from torch.utils.data import DataLoader
from torchvision import datasets, transforms


class TwoCropsTransform:
    """Two random views of one image, as a list."""

    def __init__(self, base_transform: Any) -> None:
        self.base_transform = base_transform

    def __call__(self, x: Any) -> list[Any]:
        query = self.base_transform(x)
        key = self.base_transform(x)
        return [query, key]


class GaussianBlur:
    """Pillow's blur, with a radius drawn for each image."""

    def __init__(self, sigma: tuple[float, float] = (0.1, 2.0)) -> None:
        self.sigma = sigma

    def __call__(self, x: Any) -> Any:
        sigma = random.uniform(self.sigma[0], self.sigma[1])
        return x.filter(ImageFilter.GaussianBlur(radius=sigma))


def augmentation(aug_plus: bool, size: int) -> list[Any]:
    """MoCo v1's, or with aug_plus those of MoCo v2 and SimSiam."""
    normalize = transforms.Normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])
    if aug_plus:
        return [
            transforms.RandomResizedCrop(size, scale=(0.2, 1.0)),
            transforms.RandomApply([transforms.ColorJitter(0.4, 0.4, 0.4, 0.1)], p=0.8),
            transforms.RandomGrayscale(p=0.2),
            transforms.RandomApply([GaussianBlur((0.1, 2.0))], p=0.5),
            transforms.RandomHorizontalFlip(),
            transforms.ToTensor(),
            normalize,
        ]
    return [
        transforms.RandomResizedCrop(size, scale=(0.2, 1.0)),
        transforms.RandomGrayscale(p=0.2),
        transforms.ColorJitter(0.4, 0.4, 0.4, 0.4),
        transforms.RandomHorizontalFlip(),
        transforms.ToTensor(),
        normalize,
    ]


def train_loader(
    root: Path,
    *,
    steps: list[Any] | None = None,
    aug_plus: bool = False,
    batch_size: int = 8,
    shuffle: bool = True,
    workers: int = 0,
    size: int = 64,
) -> Any:
    views = TwoCropsTransform(transforms.Compose(steps or augmentation(aug_plus, size)))
    dataset = datasets.ImageFolder(root / "train", views)
    return DataLoader(
        dataset,
        batch_size=batch_size,
        shuffle=shuffle,
        num_workers=workers,
        pin_memory=False,
        sampler=None,
        drop_last=True,
    )


def train(loader: Any, model: nn.Module, optimizer: Any) -> float:
    last = 0.0
    for _i, (images, _) in enumerate(loader):
        query, key = model(images[0]), model(images[1])
        loss = -nn.functional.cosine_similarity(query, key.detach()).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        last = loss.item()
    return last


def main(root: Path, epochs: int = 1) -> None:
    loader = train_loader(root, aug_plus=True)
    model = nn.Sequential(nn.Conv2d(3, 4, 8, stride=8), nn.ReLU(), nn.Flatten(), nn.Linear(256, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(epochs):
        print(f"epoch {epoch}: loss {train(loader, model, optimizer):.3f}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
