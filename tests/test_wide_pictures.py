# SPDX-License-Identifier: Apache-2.0
"""Exact pixels: images of 16 bits, of floats and of up to sixteen channels go through every
geometric step as their channels go through Pillow's modes I;16, F and L, or, for warps, as
torchvision's tensors do; dtypes are converted by torchvision's rule."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fused_products import needs_fused_products
from PIL import Image

import headrace as hr
from headrace import transforms as T

Pixels = np.ndarray[Any, Any]
DTYPES = [np.uint16, np.float32]
FILTERS = {
    "nearest": Image.Resampling.NEAREST,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "box": Image.Resampling.BOX,
    "hamming": Image.Resampling.HAMMING,
    "lanczos": Image.Resampling.LANCZOS,
}


def picture(dtype: type, channels: int, height: int, width: int, seed: int = 1) -> Pixels:
    rng = np.random.default_rng(seed)
    if dtype is np.float32:
        return rng.normal(3, 200, (channels, height, width)).astype(np.float32)
    # No filter exceeds the range: Pillow does not clamp a sum at 65535.
    most = 256 if dtype is np.uint8 else 40_000
    low = 0 if dtype is np.uint8 else 12_000
    return rng.integers(low, most, (channels, height, width), dtype)


def loaded(pixels: Pixels, *steps: Any, **options: Any) -> Pixels:
    source = hr.open([{"image": pixels}], kinds={"image": "image"})
    (batch,) = hr.Loader(source, list(steps), batch_size=1, **options)
    return np.asarray(batch.image[0])


def each_channel(pixels: Pixels, step: Callable[[Image.Image], Image.Image]) -> Pixels:
    return np.stack([np.asarray(step(Image.fromarray(plane))) for plane in pixels])


@pytest.mark.parametrize("dtype", [*DTYPES, np.uint8])
@pytest.mark.parametrize("interpolation", FILTERS)
def test_a_resize_equals_pillows_of_each_channel(dtype: type, interpolation: str) -> None:
    resample = FILTERS[interpolation]
    for number, (height, width, to) in enumerate(
        [
            (33, 47, (16, 20)),
            (20, 20, (57, 41)),
            (64, 200, (60, 32)),
            (40, 300, (11, 40)),
            (7, 5, (1, 90)),
        ]
    ):
        for channels in (1, 3, 7, 16):
            pixels = picture(dtype, channels, height, width, number)
            got = loaded(pixels, T.Resize(to, interpolation=interpolation))
            # Pillow computes the nearest pixel of I;16 differently than for all other modes, so a
            # mask and its image would differ.
            as_mode = np.float32 if interpolation == "nearest" else dtype
            expected = each_channel(
                pixels.astype(as_mode),
                functools.partial(Image.Image.resize, size=to[::-1], resample=resample),
            )
            assert got.dtype == dtype and np.array_equal(got, expected), (height, width, to)


def test_sums_beyond_sixteen_bits_saturate() -> None:
    pixels = np.zeros((1, 1, 64), np.uint16)
    pixels[..., 32:] = 65535
    got = loaded(pixels, T.Resize((1, 200), interpolation="lanczos"))[0, 0]
    assert got.max() == 65535 and (got[:80] < 20_000).all() and (got[120:] > 50_000).all()


@pytest.mark.parametrize("dtype", [*DTYPES, np.uint8])
@pytest.mark.parametrize("channels", [1, 4, 5, 16])
def test_sequences_of_steps_equal_pillows(dtype: type, channels: int) -> None:
    pixels = picture(dtype, channels, 61, 83)
    fill = 7 if dtype is not np.float32 else 0.5
    steps = [
        T.CenterCrop((50, 70)),
        T.RandomHorizontalFlip(1),
        T.Resize((31, 45)),
        T.Pad((3, 1, 2, 4), fill=fill),
        T.RandomVerticalFlip(1),
        T.CenterCrop((30, 44)),
        T.Resize((20, 25), interpolation="bicubic"),
    ]
    expected = pixels[:, 6:56, 6:76][:, :, ::-1]
    expected = each_channel(
        np.ascontiguousarray(expected), lambda p: p.resize((45, 31), FILTERS["bilinear"])
    )
    expected = np.pad(expected, ((0, 0), (1, 4), (3, 2)), constant_values=fill)[:, ::-1]
    expected = np.ascontiguousarray(expected[:, 3:33, 3:47])
    expected = each_channel(expected, lambda p: p.resize((25, 20), FILTERS["bicubic"]))
    assert np.array_equal(loaded(pixels, *steps), expected)
    last = loaded(pixels, *steps, memory_format="channels_last")
    assert np.array_equal(last, expected.transpose(1, 2, 0) if last.shape[0] == 20 else expected)


@pytest.mark.parametrize("mode", ["edge", "reflect", "symmetric"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_borders_that_repeat_the_image_equal_numpys(dtype: type, mode: str) -> None:
    pixels = picture(dtype, 6, 20, 30)
    got = loaded(pixels, T.Pad((3, 1, 2, 4), padding_mode=mode))
    assert np.array_equal(got, np.pad(pixels, ((0, 0), (1, 4), (3, 2)), mode=mode))


def as_torchvision(pixels: Pixels, function: str, **arguments: Any) -> Pixels:
    """The functional's outcome; uint16 in float32 and rounded, as torchvision does it where torch
    has the dtype."""
    torch = pytest.importorskip("torch")
    functional = pytest.importorskip("torchvision.transforms.v2.functional")
    tensor = torch.from_numpy(pixels.astype(np.float32))
    out = getattr(functional, function)(tensor, **arguments).numpy()
    return out if pixels.dtype == np.float32 else np.rint(out).astype(pixels.dtype)


@needs_fused_products
@pytest.mark.parametrize("dtype", [*DTYPES, np.uint8])
@pytest.mark.parametrize("channels", [1, 3, 6])
@pytest.mark.parametrize("interpolation", ["nearest", "bilinear"])
def test_warps_equal_torchvisions(dtype: type, channels: int, interpolation: str) -> None:
    pytest.importorskip("torchvision")
    from torchvision.transforms import InterpolationMode

    pixels = picture(dtype, channels, 41, 57)
    how = InterpolationMode(interpolation)
    for fill in (None, [9.0] * channels):
        got = loaded(pixels, T.RandomRotation((33, 33), interpolation=interpolation, fill=fill))
        expected = as_torchvision(pixels, "rotate", angle=33.0, interpolation=how, fill=fill)
        assert got.dtype == dtype and np.array_equal(got, expected), fill
        affine = T.RandomAffine(
            (-20, -20), scale=(1.3, 1.3), shear=(10, 10), interpolation=interpolation, fill=fill
        )
        expected = as_torchvision(
            pixels, "affine", angle=-20.0, translate=[0, 0], scale=1.3, shear=[10.0, 0.0],
            interpolation=how, fill=fill,
        )  # fmt: skip
        assert np.array_equal(loaded(pixels, affine), expected), fill


def test_a_warp_that_pillow_cannot_do_is_refused() -> None:
    turn = functools.partial(T.RandomRotation, 30, interpolation="bilinear", arithmetic="pillow")
    for pixels in (picture(np.uint16, 1, 9, 9), picture(np.uint8, 5, 9, 9)):
        with pytest.raises(hr.ConfigError, match=r'(?s)HR0510.*arithmetic="torch"'):
            loaded(pixels, turn())


def test_crops_and_warps_move_all_images_of_a_record_together(tmp_path: Path) -> None:
    base = picture(np.uint8, 3, 60, 80)
    record = {
        "image": base,
        "depth": base[:1].astype(np.uint16) * 257,
        "heat": base / np.float32(4),
    }
    source = hr.open([record] * 6, kinds={"depth": "image", "heat": "image"})
    steps = [T.RandomAffine(20, scale=(0.8, 1.2)), T.RandomCrop((30, 40)), T.RandomHorizontalFlip()]
    for batch in hr.Loader(source, steps, batch_size=6, seed=3, threads=2):
        assert np.array_equal(batch.depth, batch.image[:, :1].astype(np.uint16) * 257)
        assert np.array_equal(batch.heat, batch.image / np.float32(4))


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("to", ["uint8", "uint16", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("start", ["uint8", "uint16", "float32"])
def test_dtypes_are_converted_by_torchvisions_rule(start: str, to: str, scale: bool) -> None:
    torch = pytest.importorskip("torch")
    functional = pytest.importorskip("torchvision.transforms.v2.functional")
    values: Pixels
    if start == "float32":
        values = np.linspace(
            0, 1 if scale else (255 if to == "uint8" else 65535), 5000, dtype=np.float32
        )
    else:
        values = np.arange(np.iinfo(start).max + 1).astype(start)
    pixels = np.resize(values, (1, 256, max(1, -(-len(values) // 256))))
    loader = hr.Loader(
        hr.open([{"image": pixels}], kinds={"image": "image"}),
        [T.ToDtype(to, scale=scale)],
        batch_size=1,
    ).torch("cpu")
    (batch,) = loader
    got = batch["image"][0]
    expected = functional.to_dtype(torch.from_numpy(pixels), getattr(torch, to), scale=scale)
    assert got.dtype == expected.dtype
    same = (got.double() == expected.double()) | (
        got.isnan() & expected.isnan() if got.is_floating_point() else False
    )
    assert bool(same.all()), (got[~same][:5], expected[~same][:5])


@pytest.mark.parametrize("channels", [1, 5, 16])
def test_sixteen_channels_are_normalized_individually(channels: int) -> None:
    pixels = picture(np.uint16, channels, 20, 30)
    mean = [0.1 + 0.05 * c for c in range(channels)]
    std = [0.5 + 0.1 * c for c in range(channels)]
    got = loaded(pixels, T.ToDtype("float32", scale=True), T.Normalize(mean, std))
    scaled = pixels.astype(np.float32) * np.float32(1 / 65535)
    expected = (scaled - np.float32(mean)[:, None, None]) / np.float32(std)[:, None, None]
    assert np.array_equal(got, expected)


def test_a_python_step_gets_and_gives_wide_images() -> None:
    pixels = picture(np.uint16, 7, 20, 30)

    def halve(image: Pixels) -> Pixels:
        assert image.dtype == np.uint16 and image.shape[0] == 7
        return image // 2

    got = loaded(pixels, halve, T.RandomHorizontalFlip(1))
    assert np.array_equal(got, (pixels // 2)[:, :, ::-1])


def test_color_steps_on_wide_images_are_refused_when_planned() -> None:
    for step in (
        T.ColorJitter(0.4),
        T.GaussianBlur(3),
        T.RandomPosterize(4, p=1),
        T.TrivialAugmentWide(),
        T.RandAugment(),
        T.AutoAugment(),
        T.AugMix(),
        T.TimmAugment("rand-m9-mstd0.5-inc1"),
    ):
        with pytest.raises(hr.ConfigError, match="HR0510"):
            loaded(picture(np.uint16, 3, 9, 9), step)


def test_fills_are_values_of_the_dtype() -> None:
    pixels = picture(np.uint16, 1, 9, 9)
    assert (loaded(pixels, T.Pad(1, fill=40_000))[0, 0] == 40_000).all()
    with pytest.raises(hr.ConfigError, match=r"(?s)HR0512.*0 to 65535"):
        loaded(pixels, T.Pad(1, fill=70_000))


def test_wide_images_can_be_shown() -> None:
    for dtype, channels in ((np.uint16, 1), (np.float32, 3), (np.uint16, 9)):
        record = {"image": picture(dtype, channels, 20, 30)}
        loader = hr.Loader(hr.open([record], kinds={"image": "image"}), batch_size=1)
        assert loader.show().pixels.shape[1] >= 20


def test_wide_arrays_in_memory_can_be_resident(tmp_path: Path) -> None:
    pixels = np.stack([picture(np.uint16, 6, 20, 30, seed) for seed in range(20)])
    np.savez(tmp_path / "set.npz", scans=pixels, label=np.arange(20))
    steps = [T.Resize((15, 15)), T.RandomHorizontalFlip()]
    hashes = set()
    for resident in (False, True):
        source = hr.open(tmp_path / "set.npz", kinds={"scans": "image"})
        loader = hr.Loader(source, steps, batch_size=5, shuffle=True, seed=4, resident=resident)
        hashes.add(b"".join(batch.scans.tobytes() for _ in range(2) for batch in loader))
    assert len(hashes) == 1


def test_a_pack_keeps_wide_images(tmp_path: Path) -> None:
    records = [{"image": picture(np.float32, 2, 20, 30, seed), "label": seed} for seed in range(9)]
    hr.pack(hr.open(records, kinds={"image": "image"}), tmp_path / "set.hrp")
    (batch,) = hr.Loader(tmp_path / "set.hrp", [T.Resize((10, 15))], batch_size=9)
    for record, got in zip(records, batch.image, strict=True):
        assert np.array_equal(got, loaded(record["image"], T.Resize((10, 15))))


def test_channels_last_or_too_many_channels_are_refused(tmp_path: Path) -> None:
    for shape in ((9, 12, 3), (17, 12, 12)):
        np.savez(tmp_path / "set.npz", x=np.zeros((4, *shape), np.float32))
        with pytest.raises(hr.ConfigError, match="HR0181"):
            hr.open(tmp_path / "set.npz", kinds={"x": "image"})


def test_channels_last_bands_are_not_an_image() -> None:
    bands = [{"image": np.zeros((64, 64, 5), np.uint16)}]
    with pytest.raises(hr.ConfigError, match="HR0181"):
        hr.open(bands, kinds={"image": "image"})
    with pytest.raises(hr.ConfigError, match="HR0113"):  # a tensor, unless more is declared
        hr.Loader(hr.open(bands), [T.CenterCrop(9)], batch_size=1)


@pytest.mark.parametrize("dtype", DTYPES)
def test_either_order_of_bytes_is_read(dtype: type) -> None:
    pixels = picture(dtype, 3, 12, 17)
    swapped = pixels.astype(pixels.dtype.newbyteorder(">"))
    assert np.array_equal(loaded(swapped), pixels)
    source = hr.open([{"image": swapped, "points": swapped[0]}])
    (batch,) = hr.Loader(source, batch_size=1)
    assert np.array_equal(batch.image[0], pixels) and np.array_equal(batch.points[0], pixels[0])


def test_wide_images_are_not_converted_to_png(tmp_path: Path) -> None:
    source = hr.open([{"image": picture(np.uint16, 3, 9, 9)}])
    with pytest.raises(hr.UnsupportedError, match="HR0417"):
        hr.convert(source, tmp_path / "out", "folder")
