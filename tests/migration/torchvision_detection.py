# SPDX-License-Identifier: Apache-2.0
"""The loaders of torchvision's reference script for detection, and the loop that reads them.

With transforms of v2 over ``wrap_dataset_for_transforms_v2``, and with the script's joint
transforms over its own CocoDetection; batches have images of similar shape.
"""

from __future__ import annotations

import bisect
import sys
from collections import defaultdict
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import torch
import torchvision
from pycocotools import mask as coco_mask
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, Sampler, SequentialSampler
from torchvision import tv_tensors
from torchvision.datasets import wrap_dataset_for_transforms_v2
from torchvision.transforms import functional as F
from torchvision.transforms import v2

MEAN = (123.0, 117.0, 104.0)


# The script's own joint transforms, for v1.


class Compose:
    def __init__(self, transforms: list[Any]) -> None:
        self.transforms = transforms

    def __call__(self, image: Any, target: Any) -> Any:
        for t in self.transforms:
            image, target = t(image, target)
        return image, target


class RandomHorizontalFlip(torchvision.transforms.RandomHorizontalFlip):
    def forward(self, image: Any, target: Any = None) -> Any:
        if torch.rand(1) < self.p:
            image = F.hflip(image)
            if target is not None:
                _, _, width = F.get_dimensions(image)
                target["boxes"][:, [0, 2]] = width - target["boxes"][:, [2, 0]]
                if "masks" in target:
                    target["masks"] = target["masks"].flip(-1)
        return image, target


class PILToTensor(nn.Module):
    def forward(self, image: Any, target: Any = None) -> Any:
        return F.pil_to_tensor(image), target


class ToDtype(nn.Module):
    def __init__(self, dtype: torch.dtype, scale: bool = False) -> None:
        super().__init__()
        self.dtype = dtype
        self.scale = scale

    def forward(self, image: Any, target: Any = None) -> Any:
        if not self.scale:
            return image.to(dtype=self.dtype), target
        return F.convert_image_dtype(image, self.dtype), target


class ConvertCocoPolysToMask:
    """COCO's list of objects as the dictionary of tensors on which torchvision's detectors are
    trained."""

    def __call__(self, image: Any, target: Any) -> Any:
        w, h = image.size
        image_id = target["image_id"]
        anno = [obj for obj in target["annotations"] if obj["iscrowd"] == 0]
        boxes = torch.as_tensor([obj["bbox"] for obj in anno], dtype=torch.float32).reshape(-1, 4)
        boxes[:, 2:] += boxes[:, :2]
        boxes[:, 0::2].clamp_(min=0, max=w)
        boxes[:, 1::2].clamp_(min=0, max=h)
        classes = torch.tensor([obj["category_id"] for obj in anno], dtype=torch.int64)
        masks = self._masks([obj["segmentation"] for obj in anno], h, w)
        keep = (boxes[:, 3] > boxes[:, 1]) & (boxes[:, 2] > boxes[:, 0])
        return image, {
            "boxes": boxes[keep],
            "labels": classes[keep],
            "masks": masks[keep],
            "image_id": image_id,
            "area": torch.tensor([obj["area"] for obj in anno]),
            "iscrowd": torch.tensor([obj["iscrowd"] for obj in anno]),
        }

    def _masks(self, segmentations: list[Any], height: int, width: int) -> Any:
        masks = []
        for polygons in segmentations:
            mask = coco_mask.decode(coco_mask.frPyObjects(polygons, height, width))
            mask = mask[..., None] if len(mask.shape) < 3 else mask
            masks.append(torch.as_tensor(mask, dtype=torch.uint8).any(dim=2))
        empty = torch.zeros((0, height, width), dtype=torch.uint8)
        return torch.stack(masks, dim=0) if masks else empty


class CocoDetection(torchvision.datasets.CocoDetection):
    def __init__(self, img_folder: Any, ann_file: Any, transforms: Any) -> None:
        super().__init__(img_folder, ann_file)
        self._transforms = transforms

    def __getitem__(self, idx: int) -> Any:
        img, target = super().__getitem__(idx)
        target = {"image_id": self.ids[idx], "annotations": target}
        if self._transforms is not None:
            img, target = self._transforms(img, target)
        return img, target


class DetectionPresetTrain:
    """As in the script, whose SSD and large-scale policies are for v2 only."""

    def __init__(
        self,
        *,
        data_augmentation: str,
        hflip_prob: float = 0.5,
        mean: tuple[float, ...] = MEAN,
        backend: str = "pil",
        use_v2: bool = False,
        size: int = 96,
    ) -> None:
        steps: list[Any] = []
        if backend == "tv_tensor":
            steps.append(v2.ToImage())
        elif backend == "tensor":
            steps.append(v2.PILToTensor() if use_v2 else PILToTensor())
        fill = defaultdict(lambda: mean, {tv_tensors.Mask: 0})
        flip = (v2.RandomHorizontalFlip if use_v2 else RandomHorizontalFlip)(p=hflip_prob)
        if data_augmentation == "hflip":
            steps += [flip]
        elif data_augmentation == "lsj":
            steps += [
                v2.ScaleJitter(target_size=(size, size), antialias=True),
                v2.RandomCrop(size=(size, size), pad_if_needed=True, fill=fill),
                flip,
            ]
        elif data_augmentation == "multiscale":
            shortest = tuple(range(size // 2, size + 1, 8))
            steps += [v2.RandomShortestSize(min_size=shortest, max_size=size * 5 // 3), flip]
        elif data_augmentation == "ssd":
            steps += [
                v2.RandomPhotometricDistort(),
                v2.RandomZoomOut(fill=fill),
                v2.RandomIoUCrop(),
                flip,
            ]
        elif data_augmentation == "ssdlite":
            steps += [v2.RandomIoUCrop(), flip]
        else:
            raise ValueError(f"unknown data augmentation policy {data_augmentation!r}")
        if backend == "pil":
            steps += [v2.PILToTensor() if use_v2 else PILToTensor()]
        steps += [(v2.ToDtype if use_v2 else ToDtype)(torch.float, scale=True)]
        if use_v2:
            steps += [
                v2.ConvertBoundingBoxFormat(tv_tensors.BoundingBoxFormat.XYXY),
                v2.SanitizeBoundingBoxes(),
                v2.ToPureTensor(),
            ]
        self.transforms = v2.Compose(steps) if use_v2 else Compose(steps)

    def __call__(self, img: Any, target: Any) -> Any:
        return self.transforms(img, target)


class DetectionPresetEval:
    def __init__(self, backend: str = "pil", use_v2: bool = False) -> None:
        steps: list[Any] = []
        if backend == "tv_tensor":
            steps.append(v2.ToImage())
        else:
            steps.append(v2.PILToTensor() if use_v2 else PILToTensor())
        steps += [(v2.ToDtype if use_v2 else ToDtype)(torch.float, scale=True)]
        if use_v2:
            steps += [v2.ToPureTensor()]
        self.transforms = v2.Compose(steps) if use_v2 else Compose(steps)

    def __call__(self, img: Any, target: Any) -> Any:
        return self.transforms(img, target)


def _without_empty(dataset: Any) -> Any:
    """A Subset of the images that have an object larger than a pixel."""

    def has_objects(anno: list[Any]) -> bool:
        return any(all(o > 1 for o in obj["bbox"][2:]) for obj in anno)

    kept = [
        index
        for index, image_id in enumerate(dataset.ids)
        if has_objects(dataset.coco.loadAnns(dataset.coco.getAnnIds(imgIds=image_id)))
    ]
    return torch.utils.data.Subset(dataset, kept)


def get_coco(
    root: Path, image_set: str, transforms: Any, use_v2: bool = False, with_masks: bool = False
) -> Any:
    folder = root / f"{image_set}2017"
    annotations = root / "annotations" / f"instances_{image_set}2017.json"
    if use_v2:
        plain = torchvision.datasets.CocoDetection(folder, annotations, transforms=transforms)
        target_keys = ["boxes", "labels", "image_id", *(["masks"] if with_masks else [])]
        dataset = wrap_dataset_for_transforms_v2(plain, target_keys=target_keys)
    else:
        joint = Compose([ConvertCocoPolysToMask(), transforms])
        dataset = CocoDetection(folder, annotations, transforms=joint)
    return _without_empty(dataset) if image_set == "train" else dataset


class GroupedBatchSampler(BatchSampler):
    """Batches of a single group each, close to the sampler's order; the last ones are filled up."""

    def __init__(self, sampler: Any, group_ids: list[int], batch_size: int) -> None:
        self.sampler = sampler
        self.group_ids = group_ids
        self.batch_size = batch_size

    def __iter__(self) -> Any:
        waiting = defaultdict(list)
        seen = defaultdict(list)
        made = 0
        for index in self.sampler:
            group = self.group_ids[index]
            waiting[group].append(index)
            seen[group].append(index)
            if len(waiting[group]) == self.batch_size:
                yield waiting[group]
                made += 1
                del waiting[group]
        missing = len(self) - made
        for group, some in sorted(waiting.items(), key=lambda pair: len(pair[1]), reverse=True):
            if missing <= 0:
                break
            again = chain.from_iterable(repeat(seen[group]))
            yield some + [next(again) for _ in range(self.batch_size - len(some))]
            missing -= 1

    def __len__(self) -> int:
        return len(self.sampler) // self.batch_size


def create_aspect_ratio_groups(dataset: Any, k: int = 0) -> list[int]:
    rows = range(len(dataset))
    while isinstance(dataset, torch.utils.data.Subset):
        rows = [dataset.indices[i] for i in rows]
        dataset = dataset.dataset
    infos = [dataset.coco.imgs[dataset.ids[i]] for i in rows]
    bins = sorted((2 ** torch.linspace(-1, 1, 2 * k + 1)).tolist()) if k > 0 else [1.0]
    return [bisect.bisect_right(bins, info["height"] / info["width"]) for info in infos]


def collate_fn(batch: Any) -> Any:
    return tuple(zip(*batch))  # noqa: B905


def loaders(
    root: Path,
    data_augmentation: str = "hflip",
    *,
    use_v2: bool = True,
    backend: str = "pil",
    with_masks: bool = False,
    batch_size: int = 2,
    aspect_ratio_group_factor: int = 3,
    hflip_prob: float = 0.5,
    size: int = 96,
    workers: int = 0,
) -> Any:
    """The training and the validation loader, and the training's sampler."""
    preset = DetectionPresetTrain(
        data_augmentation=data_augmentation,
        hflip_prob=hflip_prob,
        backend=backend,
        use_v2=use_v2,
        size=size,
    )
    dataset = get_coco(root, "train", preset, use_v2, with_masks)
    dataset_test = get_coco(root, "val", DetectionPresetEval(backend, use_v2), use_v2, with_masks)
    train_sampler: Sampler[int] = RandomSampler(dataset)
    train_batch_sampler: Any
    if aspect_ratio_group_factor >= 0:
        group_ids = create_aspect_ratio_groups(dataset, k=aspect_ratio_group_factor)
        train_batch_sampler = GroupedBatchSampler(train_sampler, group_ids, batch_size)
    else:
        train_batch_sampler = BatchSampler(train_sampler, batch_size, drop_last=True)
    data_loader = DataLoader(
        dataset, batch_sampler=train_batch_sampler, num_workers=workers, collate_fn=collate_fn
    )
    data_loader_test = DataLoader(
        dataset_test,
        batch_size=1,
        sampler=SequentialSampler(dataset_test),
        num_workers=workers,
        collate_fn=collate_fn,
    )
    return data_loader, data_loader_test, train_sampler


def get_coco_api_from_dataset(dataset: Any) -> Any:
    for _ in range(10):
        if isinstance(dataset, torchvision.datasets.CocoDetection):
            return dataset.coco
        if isinstance(dataset, torch.utils.data.Subset):
            dataset = dataset.dataset
    raise RuntimeError("the script goes through the dataset record by record here")


class SmallDetector(nn.Module):
    """Takes the inputs of torchvision's detectors, lists of images and of targets, and returns
    losses."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(3, 4)

    def forward(self, images: list[Any], targets: list[Any]) -> dict[str, Any]:
        losses = []
        for image, target in zip(images, targets, strict=True):
            if image.ndim != 3 or image.dtype != torch.float32:
                raise ValueError(f"an image of {image.dtype} {tuple(image.shape)}")
            if target["boxes"].shape != (len(target["labels"]), 4):
                raise ValueError(f"boxes of {tuple(target['boxes'].shape)}")
            found = self.head(image.mean(dim=(1, 2)))
            losses.append((target["boxes"] - found).abs().sum() / 1000)
        return {"loss_box": torch.stack(losses).mean()}


def train_one_epoch(model: nn.Module, optimizer: Any, data_loader: Any) -> int:
    """Returns the number of boxes that the model got."""
    boxes = 0
    for images, targets in data_loader:
        images = [image.to("cpu") for image in images]
        targets = [
            {k: v.to("cpu") if isinstance(v, torch.Tensor) else v for k, v in t.items()}
            for t in targets
        ]
        losses = sum(loss for loss in model(images, targets).values())
        optimizer.zero_grad()
        losses.backward()
        optimizer.step()
        boxes += sum(len(target["boxes"]) for target in targets)
    return boxes


def evaluate(data_loader: Any) -> int:
    """The number of evaluated images whose id COCO's own API knows."""
    coco = get_coco_api_from_dataset(data_loader.dataset)
    found = 0
    for _images, targets in data_loader:
        found += sum(int(target["image_id"]) in coco.imgs for target in targets)
    return found


def main(root: Path, epochs: int = 1) -> None:
    data_loader, data_loader_test, _ = loaders(root, "multiscale", with_masks=True)
    model = SmallDetector()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    for epoch in range(epochs):
        boxes = train_one_epoch(model, optimizer, data_loader)
        print(f"epoch {epoch}: {boxes} boxes, {evaluate(data_loader_test)} evaluated")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
