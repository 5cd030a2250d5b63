# SPDX-License-Identifier: Apache-2.0
"""The datasets of Hugging Face's run_image_classification.py, and its Trainer.

Image files of a folder in a datasets.Dataset, transforms of torchvision set on it with
``set_transform`` over columns of a batch, and a collate function that makes a dictionary.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import datasets
import torch
from torch import nn
from torchvision.transforms import (
    CenterCrop,
    Compose,
    Normalize,
    RandomHorizontalFlip,
    RandomResizedCrop,
    Resize,
    ToTensor,
)
from transformers import Trainer, TrainingArguments


def collate_fn(examples: Any) -> Any:
    pixel_values = torch.stack([example["pixel_values"] for example in examples])
    labels = torch.tensor([example["label"] for example in examples])
    return {"pixel_values": pixel_values, "labels": labels}


def folder_dataset(root: Path, split: str) -> Any:
    """Equal to load_dataset("imagefolder", data_dir=...), without its copy in the cache."""
    folder = root / split
    names = sorted(path.name for path in folder.iterdir())
    files = [(str(file), i) for i, n in enumerate(names) for file in sorted((folder / n).iterdir())]
    features = datasets.Features(
        {"image": datasets.Image(), "label": datasets.ClassLabel(names=names)}
    )
    columns = {"image": [file for file, _ in files], "label": [label for _, label in files]}
    return datasets.Dataset.from_dict(columns, features=features)


def train_transforms_of(size: int, steps: list[Any] | None = None) -> Any:
    normalize = Normalize(mean=[0.5, 0.5, 0.5], std=[0.5, 0.5, 0.5])
    usual = [RandomResizedCrop(size), RandomHorizontalFlip(), ToTensor(), normalize]
    _train_transforms = Compose(steps or usual)

    def train_transforms(example_batch: Any) -> Any:
        example_batch["pixel_values"] = [
            _train_transforms(pil_img.convert("RGB")) for pil_img in example_batch["image"]
        ]
        return example_batch

    return train_transforms


def val_transforms_of(size: int) -> Any:
    normalize = Normalize(mean=[0.5, 0.5, 0.5], std=[0.5, 0.5, 0.5])
    _val_transforms = Compose([Resize(size), CenterCrop(size), ToTensor(), normalize])

    def val_transforms(example_batch: Any) -> Any:
        example_batch["pixel_values"] = [
            _val_transforms(pil_img.convert("RGB")) for pil_img in example_batch["image"]
        ]
        return example_batch

    return val_transforms


def splits(root: Path, size: int = 64, steps: list[Any] | None = None) -> dict[str, Any]:
    dataset = {"train": folder_dataset(root, "train"), "validation": folder_dataset(root, "val")}
    dataset["train"].set_transform(train_transforms_of(size, steps))
    dataset["validation"].set_transform(val_transforms_of(size))
    return dataset


class SmallModel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 4, 8, stride=8), nn.Flatten(), nn.Linear(256, 3))

    def forward(self, pixel_values: Any, labels: Any = None) -> Any:
        logits = self.body(pixel_values)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


def trainer_of(root: Path, output: Path, **arguments: Any) -> Any:
    dataset = splits(root)
    args = TrainingArguments(
        output_dir=str(output),
        remove_unused_columns=False,
        per_device_train_batch_size=8,
        per_device_eval_batch_size=8,
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        dataloader_pin_memory=False,
        save_strategy="no",
        **arguments,
    )
    return Trainer(
        model=SmallModel(),
        args=args,
        train_dataset=dataset["train"],
        eval_dataset=dataset["validation"],
        data_collator=collate_fn,
    )


def main(root: Path, epochs: int = 1) -> None:
    with tempfile.TemporaryDirectory() as output:
        trainer = trainer_of(root, Path(output), num_train_epochs=epochs)
        result = trainer.train()
        print(f"loss {result.training_loss:.3f}, evaluated {trainer.evaluate()['eval_loss']:.3f}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
