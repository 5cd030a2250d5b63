# SPDX-License-Identifier: Apache-2.0
"""Noise and holes are distributed as in the library that an operator names, differ between records,
and masks keep their labels."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from processes import printed_at_each_simd_level

import headrace as hr
from headrace import transforms as T

Array = np.ndarray[Any, Any]


def through(images: Array, *steps: Any, **options: Any) -> Array:
    loader = hr.Loader(hr.records(image=images), list(steps), batch_size=len(images), **options)
    return np.asarray(next(iter(loader)).image)


def normal_share(low: float, high: float) -> float:
    return (math.erf(high / math.sqrt(2)) - math.erf(low / math.sqrt(2))) / 2


def test_noise_on_bytes_equals_torchvisions_in_distribution() -> None:
    """chi-square over all values, against the probabilities of torchvision's formula."""
    mean, sigma = 0.02, 0.04
    images = np.full((4, 3, 200, 151), 100, np.uint8)
    noisy = through(images, T.GaussianNoise(mean, sigma)).astype(int) - 100
    statistic, cells = 0.0, 0
    for level in range(-25, 36):  # truncated towards zero: 0 gets two intervals
        low, high = (level - 1, level) if level < 0 else (level, level + 1)
        low = -1 if level == 0 else low
        expected = noisy.size * normal_share(
            *((edge - mean * 255) / (sigma * 255) for edge in (low, high))
        )
        if expected < 50:
            continue
        statistic += ((noisy == level).sum() - expected) ** 2 / expected
        cells += 1
    assert cells > 40
    assert statistic < cells + 5 * math.sqrt(2 * cells)
    for other in (noisy[:, 0], noisy[0]):  # neither channels nor records repeat each other
        pairs = np.corrcoef(other.reshape(other.shape[0], -1))
        assert np.abs(pairs - np.eye(len(pairs))).max() < 0.05
    across = np.corrcoef(noisy[..., 1:].ravel(), noisy[..., :-1].ravel())[0, 1]
    down = np.corrcoef(noisy[..., 1:, :].ravel(), noisy[..., :-1, :].ravel())[0, 1]
    assert abs(across) < 0.01 and abs(down) < 0.01


def test_noise_is_clipped_or_wraps_as_in_torchvision() -> None:
    white = np.full((2, 1, 60, 60), 255, np.uint8)
    clipped = through(white, T.GaussianNoise(0.0, 0.1))
    assert 0.4 < (clipped == 255).mean() < 0.6 and clipped.min() > 100
    wrapped = through(white, T.GaussianNoise(0.0, 0.1, clip=False))
    assert (wrapped < 100).mean() > 0.4
    np.testing.assert_array_equal(wrapped[wrapped > 127], clipped[wrapped > 127])


def test_noise_on_floats_equals_torchvisions_in_distribution() -> None:
    images = np.full((3, 2, 100, 99), 51, np.uint8)
    steps = [T.ToDtype("float32", scale=True), T.GaussianNoise(0.1, 0.2, clip=False)]
    noise = (through(images, *steps) - np.float32(0.2) - 0.1) / 0.2
    for edge in (-2.5, -1.0, -0.2, 0.4, 1.7):
        assert abs((noise < edge).mean() - normal_share(-40, edge)) < 0.01
    clipped = through(images, steps[0], T.GaussianNoise(0.1, 0.5))
    assert clipped.min() == 0 and clipped.max() == 1
    with pytest.raises(hr.ConfigError, match=r"HR0510.*float16"):
        through(images[:, :1], T.ToDtype("float16", scale=True), T.GaussianNoise())


def test_salt_and_pepper_have_the_requested_fractions() -> None:
    images = np.full((8, 3, 120, 97), 90, np.uint8)
    noisy = through(images, T.SaltAndPepper(0.1, 0.3, p=1.0))
    assert (noisy[:, 0] == noisy[:, 1]).all() and (noisy[:, 0] == noisy[:, 2]).all()
    assert abs((noisy == 255).mean() - 0.03) < 0.004
    assert abs((noisy == 0).mean() - 0.07) < 0.005
    assert set(np.unique(noisy)) == {0, 90, 255}
    amounts = (through(images, T.SaltAndPepper((0.0, 0.5), p=1.0)) != 90).mean(axis=(1, 2, 3))
    assert len(np.unique(amounts)) == 8 and amounts.max() < 0.52
    everything = through(images, T.SaltAndPepper(1.0, 0.0, p=1.0))
    assert (everything == 0).all()


def rectangles(mask: Array) -> tuple[Array, Array]:
    return np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))


def test_holes_have_albumentations_distribution() -> None:
    images = np.full((600, 1, 20, 30), 9, np.uint8)
    one = T.CoarseDropout(1, (3, 5), (0.2, 0.5), fill=200, p=1.0)
    heights, widths, tops = [], [], []
    for image in through(images, one)[:, 0]:
        rows, columns = rectangles(image == 200)
        assert (image[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1] == 200).all()
        heights.append(len(rows))
        widths.append(len(columns))
        tops.append(rows[0] / (20 - len(rows)))
    assert set(heights) == {3, 4, 5} and min(np.bincount(heights)[3:]) > 150
    assert set(widths) == set(range(6, 15))  # int(30 * share)
    assert min(np.histogram(tops, bins=4, range=(0, 1))[0]) > 100
    many = through(images, T.CoarseDropout((2, 4), (1, 1), (1, 1), fill=200, p=1.0))
    counts = np.bincount((many == 200).sum(axis=(1, 2, 3)), minlength=5)
    assert counts[2:].min() > 150 and counts[0] == 0


def test_a_grid_is_regular() -> None:
    images = np.full((200, 1, 40, 33), 9, np.uint8)
    step = T.GridDropout(0.5, random_offset=False, unit_size_range=(8, 8), fill=1, p=1.0)
    ys, xs = np.mgrid[:40, :33]
    wanted = np.where((ys % 8 < 4) & (xs % 8 < 4), 1, 9)
    assert (through(images[:3], step) == wanted).all()
    step = T.GridDropout(0.3, unit_size_range=(6, 10), fill=1, p=1.0)
    seen = set()
    for image in through(images, step)[:, 0]:
        fits = [
            (unit, up, aside)
            for unit in range(6, 11)
            for up in range(unit)
            for aside in range(unit)
            if (
                (
                    ((ys + up) % unit < int(unit * 0.3 + 0.5))
                    & ((xs + aside) % unit < int(unit * 0.3 + 0.5))
                )
                == (image == 1)
            ).all()
        ]
        assert len(fits) == 1
        seen.add(fits[0])
    assert {unit for unit, _, _ in seen} == {6, 7, 8, 9, 10} and len(seen) > 100


def test_a_grid_of_too_many_holes_is_a_bad_record() -> None:
    images = np.zeros((1, 1, 600, 600), np.uint8)
    with pytest.raises(hr.DataError, match=r"HR0509.*holes in an image of 600 x 600"):
        through(images, T.GridDropout(unit_size_range=2, p=1.0))


def with_mask(tmp_path: Path) -> Any:
    from PIL import Image

    random = np.random.default_rng(4)
    for name in ("images", "masks"):
        (tmp_path / name).mkdir()
        for number in range(6):
            shape = (20, 25, 3) if name == "images" else (20, 25)
            picture = random.integers(10, 99, shape, dtype=np.uint8)
            Image.fromarray(picture).save(tmp_path / name / f"{number}.png")
    return hr.join(
        tmp_path / "images", tmp_path / "masks", rename={"image": "mask"}, kinds={"mask": "mask"}
    )


def test_holes_are_only_cut_into_masks_on_request(tmp_path: Path) -> None:
    source = with_mask(tmp_path)
    sized = T.CenterCrop((20, 25))
    plain = next(iter(hr.Loader(source, [sized], batch_size=6)))
    for make in (T.CoarseDropout, T.GridDropout):
        batch = next(iter(hr.Loader(source, [sized, make(fill=255, p=1.0)], batch_size=6)))
        np.testing.assert_array_equal(batch.mask, plain.mask)
        steps = [sized, make(fill=255, fill_mask=7, p=1.0)]
        batch = next(iter(hr.Loader(source, steps, batch_size=6)))
        holes = (batch.image == 255).all(axis=1, keepdims=True)
        np.testing.assert_array_equal(batch.mask, np.where(holes, 7, plain.mask))
        assert holes.any()
    for step in (T.GaussianNoise(), T.SaltAndPepper(p=1.0)):
        batch = next(iter(hr.Loader(source, [sized, step], batch_size=6)))
        np.testing.assert_array_equal(batch.mask, plain.mask)
        assert (batch.image != plain.image).any()


def test_erasing_noise_is_normal_and_follows_its_image() -> None:
    images = np.zeros((300, 3, 40, 50), np.uint8)
    floats = T.ToDtype("float32", scale=True)
    erase = T.RandomErasing(1.0, scale=(0.1, 0.3), value="random")
    out = through(images, floats, erase)
    noise = out[out != 0]
    assert len(noise) > 100_000
    for edge in (-2.0, -0.7, 0.1, 1.2):
        assert abs((noise < edge).mean() - normal_share(-40, edge)) < 0.01
    # The same noise, whatever later steps do with the picture.
    mirrored = through(images, floats, erase, T.RandomHorizontalFlip(1.0), T.CenterCrop((30, 41)))
    wanted = np.flip(out, -1)[:, :, 5:35, 4:45]
    np.testing.assert_array_equal(mirrored, wanted)
    half = through(images, T.ToDtype("float16", scale=True), erase)
    np.testing.assert_array_equal(half, out.astype(np.float16))
    last = through(images, floats, erase, memory_format="channels_last")
    np.testing.assert_array_equal(last, out)


def test_erasing_noise_on_bytes_is_refused_with_a_hint() -> None:
    images = np.zeros((1, 3, 8, 8), np.uint8)
    with pytest.raises(hr.ConfigError, match=r"(?s)HR0510.*uint8 here.*after ToDtype"):
        through(images, T.RandomErasing(1.0, value="random"))
    with pytest.raises(hr.ConfigError, match=r"HR0104.*random"):
        through(images, T.RandomErasing(1.0, value="noise"))


@pytest.mark.parametrize(
    "make",
    [
        lambda: T.CoarseDropout((3, 2)),
        lambda: T.CoarseDropout(1, (0.5, 2.5)),
        lambda: T.CoarseDropout(1, (0.3, 0.2)),
        lambda: T.CoarseDropout(fill=256),
        lambda: T.CoarseDropout(fill=float("nan")),
        lambda: T.GridDropout(unit_size_range=(9, 4)),
        lambda: T.GridDropout(unit_size_range=1),
        lambda: T.SaltAndPepper((0.5, 0.1)),
        lambda: T.SaltAndPepper(1.5),
        lambda: T.GaussianNoise(sigma=-1),
        lambda: T.GaussianNoise(float("inf")),
    ],
)
def test_invalid_arguments_are_refused(make: Any) -> None:
    with pytest.raises(hr.ConfigError):
        through(np.zeros((1, 3, 4, 4), np.uint8), make())


STEPS = """[T.GaussianNoise(0.01, 0.2), T.SaltAndPepper(p=1.0), T.CoarseDropout(5, p=1.0),
    T.ToDtype("float32", scale=True), T.GaussianNoise(), T.RandomErasing(1.0, value="random")]"""
SCRIPT = f"""
import hashlib, sys
import numpy as np
import headrace as hr
from headrace import transforms as T
images = np.random.default_rng(1).integers(0, 256, (20, 3, 33, 71), dtype=np.uint8)
for threads, batch_size in ((1, 20), (3, 5)):
    loader = hr.Loader(hr.records(image=images), {STEPS}, batch_size=batch_size, threads=threads)
    print(hashlib.sha256(b"".join(bytes(np.asarray(b.image).data) for b in loader)).hexdigest())
"""


def test_noise_is_the_same_at_every_simd_level_in_any_batch_and_number_of_threads() -> None:
    assert len(printed_at_each_simd_level(SCRIPT)) == 1
