# SPDX-License-Identifier: Apache-2.0
"""timm's PrefetchLoader in from_dataloader, made as in timm's train.py. If timm is not installed,
with classes of the same names and methods."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from migrated_classes import translated
from PIL import Image

import headrace as hr

torch = pytest.importorskip("torch")
v1 = pytest.importorskip("torchvision.transforms")
from torch.utils.data import DataLoader, Dataset, default_collate  # noqa: E402

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
MODULE = "timm.ducks"


def fast_collate(batch: Any) -> Any:
    targets = default_collate([each[1] for each in batch]).long()
    images = torch.zeros((len(batch), *batch[0][0].shape), dtype=torch.uint8)
    for row, (image, _) in zip(images, batch, strict=True):
        row += torch.as_tensor(image)
    return images, targets


fast_collate.__module__ = "timm.data.loader"


class FastCollateMixup:
    """Blends a batch with its reverse, in the simplest form of each mode."""

    mixup_enabled = True

    def __call__(self, batch: Any) -> Any:
        images, targets = fast_collate(batch)
        targets = torch.nn.functional.one_hot(targets, 3).float()
        if self.mixup_enabled:
            share = float(np.random.beta(1, 1))
            images = (images * share + images.flip(0) * (1 - share)).round().byte()
            targets = targets * share + targets.flip(0) * (1 - share)
        return images, targets


class RandomErasing:
    __module__ = MODULE

    def __init__(self, mode: str = "pixel", splits: int = 0, count: int = 1) -> None:
        self.probability, self.min_area, self.max_area = 1.0, 0.1, 1 / 3
        self.log_aspect_ratio = (math.log(0.3), math.log(1 / 0.3))
        self.min_count, self.max_count, self.num_splits = 1, count, splits
        self.per_pixel, self.rand_color = mode == "pixel", mode == "rand"
        self.device = torch.device("cpu")

    def __call__(self, images: Any) -> Any:
        assert str(self.device) == "cpu"
        for image in images if images.ndim == 4 else [images]:
            image[:, 2:7, 3:8] = torch.randn(3, 5, 5) if self.per_pixel else torch.randn(3, 1, 1)
        return images


class PrefetchLoader:
    __module__ = MODULE

    def __init__(self, loader: Any, erasing: Any = None, dtype: Any = torch.float32) -> None:
        self.loader, self.random_erasing, self.img_dtype = loader, erasing, dtype
        self.mean = torch.tensor([255 * each for each in MEAN]).view(1, 3, 1, 1)
        self.std = torch.tensor([255 * each for each in STD]).view(1, 3, 1, 1)

    def __iter__(self) -> Iterator[Any]:
        for images, targets in self.loader:
            yield images.to(self.img_dtype).sub_(self.mean).div_(self.std), targets

    @property
    def mixup_enabled(self) -> bool:
        return bool(getattr(self.loader.collate_fn, "mixup_enabled", False))

    @mixup_enabled.setter
    def mixup_enabled(self, enabled: bool) -> None:
        self.loader.collate_fn.mixup_enabled = enabled


class ToNumpy:
    __module__ = MODULE

    def __call__(self, image: Any) -> Any:
        return np.rollaxis(np.array(image, dtype=np.uint8), 2)


class ReaderImageFolder:
    def __init__(self, files: list[Path]) -> None:
        self.class_to_idx = {"eel": 2, "cat": 0, "dog": 1}
        self.samples = [(str(path), i % 3) for i, path in enumerate(files)]

    def __getitem__(self, index: int) -> Any:
        path, label = self.samples[index]
        return open(path, "rb"), label


class ImageDataset(Dataset):  # type: ignore[type-arg]
    __module__ = MODULE

    def __init__(self, files: list[Path], mode: str = "RGB") -> None:
        self.reader, self.target_transform = ReaderImageFolder(files), None
        self.transform = v1.Compose([v1.CenterCrop((9, 10)), ToNumpy()])
        self.load_bytes, self.input_img_mode, self.additional_features = False, mode, None

    def __len__(self) -> int:
        return len(self.reader.samples)

    def __getitem__(self, index: int) -> Any:
        file, label = self.reader[index]
        with file:
            image = Image.open(file).convert(self.input_img_mode)
        return (self.transform(image) if self.transform else image), label


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    root = tmp_path_factory.mktemp("timm")
    paths = [root / f"{number}.png" for number in range(12)]
    rng = np.random.default_rng(2)
    for path in paths:
        Image.fromarray(rng.integers(0, 256, (9, 10, 3), np.uint8)).save(path)
    return paths


def prefetch(files: list[Path], collate: Any = fast_collate, **options: Any) -> Any:
    return PrefetchLoader(
        DataLoader(ImageDataset(files), batch_size=4, collate_fn=collate), **options
    )


def test_bytes_are_normalized_as_the_prefetcher_does(files: list[Path]) -> None:
    theirs = prefetch(files)
    loader = translated(theirs)
    assert not loader.report.python and loader.source.classes == ["cat", "dog", "eel"]
    assert "whereas timm takes the next one" in str(loader.report)
    for (images, labels), (expected, targets) in zip(loader.torch(), theirs, strict=True):
        torch.testing.assert_close(images, expected, rtol=0, atol=2e-6)
        assert torch.equal(labels, targets)
    assert loader.torch().mixup_enabled is False


def test_its_random_erasing_is_native(files: list[Path]) -> None:
    loader = translated(prefetch(files, erasing=RandomErasing()))
    assert not loader.report.python
    plain = torch.cat([images for images, _ in prefetch(files)])
    images = torch.cat([images for images, _ in loader.torch()])
    share = ((images - plain).abs() > 1e-3).any(1).float().mean((1, 2))
    assert float(share.min()) > 0.1 and float(share.max()) < 0.5


@pytest.mark.parametrize(
    "options",
    [
        {"erasing": RandomErasing("rand")},
        {"erasing": RandomErasing(splits=2)},
        {"erasing": RandomErasing(count=3)},
        {"dtype": torch.float16},
    ],
)
def test_steps_without_an_operator_are_applied_to_batches(files: list[Path], options: Any) -> None:
    loader = translated(prefetch(files, **options))
    assert any("done to the batches" in part.note for part in loader.report.python)
    plain = prefetch(files, dtype=options.get("dtype", torch.float32))
    for (images, labels), (expected, targets) in zip(loader.torch(), plain, strict=True):
        assert images.dtype == expected.dtype and torch.equal(labels, targets)
        same = (images - expected).abs() < 1e-2
        assert bool(same[:, :, 8:].all()) and bool(same.all()) == ("dtype" in options)
    again = [images for images, _ in translated(prefetch(files, **options)).torch()]
    assert torch.equal(again[-1], images)


def test_mixup_runs_and_can_be_disabled(files: list[Path]) -> None:
    theirs = prefetch(files, FastCollateMixup())
    view = translated(theirs).torch()
    assert view.mixup_enabled is True
    mixed = list(view)
    assert all(float(targets.max(1).values.min()) > 0 for _, targets in mixed)
    assert not torch.equal(mixed[0][1], mixed[0][1].round())
    view.mixup_enabled = False
    assert theirs.loader.collate_fn.mixup_enabled is False is view.mixup_enabled
    for (images, targets), (expected, labels) in zip(view, theirs, strict=True):
        torch.testing.assert_close(images, expected, rtol=0, atol=2e-6)
        assert torch.equal(targets, labels)


def test_other_image_modes_of_the_dataset_run_in_python(files: list[Path]) -> None:
    dataset = ImageDataset(files, mode="CMYK")
    loader = translated(DataLoader(dataset, batch_size=4, collate_fn=fast_collate), trace=False)
    assert "not decoded as RGB" in str(loader.report)
    assert next(iter(loader.torch()))[0].shape == (4, 4, 9, 10)


def test_other_loaders_have_no_mixup_switch() -> None:
    view = hr.Loader(hr.records(x=np.arange(4)), batch_size=2).torch()
    assert not hasattr(view, "mixup_enabled")
    assert not hasattr(translated(DataLoader([(torch.zeros(2), 1)] * 4)).torch(), "mixup_enabled")
    assert "timm.ducks" not in sys.modules
