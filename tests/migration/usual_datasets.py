# SPDX-License-Identifier: Apache-2.0
"""Datasets as in notebooks: a table of files, Pillow or OpenCV, a transform."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset, random_split
from torchvision import transforms


def rows_of(root: Path) -> list[tuple[str, int]]:
    with (root / "train.csv").open(newline="") as file:
        return [(row["image"], int(row["label"])) for row in csv.DictReader(file)]


class CsvDataset(Dataset[Any]):
    """Pillow, and a table of file names and labels."""

    def __init__(self, root: Path, transform: Callable[[Any], Any] | None = None) -> None:
        self.root = root
        self.rows = rows_of(root)
        self.transform = transform

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, idx: int) -> Any:
        name, label = self.rows[idx]
        image = Image.open(self.root / "images" / name).convert("RGB")
        if self.transform is not None:
            image = self.transform(image)
        return image, label


class NamedDataset(CsvDataset):
    """The same as a dictionary, with a tensor for the label and the file's name."""

    def __getitem__(self, idx: int) -> Any:
        name, label = self.rows[idx]
        with (self.root / "images" / name).open("rb") as file:
            image = Image.open(file).convert("RGB")
        assert self.transform is not None
        return {
            "image": self.transform(image),
            "label": torch.tensor(label, dtype=torch.long),
            "name": name,
        }


class Transformed(Dataset[Any]):
    """A transform for one part of random_split."""

    def __init__(self, subset: Any, transform: Callable[[Any], Any]) -> None:
        self.subset = subset
        self.transform = transform

    def __len__(self) -> int:
        return len(self.subset)

    def __getitem__(self, idx: int) -> Any:
        image, label = self.subset[idx]
        return self.transform(image), label


class OpenCvDataset(Dataset[Any]):
    """OpenCV and Albumentations."""

    def __init__(self, root: Path, transform: Any) -> None:
        self.root = root
        self.rows = rows_of(root)
        self.transform = transform

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, idx: int) -> Any:
        import cv2

        name, label = self.rows[idx]
        image = cv2.imread(str(self.root / "images" / name))
        image = cv2.cvtColor(image, cv2.COLOR_BGR2RGB)
        image = self.transform(image=image)["image"]
        return image, label


def train_transform(size: int = 64) -> Any:
    return transforms.Compose(
        [
            transforms.RandomResizedCrop(size),
            transforms.RandomHorizontalFlip(),
            transforms.ToTensor(),
            transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
        ]
    )


def eval_transform(size: int = 64) -> Any:
    return transforms.Compose(
        [
            transforms.Resize((size, size)),
            transforms.ToTensor(),
            transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
        ]
    )


def albumentations_transform(size: int = 64) -> Any:
    import albumentations as A
    from albumentations.pytorch import ToTensorV2

    return A.Compose(
        [
            A.RandomResizedCrop(size=(size, size)),
            A.HorizontalFlip(p=0.5),
            A.RandomBrightnessContrast(p=0.2),
            A.Normalize(),
            ToTensorV2(),
        ]
    )


def csv_loader(root: Path, transform: Any = None, *, batch_size: int = 8, **options: Any) -> Any:
    dataset = CsvDataset(root, transform or train_transform())
    return DataLoader(dataset, batch_size=batch_size, **options)


def named_loader(root: Path, transform: Any = None, *, batch_size: int = 8, **options: Any) -> Any:
    dataset = NamedDataset(root, transform or train_transform())
    return DataLoader(dataset, batch_size=batch_size, **options)


def split_loaders(root: Path, *, batch_size: int = 8) -> Any:
    """The training and the validation loader over one folder."""
    parts = random_split(CsvDataset(root), [0.75, 0.25], torch.Generator().manual_seed(0))
    train = Transformed(parts[0], train_transform())
    val = Transformed(parts[1], eval_transform())
    return (
        DataLoader(train, batch_size=batch_size, shuffle=True),
        DataLoader(val, batch_size=batch_size),
    )


def opencv_loader(root: Path, transform: Any = None, *, batch_size: int = 8, **options: Any) -> Any:
    dataset = OpenCvDataset(root, transform or albumentations_transform())
    return DataLoader(dataset, batch_size=batch_size, **options)


def train(model: nn.Module, loader: Any) -> float:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    running = 0.0
    for images, labels in loader:
        loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.item() * images.size(0)
    return running / len(loader.dataset)


def main(root: Path, epochs: int = 2) -> None:
    train_loader, val_loader = split_loaders(root)
    model = nn.Sequential(nn.Conv2d(3, 4, 8, stride=8), nn.ReLU(), nn.Flatten(), nn.Linear(256, 3))
    for epoch in range(epochs):
        loss = train(model, train_loader)
        with torch.no_grad():
            right = sum(int((model(x).argmax(1) == y).sum()) for x, y in val_loader)
        print(f"epoch {epoch}: loss {loss:.3f}, {right} of {len(val_loader.dataset)} right")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
