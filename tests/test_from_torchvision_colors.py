# SPDX-License-Identifier: Apache-2.0
"""hr.from_dataloader() makes color transforms native in the arithmetic of their input type."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from migrated_classes import assert_same_batches, translated

torch = pytest.importorskip("torch")
tv = pytest.importorskip("torchvision")
pytest.importorskip("torchvision.transforms.v2")  # so that tv has it
from torch.utils.data import DataLoader  # noqa: E402


def folder(root: Path, transform: Any, **more: Any) -> Any:
    return tv.datasets.ImageFolder(str(root), transform=transform, **more)


@pytest.mark.parametrize("channels", [1, 3])
def test_grayscale_is_native_with_the_arithmetic_of_its_input(
    pictures: Path, channels: int
) -> None:
    from torchvision.transforms import v2

    v1 = tv.transforms
    to_float = v2.ToDtype(torch.float32, scale=True)
    for recipe, arithmetic in (
        ([v1.Grayscale(channels), v1.Resize((12, 12)), v2.ToImage()], "pillow"),
        ([v2.Resize((12, 12)), v2.Grayscale(channels), v2.ToImage()], "pillow"),
        ([v1.Resize((12, 12)), v2.ToImage(), v2.Grayscale(channels)], "torch"),
        ([v1.Resize((12, 12)), v2.ToImage(), to_float, v2.Grayscale(channels)], "torch"),
        ([v1.Resize((12, 12)), v1.PILToTensor(), v1.Grayscale(channels)], None),
    ):
        dataset = folder(pictures, v2.Compose(recipe))
        dataloader = DataLoader(dataset, batch_size=6)
        with translated(dataloader) as loader:
            assert_same_batches(dataloader, loader)
            plan = str(loader.plan())
        (part,) = [part for part in loader.report.parts if part.name.startswith("Grayscale")]
        assert part.became == ("native" if arithmetic else "Python transform"), part
        assert arithmetic is None or re.search(f"arithmetic=.?{arithmetic}", plan), plan


@pytest.mark.parametrize("kind", ["pil", "tensor"])
def test_color_transforms_are_native_with_the_arithmetic_of_their_input(
    pictures: Path, kind: str
) -> None:
    from torchvision.transforms import v2

    steady = (
        v2.RandomGrayscale(1.0),
        v2.RandomInvert(1.0),
        v2.RandomPosterize(3, 1.0),
        v2.RandomSolarize(99, 1.0),
        v2.RandomAutocontrast(1.0),
        v2.RandomEqualize(1.0),
        v2.RandomAdjustSharpness(1.7, 1.0),
        v2.ColorJitter((1.3, 1.3)),
        v2.ColorJitter(contrast=(0.6, 0.6)),
        v2.ColorJitter(saturation=(1.5, 1.5)),
        v2.ColorJitter(hue=(0.2, 0.2)),
    )
    random = (v2.ColorJitter(0.4, 0.4, 0.4, 0.1), v2.RandomPhotometricDistort())
    for transform in (*steady, *random, v2.RandomChannelPermutation()):
        # Pillow's and torchvision's Resize differ; a crop is the same in both.
        before = [v2.CenterCrop((40, 33))] + ([v2.ToImage()] if kind == "tensor" else [])
        dataset = folder(pictures, v2.Compose([*before, transform, v2.ToImage()]))
        dataloader = DataLoader(dataset, batch_size=6)
        with translated(dataloader) as loader:
            assert not loader.report.python, loader.report
            if transform in steady:
                assert_same_batches(dataloader, loader)
            else:
                next(iter(loader))


def test_float_and_v1_tensor_color_transforms_run_unchanged(
    pictures: Path,
) -> None:
    v1 = tv.transforms
    for steps in ([v1.ToTensor(), v1.ColorJitter(0.2)], [v1.ToTensor(), v1.GaussianBlur(3)]):
        dataset = folder(pictures, v1.Compose([v1.Resize((12, 12)), *steps]))
        with translated(DataLoader(dataset, batch_size=6)) as loader:
            (part,) = loader.report.python
            assert "floats" in part.note, part


def test_colors_of_floats_are_native_in_the_arithmetic_of_v2(pictures: Path) -> None:
    v2 = tv.transforms.v2
    to_float = [v2.Resize((12, 12)), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]
    steady = [v2.RandomInvert(1.0), v2.RandomSolarize(0.3, 1.0), v2.RandomPosterize(3, 1.0)]
    steady += [v2.RandomAutocontrast(1.0), v2.RandomGrayscale(1.0), v2.RandomEqualize(1.0)]
    near = [v2.RandomAdjustSharpness(2, 1.0), v2.GaussianBlur(3, 0.7)]
    for transform in (
        *steady,
        *near,
        v2.ColorJitter(0.2, 0.2, 0.2, 0.1),
        v2.RandomPhotometricDistort(),
    ):
        dataset = folder(pictures, v2.Compose([*to_float, transform]))
        dataloader = DataLoader(dataset, batch_size=6)
        with translated(dataloader) as loader:
            assert not loader.report.python, loader.report
            if transform in (*steady, *near):
                tolerance = 2e-6 if transform in near else 0
                assert_same_batches(dataloader, loader, tolerance=tolerance)


def test_noise_on_bytes_is_native_and_erasing_noise_stays_torchvisions(pictures: Path) -> None:
    v2 = tv.transforms.v2
    steps = [
        v2.Resize((40, 40)),
        v2.ToImage(),
        v2.GaussianNoise(),
        v2.RandomErasing(value="random"),
    ]
    dataset = folder(pictures, v2.Compose(steps))
    with translated(DataLoader(dataset, batch_size=4)) as loader:
        (part,) = loader.report.python
        assert part.name.startswith("RandomErasing") and "which uint8 cannot hold" in part.note


def test_jpeg_distortion_is_native_and_compared(pictures: Path) -> None:
    v2 = tv.transforms.v2
    steps = [v2.Resize((40, 40)), v2.JPEG((30, 60)), v2.PILToTensor()]
    dataset = folder(pictures, v2.Compose(steps))
    with translated(DataLoader(dataset, batch_size=4)) as loader:
        assert not loader.report.python and loader.report.records_checked == 23


def test_policies_are_native_in_the_arithmetic_of_the_pipeline(pictures: Path) -> None:
    from torchvision.transforms import v2

    policies = [
        v2.AutoAugment(v2.AutoAugmentPolicy.SVHN),
        v2.RandAugment(3, 7, fill=[1.0, 2.0, 3.0]),
        v2.TrivialAugmentWide(interpolation=v2.InterpolationMode.BILINEAR),
        v2.AugMix(),
    ]
    for first, arithmetic in ((v2.Identity(), "pillow"), (v2.ToImage(), "torch")):
        recipe = [v2.CenterCrop(16), first, *policies, v2.ToImage()]
        loader = translated(DataLoader(folder(pictures, v2.Compose(recipe)), batch_size=4))
        assert not loader.report.python, loader.report
        plan = str(loader.plan())
        wanted = 3 if arithmetic == "pillow" else 4  # AugMix is torch's in both
        assert plan.count(f'arithmetic="{arithmetic}"') == wanted, plan
    first = [tv.transforms.TrivialAugmentWide(), tv.transforms.CenterCrop(16), v2.ToImage()]
    loader = translated(DataLoader(folder(pictures, tv.transforms.Compose(first)), batch_size=4))
    assert not loader.report.python, loader.report
