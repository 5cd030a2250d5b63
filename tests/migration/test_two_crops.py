# SPDX-License-Identifier: Apache-2.0
"""The unmodified scripts of MoCo and SimSiam: two views of an image stay two batches."""

from __future__ import annotations

from pathlib import Path

import made_data
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torchvision.transforms.v2")
import two_crops as script  # noqa: E402
from comparison import assert_equal_batches, native  # noqa: E402
from torch import nn  # noqa: E402
from torchvision import transforms  # noqa: E402


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_data.image_folder(tmp_path_factory.mktemp("folder"))


def test_two_views_are_equal_without_random_steps(root: Path) -> None:
    steps = [transforms.Resize((64, 64)), transforms.RandomHorizontalFlip(1.0)]
    steps += [transforms.ToTensor(), transforms.Normalize((0.5,) * 3, (0.25,) * 3)]
    dataloader = script.train_loader(root, steps=steps, shuffle=False)
    assert_equal_batches(native(dataloader), dataloader)


def test_the_two_views_are_drawn_independently(root: Path) -> None:
    loader = native(script.train_loader(root))
    for images, labels in loader.torch():
        assert len(images) == 2 and labels.shape == (8,)
        query, key = images
        assert query.shape == key.shape == (8, 3, 64, 64)
        assert not any(torch.equal(one, other) for one, other in zip(query, key, strict=True))


def test_the_scripts_own_blur_is_native(root: Path) -> None:
    loader = native(script.train_loader(root, aug_plus=True))
    assert "PillowGaussianBlur" in str(loader)
    assert str(loader.report).count("ToTensor") == 1  # for both views: listed once
    assert "for each of image, image2" in str(loader.report)
    model = nn.Sequential(nn.Conv2d(3, 4, 8, stride=8), nn.ReLU(), nn.Flatten(), nn.Linear(256, 8))
    assert script.train(loader.torch(), model, torch.optim.SGD(model.parameters(), lr=0.01)) < 1
