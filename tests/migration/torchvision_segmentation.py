# SPDX-License-Identifier: Apache-2.0
"""The loaders of torchvision's reference script for segmentation, and the loop that reads them.

VOCSegmentation with joint transforms: the script's own for v1, and v2's with a custom PadIfSmaller;
a collate function that pads images with 0 and masks with 255.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

import torch
import torchvision
from torch import nn
from torch.utils.data import DataLoader, RandomSampler, SequentialSampler
from torchvision import transforms as v1
from torchvision import tv_tensors
from torchvision.transforms import functional as F
from torchvision.transforms import v2

MEAN = (0.485, 0.456, 0.406)
STD = (0.229, 0.224, 0.225)


# The script's own joint transforms, for v1.


def pad_if_smaller(img: Any, size: int, fill: int = 0) -> Any:
    width, height = img.size
    if min(width, height) < size:
        img = F.pad(img, [0, 0, max(size - width, 0), max(size - height, 0)], fill=fill)
    return img


class Compose:
    def __init__(self, transforms: list[Any]) -> None:
        self.transforms = transforms

    def __call__(self, image: Any, target: Any) -> Any:
        for t in self.transforms:
            image, target = t(image, target)
        return image, target


class RandomResize:
    def __init__(self, min_size: int, max_size: int | None = None) -> None:
        self.min_size = min_size
        self.max_size = min_size if max_size is None else max_size

    def __call__(self, image: Any, target: Any) -> Any:
        size = random.randint(self.min_size, self.max_size)
        image = F.resize(image, size, antialias=True)
        target = F.resize(target, size, interpolation=v1.InterpolationMode.NEAREST)
        return image, target


class RandomHorizontalFlip:
    def __init__(self, flip_prob: float) -> None:
        self.flip_prob = flip_prob

    def __call__(self, image: Any, target: Any) -> Any:
        if random.random() < self.flip_prob:
            image, target = F.hflip(image), F.hflip(target)
        return image, target


class RandomCrop:
    def __init__(self, size: int) -> None:
        self.size = size

    def __call__(self, image: Any, target: Any) -> Any:
        image = pad_if_smaller(image, self.size)
        target = pad_if_smaller(target, self.size, fill=255)
        window = v1.RandomCrop.get_params(image, (self.size, self.size))
        return F.crop(image, *window), F.crop(target, *window)


class PILToTensor:
    def __call__(self, image: Any, target: Any) -> Any:
        import numpy as np

        return F.pil_to_tensor(image), torch.as_tensor(np.array(target), dtype=torch.int64)


class ToDtype:
    def __init__(self, dtype: torch.dtype, scale: bool = False) -> None:
        self.dtype = dtype
        self.scale = scale

    def __call__(self, image: Any, target: Any) -> Any:
        if not self.scale:
            return image.to(dtype=self.dtype), target
        return F.convert_image_dtype(image, self.dtype), target


class Normalize:
    def __init__(self, mean: tuple[float, ...], std: tuple[float, ...]) -> None:
        self.mean = mean
        self.std = std

    def __call__(self, image: Any, target: Any) -> Any:
        return F.normalize(image, mean=list(self.mean), std=list(self.std)), target


# The script's own transform for v2: RandomCrop(pad_if_needed=True) pads on both sides.


class PadIfSmaller(v2.Transform):
    def __init__(self, size: int, fill: Any = 0) -> None:
        super().__init__()
        self.size = size
        self.fill = v2._utils._setup_fill_arg(fill)

    def make_params(self, sample: Any) -> dict[str, Any]:
        _, height, width = v2._utils.query_chw(sample)
        padding = [0, 0, max(self.size - width, 0), max(self.size - height, 0)]
        return {"padding": padding, "needs_padding": any(padding)}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        if not params["needs_padding"]:
            return inpt
        fill = v2._utils._get_fill(self.fill, type(inpt))
        fill = v2._utils._convert_fill_arg(fill)
        return v2.functional.pad(inpt, padding=params["padding"], fill=fill)


class SegmentationPresetTrain:
    def __init__(
        self,
        *,
        base_size: int,
        crop_size: int,
        hflip_prob: float = 0.5,
        mean: tuple[float, ...] = MEAN,
        std: tuple[float, ...] = STD,
        backend: str = "pil",
        use_v2: bool = False,
        scale: tuple[float, float] = (0.5, 2.0),
    ) -> None:
        smallest, largest = (int(factor * base_size) for factor in scale)
        steps: list[Any] = []
        if use_v2:
            if backend == "tv_tensor":
                steps.append(v2.ToImage())
            steps.append(v2.RandomResize(min_size=smallest, max_size=largest))
            if hflip_prob > 0:
                steps.append(v2.RandomHorizontalFlip(hflip_prob))
            steps += [
                PadIfSmaller(crop_size, fill={tv_tensors.Mask: 255, "others": 0}),
                v2.RandomCrop(crop_size),
            ]
            if backend == "pil":
                steps.append(v2.PILToTensor())
            steps += _to_floats(backend, mean, std)
            self.transforms: Any = v2.Compose(steps)
        else:
            steps.append(RandomResize(smallest, largest))
            if hflip_prob > 0:
                steps.append(RandomHorizontalFlip(hflip_prob))
            steps += [
                RandomCrop(crop_size),
                PILToTensor(),
                ToDtype(torch.float, scale=True),
                Normalize(mean=mean, std=std),
            ]
            self.transforms = Compose(steps)

    def __call__(self, img: Any, target: Any) -> Any:
        return self.transforms(img, target)


class SegmentationPresetEval:
    def __init__(
        self,
        *,
        base_size: int,
        mean: tuple[float, ...] = MEAN,
        std: tuple[float, ...] = STD,
        backend: str = "pil",
        use_v2: bool = False,
    ) -> None:
        steps: list[Any] = []
        if use_v2:
            if backend == "tv_tensor":
                steps.append(v2.ToImage())
            steps.append(v2.Resize(size=(base_size, base_size)))
            if backend == "pil":
                steps.append(v2.ToImage())
            steps += _to_floats("tv_tensor", mean, std)
            self.transforms: Any = v2.Compose(steps)
        else:
            steps = [
                RandomResize(base_size, base_size),
                PILToTensor(),
                ToDtype(torch.float, scale=True),
                Normalize(mean=mean, std=std),
            ]
            self.transforms = Compose(steps)

    def __call__(self, img: Any, target: Any) -> Any:
        return self.transforms(img, target)


def _to_floats(backend: str, mean: tuple[float, ...], std: tuple[float, ...]) -> list[Any]:
    img_type = tv_tensors.Image if backend == "tv_tensor" else torch.Tensor
    dtypes = {img_type: torch.float32, tv_tensors.Mask: torch.int64, "others": None}
    return [
        v2.ToDtype(dtype=dtypes, scale=True),
        v2.Normalize(mean=mean, std=std),
        v2.ToPureTensor(),
    ]


def cat_list(images, fill_value=0):  # type: ignore[no-untyped-def]
    max_size = tuple(max(s) for s in zip(*[img.shape for img in images]))  # noqa: B905
    batch_shape = (len(images),) + max_size  # noqa: RUF005
    batched_imgs = images[0].new(*batch_shape).fill_(fill_value)
    for img, pad_img in zip(images, batched_imgs):  # noqa: B905
        pad_img[..., : img.shape[-2], : img.shape[-1]].copy_(img)
    return batched_imgs


def collate_fn(batch):  # type: ignore[no-untyped-def]
    images, targets = list(zip(*batch))  # noqa: B905
    batched_imgs = cat_list(images, fill_value=0)
    batched_targets = cat_list(targets, fill_value=255)
    return batched_imgs, batched_targets


def get_dataset(root: Path, image_set: str, transforms: Any, use_v2: bool) -> Any:
    dataset = torchvision.datasets.VOCSegmentation(
        root, year="2012", image_set=image_set, transforms=transforms
    )
    return torchvision.datasets.wrap_dataset_for_transforms_v2(dataset) if use_v2 else dataset


def loaders(
    root: Path,
    *,
    batch_size: int = 4,
    use_v2: bool = False,
    backend: str = "pil",
    workers: int = 0,
    train: dict[str, Any] | None = None,
) -> Any:
    """The training and the validation loader, and the training's sampler."""
    options = {"base_size": 64, "crop_size": 60, "backend": backend, "use_v2": use_v2}
    preset = SegmentationPresetTrain(**{**options, **(train or {})})
    dataset = get_dataset(root, "train", preset, use_v2)
    preset_eval = SegmentationPresetEval(base_size=64, backend=backend, use_v2=use_v2)
    dataset_test = get_dataset(root, "val", preset_eval, use_v2)
    train_sampler = RandomSampler(dataset)
    data_loader = DataLoader(
        dataset,
        batch_size=batch_size,
        sampler=train_sampler,
        num_workers=workers,
        collate_fn=collate_fn,
        drop_last=True,
    )
    data_loader_test = DataLoader(
        dataset_test,
        batch_size=1,
        sampler=SequentialSampler(dataset_test),
        num_workers=workers,
        collate_fn=collate_fn,
    )
    return data_loader, data_loader_test, train_sampler


def train_one_epoch(model: nn.Module, optimizer: Any, data_loader: Any) -> float:
    last = 0.0
    for image, target in data_loader:
        output = model(image)
        loss = nn.functional.cross_entropy(output, target, ignore_index=255)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        last = loss.item()
    return last


def evaluate(data_loader: Any) -> int:
    seen = 0
    for image, target in data_loader:
        assert image.shape[-2:] == target.shape[-2:] and target.dtype == torch.int64
        seen += image.shape[0]
    if len(data_loader.dataset) != seen:
        raise RuntimeError(f"{len(data_loader.dataset)} samples, {seen} used for validation")
    return seen


def main(root: Path, epochs: int = 1) -> None:
    data_loader, data_loader_test, _ = loaders(root)
    model = nn.Conv2d(3, 21, 3, padding=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    steps = epochs * len(data_loader)
    torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: (1 - step / steps) ** 0.9)
    for epoch in range(epochs):
        loss = train_one_epoch(model, optimizer, data_loader)
        print(f"epoch {epoch}: loss {loss:.3f}, {evaluate(data_loader_test)} validated")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
