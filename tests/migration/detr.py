# SPDX-License-Identifier: Apache-2.0
"""DETR's and RF-DETR's loader: COCO, custom joint transforms, nested tensors."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

import torch
import torchvision
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, SequentialSampler
from torchvision.transforms import functional as F


class NestedTensor:
    """Images padded to one size, and a mask that is True where there is padding."""

    def __init__(self, tensors: Any, mask: Any) -> None:
        self.tensors = tensors
        self.mask = mask

    def to(self, device: Any) -> NestedTensor:
        return NestedTensor(self.tensors.to(device), self.mask.to(device))

    def decompose(self) -> Any:
        return self.tensors, self.mask


def nested_tensor_from_tensor_list(tensors: Any) -> NestedTensor:
    size = [len(tensors), *(max(t.shape[axis] for t in tensors) for axis in range(3))]
    padded = torch.zeros(size, dtype=tensors[0].dtype)
    mask = torch.ones((size[0], *size[2:]), dtype=torch.bool)
    for image, row, hidden in zip(tensors, padded, mask, strict=True):
        row[:, : image.shape[1], : image.shape[2]].copy_(image)
        hidden[: image.shape[1], : image.shape[2]] = False
    return NestedTensor(padded, mask)


def collate_fn(batch: Any) -> Any:
    batch = list(zip(*batch))  # noqa: B905
    batch[0] = nested_tensor_from_tensor_list(batch[0])
    return tuple(batch)


class ConvertCoco:
    def __call__(self, image: Any, target: Any) -> Any:
        w, h = image.size
        anno = [obj for obj in target["annotations"] if obj.get("iscrowd", 0) == 0]
        boxes = torch.as_tensor([obj["bbox"] for obj in anno], dtype=torch.float32).reshape(-1, 4)
        boxes[:, 2:] += boxes[:, :2]
        boxes[:, 0::2].clamp_(min=0, max=w)
        boxes[:, 1::2].clamp_(min=0, max=h)
        keep = (boxes[:, 3] > boxes[:, 1]) & (boxes[:, 2] > boxes[:, 0])
        return image, {
            "boxes": boxes[keep],
            "labels": torch.tensor([obj["category_id"] for obj in anno], dtype=torch.int64)[keep],
            "image_id": torch.tensor([target["image_id"]]),
            "area": torch.tensor([obj["area"] for obj in anno])[keep],
            "iscrowd": torch.zeros(len(anno), dtype=torch.int64)[keep],
            "orig_size": torch.as_tensor([int(h), int(w)]),
            "size": torch.as_tensor([int(h), int(w)]),
        }


class Compose:
    def __init__(self, transforms: list[Any]) -> None:
        self.transforms = transforms

    def __call__(self, image: Any, target: Any) -> Any:
        for t in self.transforms:
            image, target = t(image, target)
        return image, target


class RandomHorizontalFlip:
    def __init__(self, p: float = 0.5) -> None:
        self.p = p

    def __call__(self, image: Any, target: Any) -> Any:
        if random.random() >= self.p:
            return image, target
        width = image.size[0]
        turned = target["boxes"][:, [2, 1, 0, 3]] * torch.tensor([-1, 1, -1, 1])
        return F.hflip(image), {**target, "boxes": turned + torch.tensor([width, 0, width, 0])}


class RandomResize:
    def __init__(self, sizes: list[int], max_size: int) -> None:
        self.sizes = sizes
        self.max_size = max_size

    def __call__(self, image: Any, target: Any) -> Any:
        size = random.choice(self.sizes)
        width, height = image.size
        if max(width, height) / min(width, height) * size > self.max_size:
            size = round(self.max_size * min(width, height) / max(width, height))
        larger = int(size * max(width, height) / min(width, height))
        shape = [size, larger] if width > height else [larger, size]
        resized = F.resize(image, shape)
        factors = (resized.size[0] / width, resized.size[1] / height)
        return resized, {
            **target,
            "boxes": target["boxes"] * torch.as_tensor(factors * 2),
            "area": target["area"] * (factors[0] * factors[1]),
            "size": torch.tensor(shape),
        }


class ToTensor:
    def __call__(self, image: Any, target: Any) -> Any:
        return F.to_tensor(image), target


class Normalize:
    """The image, and boxes as fractions of it: (center x, center y, width, height)."""

    def __init__(self, mean: list[float], std: list[float]) -> None:
        self.mean = mean
        self.std = std

    def __call__(self, image: Any, target: Any) -> Any:
        image = F.normalize(image, mean=self.mean, std=self.std)
        height, width = image.shape[-2:]
        boxes = torchvision.ops.box_convert(target["boxes"], "xyxy", "cxcywh")
        return image, {**target, "boxes": boxes / torch.tensor([width, height] * 2)}


class CocoDetection(torchvision.datasets.CocoDetection):
    def __init__(self, img_folder: Path, ann_file: Path, transforms: Any) -> None:
        super().__init__(img_folder, ann_file)
        self._transforms = transforms
        self.prepare = ConvertCoco()

    def __getitem__(self, idx: int) -> Any:
        img, target = super().__getitem__(idx)
        image_id = self.ids[idx]
        img, target = self.prepare(img, {"image_id": image_id, "annotations": target})
        if self._transforms is not None:
            img, target = self._transforms(img, target)
        return img, target


def make_coco_transforms(image_set: str, *, flip: float = 0.5, sizes: Any = (48, 56, 64)) -> Any:
    normalize = Compose([ToTensor(), Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])])
    if image_set == "train":
        return Compose([RandomHorizontalFlip(flip), RandomResize(list(sizes), 96), normalize])
    return Compose([RandomResize([64], 96), normalize])


def loaders(root: Path, *, batch_size: int = 2, workers: int = 0) -> Any:
    def dataset(image_set: str) -> Any:
        return CocoDetection(
            root / f"{image_set}2017",
            root / "annotations" / f"instances_{image_set}2017.json",
            make_coco_transforms(image_set),
        )

    train, val = dataset("train"), dataset("val")
    batches = BatchSampler(RandomSampler(train), batch_size, drop_last=True)
    options = {"collate_fn": collate_fn, "num_workers": workers}
    return (
        DataLoader(train, batch_sampler=batches, **options),
        DataLoader(val, batch_size, sampler=SequentialSampler(val), drop_last=False, **options),
    )


def train_one_epoch(model: nn.Module, optimizer: Any, data_loader: Any) -> int:
    """Returns the number of boxes; with optimizer=None nothing is trained."""
    boxes = 0
    for samples, targets in data_loader:
        samples = samples.to("cpu")
        targets = [{k: v.to("cpu") for k, v in t.items()} for t in targets]
        images, mask = samples.decompose()
        assert mask.shape == (len(images), *images.shape[-2:])
        boxes += sum(len(t["boxes"]) for t in targets)
        assert all("orig_size" in t and "image_id" in t for t in targets)
        if optimizer is not None:
            found = model(images * ~mask[:, None]).mean(dim=(2, 3))
            loss = sum(
                (t["boxes"] - box).abs().sum() for t, box in zip(targets, found, strict=True)
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return boxes


def main(root: Path, epochs: int = 1) -> None:
    train, val = loaders(root)
    model = nn.Conv2d(3, 4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    for epoch in range(epochs):
        boxes = train_one_epoch(model, optimizer, train)
        print(f"epoch {epoch}: {boxes} boxes, {train_one_epoch(model, None, val)} evaluated")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
