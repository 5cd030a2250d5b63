# SPDX-License-Identifier: Apache-2.0
"""Exact pixels: resizing equals Pillow 13 byte for byte at every size, number of channels and SIMD
level, in 8 bits and in float32; conversions equal torchvision's arithmetic, computed here with
NumPy (and with torchvision itself if it is installed)."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import PIL
import pytest
from PIL import Image

import headrace as hr
from headrace import _core
from headrace import transforms as T

Array = np.ndarray[Any, Any]

FILTERS = {
    "nearest": Image.Resampling.NEAREST,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
}
NORMALIZATIONS = [
    (hr.IMAGENET_MEAN, hr.IMAGENET_STD),
    ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5)),
    ((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)),
    ((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)),
    ((0.1307,), (0.3081,)),
]

pytestmark = pytest.mark.skipif(
    int(PIL.__version__.split(".")[0]) < 13, reason="Pillow 13 changed the order of the passes"
)


@pytest.fixture(params=_core.simd_levels())
def simd(request: pytest.FixtureRequest) -> Iterator[str]:
    before = _core.simd_level()
    _core.set_simd_level(request.param)
    yield request.param
    _core.set_simd_level(before)


def delivered(pixels: Array, transforms: list[Any], **options: Any) -> Array:
    """The only image of the only batch."""
    loader = hr.Loader(hr.records(image=[pixels]), transforms, batch_size=1, threads=1, **options)
    (batch,) = loader.numpy()
    return np.array(batch["image"][0])


def by_pillow(pixels: Array, height: int, width: int, resample: Image.Resampling) -> Array:
    """Plane by plane: Pillow would premultiply by an alpha channel."""
    planes = [Image.fromarray(plane).resize((width, height), resample) for plane in pixels]
    return np.stack([np.asarray(plane) for plane in planes])


def draw_size(rng: random.Random) -> int:
    return rng.choice([rng.randint(1, 9), rng.randint(1, 99), rng.randint(1, 300), 224])


def test_resize_equals_pillow(simd: str) -> None:
    rng, noise = random.Random(3), np.random.default_rng(3)
    for _ in range(150):
        channels, height, width = rng.randint(1, 4), draw_size(rng), draw_size(rng)
        to_height, to_width, name = draw_size(rng), draw_size(rng), rng.choice(list(FILTERS))
        pixels = noise.integers(0, 256, (channels, height, width), dtype=np.uint8)
        if rng.random() < 0.3:
            pixels = np.where(pixels < 128, 0, 255).astype(np.uint8)  # bicubic overshoots
        result = delivered(pixels, [T.Resize((to_height, to_width), interpolation=name)])
        expected = by_pillow(pixels, to_height, to_width, FILTERS[name])
        case = f"{channels} x {height} x {width} -> {to_height} x {to_width} {name}"
        np.testing.assert_array_equal(result, expected, case)


@pytest.mark.parametrize(
    ("height", "width", "to_height", "to_width"),
    [
        (3000, 40, 7, 33),  # many taps, vertical pass first
        (40, 3000, 33, 7),
        (1, 1, 50, 60),
        (2, 1500, 1400, 2),
        (2, 2, 1, 1),
        (900, 2, 1, 1),
        (64, 64, 64, 100),  # one axis is unchanged
        (64, 64, 100, 64),
    ],
)
@pytest.mark.parametrize("name", FILTERS)
def test_extreme_sizes_equal_pillow(
    simd: str, height: int, width: int, to_height: int, to_width: int, name: str
) -> None:
    pixels = np.random.default_rng(5).integers(0, 256, (3, height, width), dtype=np.uint8)
    result = delivered(pixels, [T.Resize((to_height, to_width), interpolation=name)])
    np.testing.assert_array_equal(result, by_pillow(pixels, to_height, to_width, FILTERS[name]))


def test_the_order_of_the_passes_is_pillow_13s() -> None:
    """On the boundary of the rule: the height shrinks by 2 * the width's factor, a little less or
    more."""
    noise = np.random.default_rng(7)
    for shrink in (-30, -1, 1, 5, 40):
        for off in (-1, 0, 1):
            height, width = 50 + 2 * shrink + off, 50 + shrink
            if height < 1:
                continue
            pixels = noise.integers(0, 256, (3, height, width), dtype=np.uint8)
            result = delivered(pixels, [T.Resize((50, 50))])
            expected = by_pillow(pixels, 50, 50, Image.Resampling.BILINEAR)
            np.testing.assert_array_equal(result, expected, f"{height} x {width}")


def test_channels_last_holds_the_same_pixels(simd: str) -> None:
    pixels = np.random.default_rng(9).integers(0, 256, (3, 90, 130), dtype=np.uint8)
    steps = [T.Resize((77, 61)), T.ToDtype("float32", scale=True)]
    first = delivered(pixels, steps)
    last = delivered(pixels, steps, memory_format="channels_last")
    if last.shape != first.shape:  # stored and shown in this order
        last = last.transpose(2, 0, 1)
    np.testing.assert_array_equal(first, last)


def test_floats_are_resized_as_pillow_does_in_mode_f() -> None:
    noise = np.random.default_rng(11)
    for name, resample in FILTERS.items():
        for height, width, to_height, to_width in [(40, 30, 17, 19), (9, 300, 50, 50)]:
            pixels = noise.integers(0, 256, (3, height, width), dtype=np.uint8)
            steps = [
                T.ToDtype("float32", scale=True),
                T.Resize((to_height, to_width), interpolation=name),
            ]
            scaled = pixels.astype(np.float32) * np.float32(1 / 255)
            expected = by_pillow(scaled, to_height, to_width, resample)
            np.testing.assert_array_equal(delivered(pixels, steps), expected)


def every_value() -> Array:
    return np.broadcast_to(np.arange(256, dtype=np.uint8).reshape(16, 16), (3, 16, 16)).copy()


def column(values: tuple[float, ...], dtype: str) -> Array:
    return np.asarray(values, dtype).astype(np.float32).reshape(-1, 1, 1)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize(("mean", "std"), NORMALIZATIONS)
def test_normalize_equals_torch_arithmetic_for_all_values(
    simd: str, dtype: str, mean: tuple[float, ...], std: tuple[float, ...]
) -> None:
    """Each operation in float32, rounded to the dtype."""
    scaled = (every_value().astype(np.float32) * np.float32(1 / 255)).astype(dtype)
    centered = (scaled.astype(np.float32) - column(mean, dtype)).astype(dtype)
    expected = (centered.astype(np.float32) / column(std, dtype)).astype(dtype)
    steps = [T.ToDtype(dtype, scale=True), T.Normalize(mean, std)]
    result = delivered(every_value(), steps)
    assert result.dtype == expected.dtype
    assert result.tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "uint8"])
@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("normalized", [True, False])
def test_conversions_equal_torchvision(
    simd: str, dtype: str, scale: bool, normalized: bool
) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("torchvision")
    from torchvision.transforms.v2 import functional as F

    picture = torch.from_numpy(every_value())
    steps: list[Any] = [T.ToDtype("float32", scale=True)]
    expected = F.to_dtype(picture, torch.float32, scale=True)
    if normalized:
        steps.append(T.Normalize(hr.IMAGENET_MEAN, hr.IMAGENET_STD))
        expected = F.normalize(expected, list(hr.IMAGENET_MEAN), list(hr.IMAGENET_STD))
    steps.append(T.ToDtype(dtype, scale=scale))
    expected = F.to_dtype(expected, getattr(torch, dtype), scale=scale)
    loader = hr.Loader(hr.records(image=[every_value()]), steps, batch_size=1).torch(batch="dict")
    (batch,) = loader
    assert torch.equal(batch["image"][0].view(torch.uint8), expected.contiguous().view(torch.uint8))
