# SPDX-License-Identifier: Apache-2.0
"""Users' Pillow transforms become operators, with the same pixels and probabilities, if all their
calls have one; otherwise they stay in Python, and the report says why."""

from __future__ import annotations

import random
from pathlib import Path
from random import uniform
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageEnhance, ImageFilter, ImageOps

import headrace as hr

torch = pytest.importorskip("torch")
tv = pytest.importorskip("torchvision")
v1 = tv.transforms


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("pictures")
    noise = np.random.default_rng(4)
    (root / "all").mkdir()
    for number in range(6):
        pixels = noise.integers(0, 256, (30 + number, 41, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(root / "all" / f"{number}.png")
    return root


def translated(pictures: Path, *transforms: Any) -> Any:
    recipe = v1.Compose([v1.Resize((24, 24)), *transforms, v1.PILToTensor()])
    dataset = tv.datasets.ImageFolder(str(pictures), recipe)
    return hr.from_dataloader(torch.utils.data.DataLoader(dataset, 6), verbose=False)


class MoCoBlur:
    def __init__(self, sigma: tuple[float, float]) -> None:
        self.sigma = sigma

    def __call__(self, x: Any) -> Any:
        sigma = uniform(self.sigma[0], self.sigma[1])
        return x.filter(ImageFilter.GaussianBlur(radius=sigma))


class DinoBlur:
    def __init__(self, p: float = 0.5) -> None:
        self.prob = p

    def __call__(self, img: Any) -> Any:
        if not random.random() <= self.prob:
            return img
        return img.filter(ImageFilter.GaussianBlur(radius=random.uniform(0.1, 2.0)))


class BarlowBlur:
    p = 0.3

    def __call__(self, img: Any) -> Any:
        if np.random.rand() < self.p:
            return img.filter(ImageFilter.GaussianBlur(np.random.rand() * 1.9 + 0.1))
        return img


class Solarization:
    def __call__(self, img: Any) -> Any:
        return ImageOps.solarize(img) if random.random() < 0.2 else img


def one_of_three(img: Any) -> Any:
    share = torch.rand(1).item()
    if share < 0.25:
        return ImageOps.posterize(img, 3)
    if random.random() < 0.5:
        return img.convert("L").convert("RGB")
    return img


def several(img: Any) -> Any:
    return ImageEnhance.Contrast(ImageOps.autocontrast(img)).enhance(1.5).transpose(0)


def brighter(img: Any) -> Any:
    return ImageEnhance.Brightness(img).enhance(1 + random.uniform(-0.4, 0.4))


OPERATORS = {
    "PillowGaussianBlur(radius=[0.1, 2.0])": MoCoBlur((0.1, 2.0)),
    "RandomApply(transforms=[PillowGaussianBlur(radius=[0.1, 2.0])], p=0.5)": DinoBlur(),
    "RandomApply(transforms=[PillowGaussianBlur(radius=[0.1, 2.0])], p=0.3)": BarlowBlur(),
    "RandomApply(transforms=[RandomSolarize(threshold=128.0, p=1.0)], p=0.2)": Solarization(),
    "ColorJitter(brightness=[0.6, 1.4]": brighter,
    "RandomAutocontrast(p=1.0": several,
}


@pytest.mark.parametrize("operator", OPERATORS)
def test_transforms_that_only_call_pillow_become_operators(operator: str, pictures: Path) -> None:
    loader = translated(pictures, OPERATORS[operator])
    assert not loader.report.python and loader.report.records_checked == 6
    assert loader.report.differences["image"] == 0
    assert operator in " ".join(str(loader).split())


def test_each_outcome_is_as_frequent_as_in_the_original(pictures: Path) -> None:
    loader = translated(pictures, v1.Grayscale(3), one_of_three)
    assert not loader.report.python
    images = np.concatenate([np.asarray(batch.image) for _ in range(100) for batch in loader])
    reduced = (images % 32 == 0).all(axis=(1, 2, 3)).mean()
    assert len(images) == 600 and abs(reduced - 0.25) < 0.09


class Counting:
    calls = 0

    def __call__(self, img: Any) -> Any:
        self.calls += 1
        return ImageOps.invert(img)


def wide_ones(img: Any) -> Any:
    return ImageOps.invert(img) if img.size[0] > 20 else img


def rarely(img: Any) -> Any:
    return ImageOps.invert(img) if random.random() < 1e-6 else img


def twice(img: Any) -> Any:
    share = random.random()
    return img if share < 0.3 or share > 0.6 else ImageOps.invert(img)


def normally(img: Any) -> Any:
    return img if random.gauss(0, 1) < 3 else ImageOps.invert(img)


def not_stand_ins(img: Any) -> Any:
    return img if type(img) is Image.Image else ImageOps.invert(img)


KEPT = {
    "changes self.calls": Counting(),
    "uses .size of its image": wide_ones,
    "too rare to compare": rarely,
    "uses a random number twice": twice,
    "in an unsupported way": normally,
    "does something else with real images": not_stand_ins,
}


@pytest.mark.parametrize("reason", KEPT)
def test_transforms_that_do_more_stay_in_python(reason: str, pictures: Path) -> None:
    loader = translated(pictures, KEPT[reason])
    assert reason in next(part.note for part in loader.report.python)
