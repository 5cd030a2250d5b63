# SPDX-License-Identifier: Apache-2.0
"""A Lightning script: a LightningDataModule over image folders, a LightningModule, a Trainer."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, random_split
from torchvision import datasets, transforms


class FolderDataModule(L.LightningDataModule):
    def __init__(self, data_dir: Path, batch_size: int = 8, size: int = 64) -> None:
        super().__init__()
        self.data_dir = data_dir
        self.batch_size = batch_size
        normalize = transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
        self.train_transform = transforms.Compose(
            [
                transforms.RandomResizedCrop(size),
                transforms.RandomHorizontalFlip(),
                transforms.ColorJitter(0.2, 0.2, 0.2),
                transforms.ToTensor(),
                normalize,
            ]
        )
        self.test_transform = transforms.Compose(
            [transforms.Resize(72), transforms.CenterCrop(size), transforms.ToTensor(), normalize]
        )

    def setup(self, stage: str) -> None:
        full = datasets.ImageFolder(self.data_dir / "train", transform=self.train_transform)
        generator = torch.Generator().manual_seed(42)
        self.train_set, self.rest = random_split(full, [0.8, 0.2], generator=generator)
        self.val_set = datasets.ImageFolder(self.data_dir / "val", transform=self.test_transform)

    def train_dataloader(self) -> Any:
        return DataLoader(self.train_set, batch_size=self.batch_size, shuffle=True, num_workers=0)

    def val_dataloader(self) -> Any:
        return DataLoader(self.val_set, batch_size=self.batch_size, num_workers=0)


class Classifier(L.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 4, 8, stride=8), nn.Flatten(), nn.Linear(256, 3))
        self.seen = 0
        self.validated = 0

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        images, labels = batch
        self.seen += len(images)
        return nn.functional.cross_entropy(self.body(images), labels)

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        self.validated += len(batch[0])

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), lr=0.01)


def trainer_of(root: Path, epochs: int = 1) -> Any:
    return L.Trainer(
        max_epochs=epochs,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        default_root_dir=root,
    )


def main(root: Path, epochs: int = 1) -> None:
    model = Classifier()
    trainer_of(root, epochs).fit(model, datamodule=FolderDataModule(root))
    print(f"{model.seen} images trained, {model.validated} validated")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
