# SPDX-License-Identifier: Apache-2.0
"""Images as patches equal those made by Pillow and the reshapes of timm and transformers."""

from __future__ import annotations

import io
import math
from typing import Any

import numpy as np
import pytest
from PIL import Image

import headrace as hr
from headrace import transforms as T

Pixels = np.ndarray[Any, Any]
SIZES = [(97, 131), (64, 64), (33, 200), (150, 41), (16, 16), (301, 299)]


def picture(height: int, width: int, seed: int = 0) -> Image.Image:
    return Image.fromarray(
        np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    )


def encoded(image: Image.Image) -> bytes:
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


def naflex_size(height: int, width: int, patch: int, patches: int) -> tuple[int, int]:
    """transformers' get_image_size_for_max_num_patches, by its definition."""

    def scaled(scale: float, edge: int) -> int:
        return max(patch, math.ceil(edge * scale / patch) * patch)

    low, high = 1e-6, 100.0
    while high - low >= 1e-5:
        middle = (low + high) / 2
        fits = (scaled(middle, height) // patch) * (scaled(middle, width) // patch) <= patches
        low, high = (middle, high) if fits else (low, middle)
    return scaled(low, height), scaled(low, width)


def qwen_size(height: int, width: int, factor: int, least: int, most: int) -> tuple[int, int]:
    """transformers' smart_resize, by its definition."""
    h, w = round(height / factor) * factor, round(width / factor) * factor
    if h * w > most:
        beta = math.sqrt(height * width / most)
        h = max(factor, math.floor(height / beta / factor) * factor)
        w = max(factor, math.floor(width / beta / factor) * factor)
    elif h * w < least:
        beta = math.sqrt(least / (height * width))
        h, w = math.ceil(height * beta / factor) * factor, math.ceil(width * beta / factor) * factor
    return h, w


def naflex_patches(pixels: Pixels, patch: int) -> Pixels:
    """timm's patchify_image of (C, H, W)."""
    c, h, w = pixels.shape
    rows = pixels.reshape(c, h // patch, patch, w // patch, patch).transpose(1, 3, 2, 4, 0)
    return rows.reshape(-1, patch * patch * c)


def qwen_patches(pixels: Pixels, patch: int, merge: int) -> Pixels:
    """Qwen2VLImageProcessor's patches of one image: two equal frames."""
    c, h, w = pixels.shape
    frames = np.stack([pixels, pixels])
    gh, gw = h // patch, w // patch
    split = frames.reshape(1, 2, c, gh // merge, merge, patch, gw // merge, merge, patch)
    return split.transpose(0, 3, 6, 4, 7, 2, 1, 5, 8).reshape(gh * gw, c * 2 * patch * patch)


def planes(image: Image.Image) -> Pixels:
    return np.asarray(image).transpose(2, 0, 1)


@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic"])
def test_pixels_equal_those_of_pillow(interpolation: str) -> None:
    resample = getattr(Image.Resampling, interpolation.upper())
    for number, (height, width) in enumerate(SIZES):
        image = picture(height, width, number)
        source = hr.open([{"image": encoded(image)}])
        for step, (h, w) in (
            (
                T.ResizeToSequence(16, 60, interpolation=interpolation),
                naflex_size(height, width, 16, 60),
            ),
            (
                T.SmartResize(28, 56 * 56, 120 * 120, interpolation=interpolation),
                qwen_size(height, width, 28, 56 * 56, 120 * 120),
            ),
        ):
            (batch,) = hr.Loader(source, [step], batch_size=1, ragged="list")
            expected = planes(image.resize((w, h), resample))
            np.testing.assert_array_equal(batch.image[0], expected)


def test_a_random_crop_of_the_whole_image_is_a_resize_to_the_sequence() -> None:
    for number, (height, width) in enumerate(SIZES):
        source = hr.open([{"image": encoded(picture(height, width, number))}])
        whole = {"scale": (1.0, 1.0), "ratio": (1.0, 1.0), "interpolation": "bicubic"}
        of_crops, of_resized = (
            next(iter(hr.Loader(source, [step], batch_size=1, ragged="list"))).image[0]
            for step in (
                T.RandomResizedCropToSequence(16, 60, **whole),
                T.ResizeToSequence(16, 60, interpolation="bicubic"),
            )
        )
        np.testing.assert_array_equal(of_crops, of_resized)


def test_random_crops_keep_near_the_aspect_ratio_of_the_image_and_fit_the_sequence() -> None:
    height, width, patches = 60, 600, 64
    ramp = np.broadcast_to(np.linspace(0, 255, width).astype(np.uint8), (3, height, width))
    source = hr.subset(hr.open([{"image": np.array(ramp)}]), [0] * 200)
    step = T.RandomResizedCropToSequence(4, patches, scale=(0.25, 0.25), ratio=(0.8, 1.25))
    shapes, starts = set(), set()
    for batch in hr.Loader(source, [step], batch_size=1, ragged="list"):
        _, h, w = batch.image[0].shape
        assert h % 4 == w % 4 == 0 and (h // 4) * (w // 4) <= patches
        assert 5 < w / h < 17, "ten times as wide as high, times 0.8 to 1.25, and rounded"
        row = batch.image[0][0, 0].astype(int)
        assert 255 * 0.42 < row[-1] - row[0] < 255 * 0.58, "half of the width, times the root"
        shapes.add((h, w))
        starts.add(int(row[0]))
    assert len(shapes) > 1 and len(starts) > 20


@pytest.mark.parametrize("ragged", ["pad", "packed"])
def test_batches_of_patches(ragged: str) -> None:
    images = [picture(height, width, n) for n, (height, width) in enumerate(SIZES)]
    source = hr.open([{"image": encoded(image)} for image in images])
    steps = [
        T.ResizeToSequence(16, 40),
        T.ToDtype("float32", scale=True),
        T.Normalize([0.5, 0.4, 0.3], [0.5, 0.6, 0.7]),
        T.Fork("image", patches=[T.Patchify(16)], coordinates=[T.PatchCoordinates(16)]),
    ]
    (batch,) = hr.Loader(source, steps, batch_size=len(SIZES), ragged=ragged)
    mean = np.float32([0.5, 0.4, 0.3])[:, None, None]
    std = np.float32([0.5, 0.6, 0.7])[:, None, None]
    for number, image in enumerate(images):
        h, w = naflex_size(image.height, image.width, 16, 40)
        pixels = planes(image.resize((w, h), Image.Resampling.BILINEAR)).astype(np.float32)
        expected = naflex_patches((pixels / np.float32(255) - mean) / std, 16)
        y, x = np.divmod(np.arange(len(expected)), w // 16)
        if ragged == "pad":
            assert batch.patches_lengths[number] == len(expected)
            assert batch.patches_mask[number].sum() == len(expected)
            mine = slice(0, len(expected))
            patches, coordinates = batch.patches[number, mine], batch.coordinates[number, mine]
        else:
            begin, end = batch.patches_offsets[number : number + 2]
            patches, coordinates = batch.patches[begin:end], batch.coordinates[begin:end]
        np.testing.assert_allclose(patches, expected, rtol=0, atol=1e-6)
        np.testing.assert_array_equal(coordinates, np.stack([y, x], 1))


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32"])
@pytest.mark.parametrize("merge", [1, 2, 3])
def test_blocks_of_patches(merge: int, dtype: str) -> None:
    image = picture(84, 168)
    source = hr.open([{"image": encoded(image)}])
    steps = [
        T.ToDtype(dtype, scale=dtype != "uint8"),
        T.Fork(
            "image",
            patches=[T.Patchify(14, "qwen2-vl", merge)],
            coordinates=[T.PatchCoordinates(14, "qwen2-vl", merge)],
        ),
    ]
    (plain,) = hr.Loader(source, steps[:1], batch_size=1, ragged="list")
    (batch,) = hr.Loader(source, steps, batch_size=1, ragged="list")
    expected = qwen_patches(plain.image[0], 14, merge)
    np.testing.assert_array_equal(batch.patches[0], expected)
    y, x = np.meshgrid(np.arange(6), np.arange(12), indexing="ij")
    grid = np.stack([y, x], -1).reshape(6 // merge, merge, 12 // merge, merge, 2)
    np.testing.assert_array_equal(
        batch.coordinates[0], grid.transpose(0, 2, 1, 3, 4).reshape(-1, 2)
    )


def test_patches_equal_those_of_timm_and_transformers() -> None:
    """Compared with the libraries themselves, if they are installed."""
    timm = pytest.importorskip("timm.data.naflex_transforms")
    torch = pytest.importorskip("torch")
    image = picture(123, 77)
    source = hr.open([{"image": encoded(image)}])
    steps = [T.ResizeToSequence(16, 50, interpolation="bicubic"), T.Patchify(16)]
    (batch,) = hr.Loader(source, steps, batch_size=1, ragged="list")
    _, (h, w) = timm.get_image_size_for_seq((123, 77), 16, 50)
    resized = torch.from_numpy(planes(image.resize((w, h), Image.Resampling.BICUBIC)).copy())
    patches, _, _ = timm.patchify_image(resized, (16, 16))
    np.testing.assert_array_equal(batch.image[0], patches.numpy())


def test_misuse_is_refused() -> None:
    source = hr.open([{"image": encoded(picture(30, 30))}])
    with pytest.raises(hr.DataError, match=r"HR0590 .*30 x 30"):
        list(hr.Loader(source, [T.Patchify(16)], batch_size=1, ragged="list"))
    with pytest.raises(hr.ConfigError, match="HR0114"):
        hr.Loader(source, [T.ResizeToSequence(16), T.Patchify(16)], batch_size=1)
    with pytest.raises(hr.ConfigError, match=r"HR0510 .*min_pixels"):
        hr.Loader(source, [T.SmartResize(28, 100, 50)], batch_size=1)
    narrow = hr.open([{"image": encoded(picture(1, 500))}])
    with pytest.raises(hr.DataError, match="HR0591"):
        list(hr.Loader(narrow, [T.SmartResize()], batch_size=1, ragged="list"))


def test_patches_of_one_pixel_and_large_patches_work() -> None:
    source = hr.open([{"image": encoded(picture(1, 1))}])
    steps = [T.ResizeToSequence(4096, 1, max_ratio=1), T.Patchify(4096)]
    (batch,) = hr.Loader(source, steps, batch_size=1, ragged="packed")
    assert batch.image.shape == (1, 4096 * 4096 * 3)
