# SPDX-License-Identifier: Apache-2.0
"""Dataset classes of scripts and notebooks, unmodified."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import made_data
import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torchvision.transforms.v2")
import usual_datasets as script  # noqa: E402
from comparison import assert_equal_batches, migrated, native  # noqa: E402
from torch import nn  # noqa: E402


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_data.table(tmp_path_factory.mktemp("table"))


@pytest.mark.parametrize("loader_of", [script.csv_loader, script.named_loader])
def test_images_opened_by_pillow_from_a_table_are_native_and_equal(
    root: Path, loader_of: Any
) -> None:
    dataloader = loader_of(root, script.eval_transform())
    assert_equal_batches(native(dataloader), dataloader)
    native(loader_of(root, shuffle=True, drop_last=True))


def test_both_parts_of_random_split_are_native(root: Path) -> None:
    train, validation = script.split_loaders(root)
    assert_equal_batches(native(validation), validation)
    model = nn.Sequential(nn.Conv2d(3, 4, 8, stride=8), nn.ReLU(), nn.Flatten(), nn.Linear(256, 3))
    assert script.train(model, native(train).torch()) > 0


def test_opencv_decoding_is_native_and_albumentations_follows(root: Path) -> None:
    A = pytest.importorskip("albumentations")
    pytest.importorskip("cv2")
    from albumentations.pytorch import ToTensorV2

    plain = A.Compose([A.Resize(48, 40), A.HorizontalFlip(p=1.0), A.Normalize(), ToTensorV2()])
    dataloader = script.opencv_loader(root, plain)
    loader = migrated(dataloader)
    assert_equal_batches(loader, dataloader)
    assert [part.name for part in loader.report.python] == ["Compose(image=image)"], loader.report
    images, labels = next(iter(migrated(script.opencv_loader(root)).torch()))
    assert images.shape == (8, 3, 64, 64) and labels.dtype == torch.int64


def test_albumentations_draws_from_its_own_seed() -> None:
    A = pytest.importorskip("albumentations")
    from headrace.migrate.reseeded import Reseeded

    def made() -> Any:
        flips = A.OneOf([A.HorizontalFlip(p=0.5), A.VerticalFlip(p=0.5)])
        return A.Compose([A.RandomCrop(20, 20), flips, A.ColorJitter()])

    ours, theirs = made(), made()
    reseed, image = Reseeded(ours), np.random.default_rng(0).integers(0, 256, (50, 60, 3), np.uint8)
    for seed in (3, 4, 4, 5):
        reseed(seed)
        theirs.set_random_seed(seed)
        for _ in range(2):
            assert np.array_equal(ours(image=image)["image"], theirs(image=image)["image"])
        if seed == 4:  # the script gives it its own generators
            ours.set_random_seed(8)
