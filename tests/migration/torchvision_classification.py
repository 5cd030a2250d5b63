# SPDX-License-Identifier: Apache-2.0
"""The loaders of torchvision's reference script for classification, and the loop that reads them.

As in a user's copy of that script: presets that are objects with ``transforms``, in v1 and v2,
MixUp and CutMix in the collate function, and a sampler that repeats each record for other ranks.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import torch
import torchvision
from torch import Tensor, nn
from torch.utils.data import DataLoader, DistributedSampler, RandomSampler, SequentialSampler
from torch.utils.data.dataloader import default_collate
from torchvision import transforms as v1
from torchvision.transforms import InterpolationMode, autoaugment, v2
from torchvision.transforms import functional as F

MEAN = (0.485, 0.456, 0.406)
STD = (0.229, 0.224, 0.225)


def module_of(use_v2: bool) -> Any:
    return v2 if use_v2 else v1


class ClassificationPresetTrain:
    def __init__(
        self,
        *,
        crop_size: int,
        mean: tuple[float, ...] = MEAN,
        std: tuple[float, ...] = STD,
        interpolation: InterpolationMode = InterpolationMode.BILINEAR,
        hflip_prob: float = 0.5,
        scale: tuple[float, float] = (0.08, 1.0),
        ratio: tuple[float, float] = (3.0 / 4.0, 4.0 / 3.0),
        auto_augment_policy: str | None = None,
        ra_magnitude: int = 9,
        augmix_severity: int = 3,
        random_erase_prob: float = 0.0,
        backend: str = "pil",
        use_v2: bool = False,
    ) -> None:
        T = module_of(use_v2)
        steps: list[Any] = [T.PILToTensor()] if backend == "tensor" else []
        steps.append(
            T.RandomResizedCrop(
                crop_size, scale, ratio, interpolation=interpolation, antialias=True
            )
        )
        if hflip_prob > 0:
            steps.append(T.RandomHorizontalFlip(hflip_prob))
        if auto_augment_policy == "ra":
            steps.append(T.RandAugment(interpolation=interpolation, magnitude=ra_magnitude))
        elif auto_augment_policy == "ta_wide":
            steps.append(T.TrivialAugmentWide(interpolation=interpolation))
        elif auto_augment_policy == "augmix":
            steps.append(T.AugMix(interpolation=interpolation, severity=augmix_severity))
        elif auto_augment_policy is not None:
            policy = autoaugment.AutoAugmentPolicy(auto_augment_policy)
            steps.append(T.AutoAugment(policy=policy, interpolation=interpolation))
        if backend == "pil":
            steps.append(T.PILToTensor())
        steps.append(
            T.ToDtype(torch.float, scale=True) if use_v2 else T.ConvertImageDtype(torch.float)
        )
        steps.append(T.Normalize(mean=mean, std=std))
        if random_erase_prob > 0:
            steps.append(T.RandomErasing(p=random_erase_prob))
        if use_v2:
            steps.append(T.ToPureTensor())
        self.transforms = T.Compose(steps)

    def __call__(self, img: Any) -> Any:
        return self.transforms(img)


class ClassificationPresetEval:
    def __init__(
        self,
        *,
        crop_size: int,
        resize_size: int = 256,
        mean: tuple[float, ...] = MEAN,
        std: tuple[float, ...] = STD,
        interpolation: InterpolationMode = InterpolationMode.BILINEAR,
        backend: str = "pil",
        use_v2: bool = False,
    ) -> None:
        T = module_of(use_v2)
        steps: list[Any] = [T.PILToTensor()] if backend == "tensor" else []
        steps += [
            T.Resize(resize_size, interpolation=interpolation, antialias=True),
            T.CenterCrop(crop_size),
        ]
        if backend == "pil":
            steps.append(T.PILToTensor())
        steps += [
            T.ToDtype(torch.float, scale=True) if use_v2 else T.ConvertImageDtype(torch.float),
            T.Normalize(mean=mean, std=std),
        ]
        if use_v2:
            steps.append(T.ToPureTensor())
        self.transforms = T.Compose(steps)

    def __call__(self, img: Any) -> Any:
        return self.transforms(img)


def _one_hot(batch: Tensor, target: Tensor, num_classes: int) -> Tensor:
    if batch.ndim != 4 or target.ndim != 1 or target.dtype != torch.int64:
        raise TypeError(f"a batch of images and its labels, not {batch.shape}, {target.shape}")
    return nn.functional.one_hot(target, num_classes=num_classes).to(batch.dtype)


class RandomMixUp(nn.Module):
    """For v1: a batch and itself, rolled by one position, blended."""

    def __init__(
        self, num_classes: int, p: float = 0.5, alpha: float = 1.0, inplace: bool = False
    ) -> None:
        super().__init__()
        self.num_classes = num_classes
        self.p = p
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, batch: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        if not self.inplace:
            batch, target = batch.clone(), target.clone()
        target = _one_hot(batch, target, self.num_classes)
        if torch.rand(1).item() >= self.p:
            return batch, target
        lam = float(torch._sample_dirichlet(torch.tensor([self.alpha, self.alpha]))[0])
        other, other_target = batch.roll(1, 0), target.roll(1, 0)
        batch.mul_(lam).add_(other.mul_(1.0 - lam))
        target.mul_(lam).add_(other_target.mul_(1.0 - lam))
        return batch, target


class RandomCutMix(nn.Module):
    """For v1: a window of the batch, rolled by one position, pasted into it."""

    def __init__(
        self, num_classes: int, p: float = 0.5, alpha: float = 1.0, inplace: bool = False
    ) -> None:
        super().__init__()
        self.num_classes = num_classes
        self.p = p
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, batch: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        if not self.inplace:
            batch, target = batch.clone(), target.clone()
        target = _one_hot(batch, target, self.num_classes)
        if torch.rand(1).item() >= self.p:
            return batch, target
        other, other_target = batch.roll(1, 0), target.roll(1, 0)
        lam = float(torch._sample_dirichlet(torch.tensor([self.alpha, self.alpha]))[0])
        _, height, width = F.get_dimensions(batch)
        x, y = int(torch.randint(width, (1,))), int(torch.randint(height, (1,)))
        half = 0.5 * math.sqrt(1.0 - lam)
        half_width, half_height = int(half * width), int(half * height)
        x1, x2 = max(x - half_width, 0), min(x + half_width, width)
        y1, y2 = max(y - half_height, 0), min(y + half_height, height)
        batch[:, :, y1:y2, x1:x2] = other[:, :, y1:y2, x1:x2]
        lam = 1.0 - (x2 - x1) * (y2 - y1) / (width * height)
        target.mul_(lam).add_(other_target.mul_(1.0 - lam))
        return batch, target


def get_mixup_cutmix(
    *, mixup_alpha: float, cutmix_alpha: float, num_classes: int, use_v2: bool
) -> Any:
    mixes: list[Any] = []
    if mixup_alpha > 0:
        mixes.append(
            v2.MixUp(alpha=mixup_alpha, num_classes=num_classes)
            if use_v2
            else RandomMixUp(num_classes=num_classes, p=1.0, alpha=mixup_alpha)
        )
    if cutmix_alpha > 0:
        mixes.append(
            v2.CutMix(alpha=cutmix_alpha, num_classes=num_classes)
            if use_v2
            else RandomCutMix(num_classes=num_classes, p=1.0, alpha=cutmix_alpha)
        )
    return module_of(use_v2).RandomChoice(mixes) if mixes else None


class RASampler(torch.utils.data.Sampler[int]):
    """Each record several times in a row, one copy for each rank: repeated augmentation."""

    def __init__(
        self,
        dataset: Any,
        num_replicas: int,
        rank: int,
        shuffle: bool = True,
        seed: int = 0,
        repetitions: int = 3,
    ) -> None:
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.num_samples = math.ceil(len(dataset) * repetitions / num_replicas)
        self.total_size = self.num_samples * num_replicas
        self.num_selected_samples = len(dataset) // num_replicas
        self.shuffle = shuffle
        self.seed = seed
        self.repetitions = repetitions

    def __iter__(self) -> Any:
        order = list(range(len(self.dataset)))
        if self.shuffle:
            generator = torch.Generator()
            generator.manual_seed(self.seed + self.epoch)
            order = torch.randperm(len(self.dataset), generator=generator).tolist()
        order = [index for index in order for _ in range(self.repetitions)]
        order += order[: self.total_size - len(order)]
        mine = order[self.rank : self.total_size : self.num_replicas]
        return iter(mine[: self.num_selected_samples])

    def __len__(self) -> int:
        return self.num_selected_samples

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch


def load_data(
    root: Path,
    train: dict[str, Any],
    evaluation: dict[str, Any],
    *,
    ranks: tuple[int, int] | None = None,
    ra_sampler: bool = False,
) -> Any:
    """ranks: this one's number and how many there are, as torch.distributed would say."""
    dataset = torchvision.datasets.ImageFolder(root / "train", ClassificationPresetTrain(**train))
    dataset_test = torchvision.datasets.ImageFolder(
        root / "val", ClassificationPresetEval(**evaluation)
    )
    train_sampler: Any
    test_sampler: Any
    if ranks is not None:
        rank, count = ranks
        if ra_sampler:
            train_sampler = RASampler(dataset, count, rank, shuffle=True)
        else:
            train_sampler = DistributedSampler(dataset, count, rank)
        test_sampler = DistributedSampler(dataset_test, count, rank, shuffle=False)
    else:
        train_sampler = RandomSampler(dataset)
        test_sampler = SequentialSampler(dataset_test)
    return dataset, dataset_test, train_sampler, test_sampler


def loaders(
    root: Path,
    *,
    batch_size: int = 8,
    mixup_alpha: float = 0.0,
    cutmix_alpha: float = 0.0,
    use_v2: bool = False,
    ranks: tuple[int, int] | None = None,
    ra_sampler: bool = False,
    workers: int = 0,
    train: dict[str, Any] | None = None,
    evaluation: dict[str, Any] | None = None,
) -> Any:
    """The training and the validation loader, and the training's sampler."""
    options = {"crop_size": 64, "use_v2": use_v2}
    of_eval = {"crop_size": 64, "resize_size": 72, "use_v2": use_v2}
    dataset, dataset_test, train_sampler, test_sampler = load_data(
        root,
        {**options, **(train or {})},
        {**of_eval, **(evaluation or {})},
        ranks=ranks,
        ra_sampler=ra_sampler,
    )
    mixup_cutmix = get_mixup_cutmix(
        mixup_alpha=mixup_alpha,
        cutmix_alpha=cutmix_alpha,
        num_classes=len(dataset.classes),
        use_v2=use_v2,
    )
    if mixup_cutmix is not None:

        def collate_fn(batch: Any) -> Any:
            return mixup_cutmix(*default_collate(batch))

    else:
        collate_fn = default_collate

    data_loader = DataLoader(
        dataset,
        batch_size=batch_size,
        sampler=train_sampler,
        num_workers=workers,
        pin_memory=False,
        collate_fn=collate_fn,
    )
    data_loader_test = DataLoader(
        dataset_test, batch_size=batch_size, sampler=test_sampler, num_workers=workers
    )
    return data_loader, data_loader_test, train_sampler


def small_model(classes: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 4, 8, stride=8), nn.ReLU(), nn.Flatten(), nn.LazyLinear(classes)
    )


def train_one_epoch(model: nn.Module, optimizer: Any, data_loader: Any, model_ema: Any) -> float:
    model.train()
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    last = 0.0
    for i, (image, target) in enumerate(data_loader):
        loss = criterion(model(image), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i % 2 == 0:
            model_ema.update_parameters(model)
        last = loss.item()
    return last


def evaluate(model: nn.Module, data_loader: Any) -> int:
    """Returns the number of samples; the script warns if this is not the dataset's length."""
    model.eval()
    seen = 0
    with torch.inference_mode():
        for image, _target in data_loader:
            model(image)
            seen += image.shape[0]
    if hasattr(data_loader.dataset, "__len__") and len(data_loader.dataset) != seen:
        raise RuntimeError(f"{len(data_loader.dataset)} samples, {seen} used for validation")
    return seen


def main(root: Path, epochs: int = 2) -> None:
    data_loader, data_loader_test, _ = loaders(root, mixup_alpha=0.2, cutmix_alpha=1.0)
    model = small_model(len(data_loader.dataset.classes))
    model(torch.zeros(1, 3, 64, 64))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    model_ema = torch.optim.swa_utils.AveragedModel(model)
    for epoch in range(epochs):
        loss = train_one_epoch(model, optimizer, data_loader, model_ema)
        print(f"epoch {epoch}: loss {loss:.3f}, {evaluate(model, data_loader_test)} validated")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
