# SPDX-License-Identifier: Apache-2.0
"""Medians, motion blur, CLAHE and HSV equal their definitions.

These are OpenCV's; expected values come from its documented formulas, written here in NumPy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from processes import printed_at_each_simd_level

import headrace as hr
from headrace import transforms as T

Array = np.ndarray[Any, Any]


def through(images: Array, *steps: Any) -> Array:
    loader = hr.Loader(hr.records(image=images), list(steps), batch_size=len(images))
    return np.asarray(next(iter(loader)).image)


def pictures(count: int, seed: int, most: int = 60) -> Any:
    random = np.random.default_rng(seed)
    for number in range(count):
        shape = (1, random.choice([1, 3]), *random.integers(1, most, 2))
        image = random.integers(0, 256, shape, dtype=np.uint8)
        if number % 3 == 0:
            steps = random.integers(-9, 10, shape)
            image = np.clip(np.cumsum(steps, axis=-1) + 128, 0, 255).astype(np.uint8)
        yield random, image


def windows(image: Array, size: int, mode: Any) -> Array:
    """(C, H, W, size, size): each sample's neighborhood."""
    half = size // 2
    padded = np.pad(image, ((0, 0), (half, half), (half, half)), mode)
    return np.lib.stride_tricks.sliding_window_view(padded, (size, size), axis=(1, 2))


def test_a_median_is_the_median() -> None:
    for random, image in pictures(80, seed=1):
        size = int(random.choice([3, 5, 7, 9, 13]))
        wanted = np.median(windows(image[0], size, "edge"), axis=(-2, -1)).astype(np.uint8)
        ours = through(image, T.MedianBlur((size, size), p=1.0))[0]
        np.testing.assert_array_equal(ours, wanted)


def line(size: int, angle: float, direction: float) -> Array:
    """Albumentations' MotionBlur kernel, not shifted."""
    half = size // 2
    start = -half * (1 - direction) if direction > 0 else float(-half)
    end = half * (1 + direction) if direction < 0 else float(half)
    at = np.linspace(start, end, size)
    turn = np.deg2rad(angle)
    x = np.clip(np.round(half + np.cos(turn) * at), 0, size - 1).astype(int)
    y = np.clip(np.round(half + np.sin(turn) * at), 0, size - 1).astype(int)
    kernel = np.zeros((size, size), np.int64)
    kernel[y, x] = 1
    return kernel


def test_motion_blur_is_the_mean_along_a_line() -> None:
    for random, image in pictures(80, seed=2):
        size = int(random.choice([3, 5, 7, 11, 21]))
        angle, direction = float(random.uniform(0, 360)), float(random.uniform(-1, 1))
        kernel = line(size, angle, direction)
        sums = (windows(image[0], size, "reflect") * kernel).sum(axis=(-2, -1))
        step = T.MotionBlur((size, size), False, angle, direction, p=1.0)
        np.testing.assert_array_equal(through(image, step)[0], np.rint(sums / kernel.sum()))


def test_random_motion_blurs_differ_and_keep_the_sum() -> None:
    image = np.zeros((400, 1, 15, 15), np.uint8)
    image[:, :, 7, 7] = 255
    out = through(image, T.MotionBlur(7, p=1.0))
    lengths = (out > 0).sum(axis=(1, 2, 3))
    assert lengths.max() == 7 and lengths.min() >= 1
    assert len({one.tobytes() for one in out}) > 150
    sums = out.sum(axis=(1, 2, 3)).astype(int)
    assert np.abs(sums - 255).max() <= 7
    assert ((through(image, T.MotionBlur(7, p=0.5)) == image).all(axis=(1, 2, 3)).mean()) < 0.7


def clahe(channel: Array, clip: float, rows: int, columns: int) -> Array:
    """OpenCV's algorithm: tables of tiles, clipped, and interpolated between their centers."""
    height, width = channel.shape
    down, right = rows - height % rows, columns - width % columns
    if height % rows == 0 and width % columns == 0:
        down = right = 0
    padded = np.pad(channel, ((0, down), (0, right)), "reflect")
    tile_h, tile_w = padded.shape[0] // rows, padded.shape[1] // columns
    area = tile_h * tile_w
    limit = max(int(clip * area / 256), 1) if clip > 0 else 0
    tables = np.zeros((rows, columns, 256), np.float32)
    for r in range(rows):
        for c in range(columns):
            tile = padded[r * tile_h : (r + 1) * tile_h, c * tile_w : (c + 1) * tile_w]
            counts = np.bincount(tile.ravel(), minlength=256)
            if limit:
                over = np.maximum(counts - limit, 0).sum()
                counts = np.minimum(counts, limit) + over // 256
                rest = over % 256
                if rest:
                    step = max(256 // rest, 1)
                    counts[: rest * step : step][:rest] += 1
            scale = np.float32(255) / np.float32(area)
            tables[r, c] = np.rint(np.cumsum(counts).astype(np.float32) * scale).clip(0, 255)
    one = np.float32(1)
    y = np.arange(height, dtype=np.float32) * (one / np.float32(tile_h)) - np.float32(0.5)
    x = np.arange(width, dtype=np.float32) * (one / np.float32(tile_w)) - np.float32(0.5)
    y0, x0 = np.floor(y).astype(int), np.floor(x).astype(int)
    ya, xa = (y - y0.astype(np.float32))[:, None], (x - x0.astype(np.float32))[None]
    y1, x1 = np.minimum(y0 + 1, rows - 1)[:, None], np.minimum(x0 + 1, columns - 1)[None]
    y0, x0 = np.maximum(y0, 0)[:, None], np.maximum(x0, 0)[None]
    upper = tables[y0, x0, channel] * (one - xa) + tables[y0, x1, channel] * xa
    lower = tables[y1, x0, channel] * (one - xa) + tables[y1, x1, channel] * xa
    return np.rint(upper * (one - ya) + lower * ya).clip(0, 255).astype(np.uint8)


def test_clahe_equals_opencvs_on_each_channel() -> None:
    for random, image in pictures(60, seed=3, most=90):
        clip = float(random.choice([0, 0.5, 1, 2.5, 4, 40]))
        rows, columns = (int(n) for n in random.integers(1, 9, 2))
        ours = through(image, T.CLAHE(clip, (rows, columns), "each", p=1.0))[0]
        wanted = np.stack([clahe(channel, clip, rows, columns) for channel in image[0]])
        np.testing.assert_array_equal(ours, wanted)


def test_clahe_on_luma_adds_the_luma_change_to_each_channel() -> None:
    for _, image in pictures(20, seed=4, most=90):
        ours = through(image, T.CLAHE(3.0, (3, 4), p=1.0))[0].astype(int)
        values = image[0].astype(int)
        gray = values[0]
        if len(values) == 3:
            weighted = 19595 * values[0] + 38470 * values[1] + 7471 * values[2]
            gray = (weighted + 0x8000) >> 16
        gained = clahe(gray.astype(np.uint8), 3.0, 3, 4).astype(int) - gray
        np.testing.assert_array_equal(ours, np.clip(values + gained, 0, 255))


def hsv_from_rgb(rgb: Array) -> tuple[Array, Array, Array]:
    """OpenCV's 8-bit conversion, in its fixed-point arithmetic."""
    r, g, b = (channel.astype(np.int64) for channel in rgb)
    number = np.maximum(np.arange(256), 1)
    of_saturation = np.where(np.arange(256) > 0, np.rint((255 << 12) / number), 0).astype(int)
    of_hue = np.where(np.arange(256) > 0, np.rint((180 << 12) / (6.0 * number)), 0).astype(int)
    v = np.maximum(r, np.maximum(g, b))
    away = v - np.minimum(r, np.minimum(g, b))
    s = (away * of_saturation[v] + 2048) >> 12
    h = np.where(v == r, g - b, np.where(v == g, b - r + 2 * away, r - g + 4 * away))
    h = (h * of_hue[away] + 2048) >> 12
    return np.where(h < 0, h + 180, h), s, v


def rgb_from_hsv(h: Array, s: Array, v: Array) -> Array:
    """The documented formula, in float32."""
    f = np.float32
    sixths = h.astype(f) * f(6 / 180)
    sector = np.trunc(sixths).astype(int)
    within = sixths - sector.astype(f)
    share, value = s.astype(f) * f(1 / 255), v.astype(f) * f(1 / 255)
    p = value * (f(1) - share)
    q = value * (f(1) - share * within)
    t = value * (f(1) - share * (f(1) - within))
    table = np.stack([value, t, p, q, value, p, p, value, t, p, q, value, t, p, value, value, p, q])
    index = 3 * sector[None] + np.arange(3).reshape(3, *[1] * h.ndim)
    rgb = np.take_along_axis(table, index, axis=0)
    return np.rint(rgb * f(255)).clip(0, 255).astype(np.uint8)


SHIFTS = [
    (0.0, 0.0, 0.0),
    (13.4, 0.0, 0.0),
    (-20.7, 12.3, -9.9),
    (170.0, -30.0, 20.0),
    (-180, 9, 0),
]


@pytest.mark.parametrize("shifts", SHIFTS)
def test_hsv_of_colors_is_shifted_as_opencv_defines_it(shifts: Any) -> None:
    numbers = np.arange(0, 1 << 24, 13, dtype=np.uint32)[: 1024 * 1200].reshape(1024, 1200)
    rgb = np.stack([numbers >> 16, numbers >> 8, numbers]).astype(np.uint8)
    hue, saturation, value = shifts
    step = T.HueSaturationValue((hue, hue), (saturation, saturation), (value, value), p=1.0)
    h, s, v = hsv_from_rgb(rgb)
    h = np.mod(h + hue, 180).astype(np.uint8)
    changed = np.clip(s + np.float32(saturation), 0, 255).astype(np.uint8)
    v = np.clip(v + np.float32(value), 0, 255).astype(np.uint8)
    wanted = rgb_from_hsv(h, np.where(s == 0, 0, changed), v)
    np.testing.assert_array_equal(through(rgb[None], step)[0], wanted)


def test_draws_of_hsv_are_uniform() -> None:
    images = np.broadcast_to(np.uint8([200, 100, 100])[:, None, None], (500, 3, 1, 1))
    images = np.ascontiguousarray(images)
    h, s, v = hsv_from_rgb(
        through(images, T.HueSaturationValue(0, 0, (-20, 20), p=1.0))[:, :, 0, 0].T
    )
    assert min(np.histogram(v, bins=5, range=(180, 220))[0]) > 60 and set(h) == {0}
    h, s, v = hsv_from_rgb(through(images, T.RandomHSV(0.0, 0.5, 0.0))[:, :, 0, 0].T)
    assert set(v) == {200} and 62 <= s.min() < 75 and 180 < s.max() <= 193
    h, s, v = hsv_from_rgb(through(images, T.RandomHSV(0.1, 0.0, 0.0))[:, :, 0, 0].T)
    turned = np.where(h > 90, h - 180.0, h)
    assert -18 <= turned.min() < -14 and 14 < turned.max() <= 18
    gray = np.full((50, 3, 2, 2), 77, np.uint8)
    ours = through(gray, T.RandomHSV(0.5, 1.0, 0.0))
    np.testing.assert_array_equal(ours, gray)


@pytest.mark.parametrize(
    "make",
    [
        lambda: T.MedianBlur(4),
        lambda: T.MedianBlur((7, 3)),
        lambda: T.MedianBlur(101),
        lambda: T.MotionBlur((3, 6)),
        lambda: T.MotionBlur(angle_range=(50, 20)),
        lambda: T.MotionBlur(direction_range=2),
        lambda: T.CLAHE((4, 1)),
        lambda: T.CLAHE(tile_grid_size=0),
        lambda: T.CLAHE(channels="lab"),
        lambda: T.HueSaturationValue(-5),
        lambda: T.HueSaturationValue((9, 5)),
        lambda: T.RandomHSV(hgain=-0.1),
        lambda: T.RandomHSV(sgain=float("nan")),
    ],
)
def test_invalid_arguments_are_refused(make: Any) -> None:
    with pytest.raises(hr.ConfigError):
        through(np.zeros((1, 3, 4, 4), np.uint8), make())


@pytest.mark.parametrize("make", [T.MedianBlur, T.MotionBlur, T.CLAHE, T.HueSaturationValue])
def test_floats_are_refused_with_a_hint(make: Any) -> None:
    steps = [T.ToDtype("float32", scale=True), make()]
    with pytest.raises(hr.ConfigError, match=r"(?s)HR0510.*float32 here.*before ToDtype"):
        through(np.zeros((1, 3, 4, 4), np.uint8), *steps)


SCRIPT = """
import hashlib
import numpy as np
import headrace as hr
from headrace import transforms as T
random = np.random.default_rng(1)
images = random.integers(0, 256, (20, 3, 33, 131), dtype=np.uint8)
steps = [T.MedianBlur(9, p=0.8), T.MotionBlur(9, p=0.8), T.HueSaturationValue(p=0.8), T.RandomHSV()]
steps += [T.RandomHorizontalFlip(), T.CLAHE(p=0.8), T.MedianBlur((3, 7), p=0.8), T.PCALighting()]
for threads, batch_size in ((1, 20), (3, 5)):
    loader = hr.Loader(hr.records(image=images), steps, batch_size=batch_size, threads=threads)
    print(hashlib.sha256(b"".join(bytes(np.asarray(b.image).data) for b in loader)).hexdigest())
"""


def test_filters_are_the_same_at_every_simd_level() -> None:
    assert len(printed_at_each_simd_level(SCRIPT)) == 1
