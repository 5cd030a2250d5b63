# SPDX-License-Identifier: Apache-2.0
"""Exact pixels: any sequence of crops, flips, borders and resizes gives the bytes that Pillow 13
gives when it does the same steps one after the other, also through EXIF orientation, and a final
conversion gives torchvision's float32."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import PIL
import pytest
from PIL import Image, ImageOps

import headrace as hr
from headrace import transforms as T

FILTERS = {
    "nearest": Image.Resampling.NEAREST,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
}
PIPELINES = 60
MEAN, STD = np.float32(0.485), np.float32(0.229)

Step = Callable[[Image.Image], Image.Image]


def center_crop(height: int, width: int) -> Step:
    """torchvision's _center_crop_image_pil."""

    def crop(picture: Image.Image) -> Image.Image:
        high, wide = max(0, height - picture.height), max(0, width - picture.width)
        picture = ImageOps.expand(
            picture, (wide // 2, high // 2, (wide + 1) // 2, (high + 1) // 2), fill=0
        )
        top = round((picture.height - height) / 2)
        left = round((picture.width - width) / 2)
        return picture.crop((left, top, left + width, top + height))

    return crop


def resize_shorter(size: int, resample: Image.Resampling) -> Step:
    """torchvision's size=int."""

    def resize(picture: Image.Image) -> Image.Image:
        width, height = picture.size
        if width <= height:
            to = (size, int(size * height / width))
        else:
            to = (int(size * width / height), size)
        return picture if to == picture.size else picture.resize(to, resample)

    return resize


def resize_to(height: int, width: int, resample: Image.Resampling) -> Step:
    return lambda picture: (
        picture if picture.size == (width, height) else picture.resize((width, height), resample)
    )


def draw_step(rng: random.Random) -> tuple[T.Transform, Step]:
    """A transform and its equivalent in Pillow."""
    name = rng.choice(list(FILTERS))
    height, width = rng.randint(1, 90), rng.randint(1, 90)
    borders = tuple(rng.randint(0, 9) for _ in range(4))
    fill = tuple(rng.choice([0, 255, 114]) for _ in range(3))
    return rng.choice(
        [
            (T.RandomHorizontalFlip(p=1), ImageOps.mirror),
            (T.RandomVerticalFlip(p=1), ImageOps.flip),
            (
                T.Pad(borders, fill=fill),
                lambda picture: ImageOps.expand(picture, borders, fill=fill),
            ),
            (T.CenterCrop((height, width)), center_crop(height, width)),
            (
                T.Resize((height, width), interpolation=name),
                resize_to(height, width, FILTERS[name]),
            ),
            (T.Resize(height, interpolation=name), resize_shorter(height, FILTERS[name])),
        ]
    )


def write_pictures(folder: Path, orientations: bool) -> list[Path]:
    """PNG files, which are lossless; with orientations, one for each Exif value."""
    rng = np.random.default_rng(5)
    paths = []
    for i in range(8):
        height, width = rng.integers(8, 120, 2)
        noise = rng.integers(0, 256, (height, width, 3))
        ramp = (np.arange(width) * 3 + np.arange(height)[:, None] * 2)[..., None] % 256
        picture = Image.fromarray(((noise + 3 * ramp) // 4).astype(np.uint8))
        exif = Image.Exif()
        if orientations:
            exif[0x0112] = i + 1
        paths.append(folder / f"{i}.png")
        picture.save(paths[-1], exif=exif)
    return paths


def delivered(
    paths: list[Path], transforms: list[T.Transform], **options: bool
) -> list[np.ndarray]:
    source = hr.records(image=paths)
    loader = hr.Loader(source, transforms, batch_size=1, ragged="list", **options).numpy()
    return [np.asarray(batch["image"][0]) for batch in loader]


@pytest.mark.skipif(PIL.__version__.split(".")[0] != "13", reason="needs Pillow 13: the oracle")
@pytest.mark.parametrize("seed", range(PIPELINES))
def test_any_geometry_equals_pillows_step_by_step(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    turned = seed % 2 == 1
    paths = write_pictures(tmp_path, turned)
    steps = [draw_step(rng) for _ in range(rng.randint(1, 6))]
    transforms = [transform for transform, _ in steps]
    ours = delivered(paths, transforms, exif_orientation=turned)
    for path, array in zip(paths, ours, strict=True):
        picture = Image.open(path).convert("RGB")
        if turned:
            picture = ImageOps.exif_transpose(Image.open(path)).convert("RGB")
        for _, step in steps:
            picture = step(picture)
        expected = np.asarray(picture).transpose(2, 0, 1)
        np.testing.assert_array_equal(array, expected, err_msg=f"{path.name}: {transforms}")


@pytest.mark.skipif(PIL.__version__.split(".")[0] != "13", reason="needs Pillow 13: the oracle")
def test_conversion_after_geometry_equals_torchvisions(tmp_path: Path) -> None:
    paths = write_pictures(tmp_path, False)
    transforms = [
        T.Resize((40, 50)),
        T.Pad(3, fill=200),
        T.ToDtype("float32", scale=True),
        T.Normalize([float(MEAN)] * 3, [float(STD)] * 3),
        T.CenterCrop((44, 30)),
    ]
    for path, array in zip(paths, delivered(paths, transforms), strict=True):
        picture = Image.open(path).convert("RGB").resize((50, 40), Image.Resampling.BILINEAR)
        picture = center_crop(44, 30)(ImageOps.expand(picture, 3, fill=(200, 200, 200)))
        values = np.asarray(picture).transpose(2, 0, 1).astype(np.float32)
        # to_dtype_image multiplies by the reciprocal, normalize_image subtracts and divides.
        expected = (values * np.float32(1 / 255) - MEAN) / STD
        assert array.dtype == np.float32
        np.testing.assert_array_equal(array, expected)
