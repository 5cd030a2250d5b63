# SPDX-License-Identifier: Apache-2.0
"""timm's augmentation strings give timm's pixels for each operation and level on Pillow images, and
draw them with the same frequency."""

from __future__ import annotations

import importlib
import itertools
import math
from collections import Counter, defaultdict
from typing import Any

import numpy as np
import PIL
import pytest
from PIL import Image, ImageEnhance, ImageFilter, ImageOps
from test_policies import expect_drawn, share_of, through

from headrace import transforms as T

try:
    timm: Any = importlib.import_module("timm.data.auto_augment")
except ImportError:
    timm = None


Array = np.ndarray[Any, Any]

needs_timm = pytest.mark.skipif(timm is None, reason="needs timm")

needs_pillow = pytest.mark.skipif(PIL.__version__.split(".")[0] != "13", reason="needs Pillow 13")

FILL = (124, 116, 104)

INTERPOLATIONS = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}

Outcomes = dict[bytes, float]  # how probable each is


def picture(height: int, width: int, seed: int = 1) -> Array:
    random = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width]
    planes = [40 + 3 * x + y, 200 - 2 * y + x, 30 + 5 * ((x + y) % 30)]
    noise = random.integers(-20, 20, (3, height, width))
    out: Array = np.clip(np.stack(planes) + noise, 12, 230).astype(np.uint8)
    return out


def pil(pixels: bytes, shape: tuple[int, ...]) -> Any:
    return Image.fromarray(np.frombuffer(pixels, np.uint8).reshape(shape).transpose(1, 2, 0))


def planes(image: Any) -> bytes:
    return np.asarray(image).transpose(2, 0, 1).tobytes()


class Chance:
    """Replaces timm's random numbers: all of its coins have the same result."""

    def __init__(self, coin: float, choice: int) -> None:
        self.coin, self.chosen = coin, choice

    def random(self) -> float:
        return self.coin

    def choice(self, of: Any) -> Any:
        return of[self.chosen]

    def uniform(self, low: float, high: float) -> float:
        return low + (high - low) * self.coin


def outcomes(op: Any, pixels: bytes, shape: tuple[int, ...]) -> Outcomes:
    """An image after timm's operation, except for noise."""
    out: Outcomes = defaultdict(float)
    out[pixels] += 1 - op.prob
    always = timm.AugmentOp(op.name, 1.0, op.magnitude, op.hparams)
    for coin, choice in itertools.product((0.25, 0.75), (0, 1)):
        timm.random = Chance(coin, choice)
        out[planes(always(pil(pixels, shape)))] += op.prob / 4
    return out


def one_after_another(ops: Any, image: Array) -> Outcomes:
    now: Outcomes = {image.tobytes(): 1.0}
    for op in ops:
        after: Outcomes = defaultdict(float)
        for pixels, chance in now.items():
            for made, of_it in outcomes(op, pixels, image.shape).items():
                after[made] += chance * of_it
        now = after
    return {made: chance for made, chance in now.items() if chance > 0}


def mixture(each: list[tuple[float, Outcomes]]) -> Outcomes:
    out: Outcomes = defaultdict(float)
    for weight, made in each:
        for pixels, chance in made.items():
            out[pixels] += weight * chance
    return out


def posterize(image: Any, bits: int) -> Any:
    """Pillow's, also for 0 bits, which gave black before Pillow rejected them."""
    return image.point([value & ~(2 ** (8 - bits) - 1) for value in range(256)] * 3)


@pytest.fixture(autouse=True)
def timms_own_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    if timm is not None:
        monkeypatch.setattr(timm, "random", timm.random)
        monkeypatch.setattr(timm.ImageOps, "posterize", posterize)


def rand(text: str, transforms: Any = None, **hparams: Any) -> Any:
    return timm.rand_augment_transform(text, {"img_mean": FILL, **hparams}, transforms)


@needs_pillow
def test_the_common_policy_string_equals_pillow_with_its_arguments() -> None:
    image = picture(30, 41)
    source = pil(image.tobytes(), image.shape)
    w, h = source.size
    by_part = (1 + 0.9 * 0.9, 1 - 0.9 * 0.9)
    moves: list[Any] = [
        [(1, sign * 0.27, 0, 0, 1, 0) for sign in (1, -1)],
        [(1, 0, 0, sign * 0.27, 1, 0) for sign in (1, -1)],
        [(1, 0, sign * 0.9 * 0.45 * w, 0, 1, 0) for sign in (1, -1)],
        [(1, 0, 0, 0, 1, sign * 0.9 * 0.45 * h) for sign in (1, -1)],
    ]
    how = [{"resample": each, "fillcolor": FILL} for each in INTERPOLATIONS.values()]
    affine = Image.Transform.AFFINE
    operations: list[list[Any]] = [
        *([source.transform((w, h), affine, m, **k) for m in two for k in how] for two in moves),
        [source.rotate(angle, **k) for angle in (27, -27) for k in how],
        *(
            [enhance(source).enhance(factor) for factor in by_part]
            for enhance in (
                ImageEnhance.Color,
                ImageEnhance.Contrast,
                ImageEnhance.Brightness,
                ImageEnhance.Sharpness,
            )
        ),
        [ImageOps.autocontrast(source)],
        [ImageOps.equalize(source)],
        [ImageOps.invert(source)],
        [ImageOps.posterize(source, 1)],
        [ImageOps.solarize(source, 256 - 230)],
        [source.point([min(255, v + 99) if v < 128 else v for v in range(256)] * 3)],
    ]
    wanted: Outcomes = defaultdict(float, {image.tobytes(): 0.5})
    for made in operations:
        for each in made:
            wanted[planes(each)] += 0.5 / 15 / len(made)
    step = T.TimmAugment("rand-m9-n1-inc1", fill=FILL)
    expect_drawn(through(image, 3200, step), wanted)


@needs_timm
@needs_pillow
@pytest.mark.parametrize("more", ["", "-inc1", "-inc1-mmax15", "-t3a", "-t3aw", "-tweights-inc1"])
@pytest.mark.parametrize("magnitude", [0, 4, 9, 12])
def test_each_operation_at_its_level_equals_timms(magnitude: int, more: str) -> None:
    image = picture(31 + magnitude, 38, seed=magnitude)
    text = f"rand-m{magnitude}-n1-p0.8{more}"
    theirs = rand(text)
    weights = theirs.choice_weights
    if weights is None:
        weights = [1 / len(theirs.ops)] * len(theirs.ops)
    each = [
        (float(weight), outcomes(op, image.tobytes(), image.shape))
        for weight, op in zip(weights, theirs.ops, strict=True)
    ]
    expect_drawn(through(image, 1600, T.TimmAugment(text, fill=FILL)), mixture(each))


@needs_timm
@needs_pillow
@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
def test_images_of_all_sizes_equal_timms(interpolation: str) -> None:
    random = np.random.default_rng(5)
    sizes = [(1, 1), (1, 9), (7, 1), (2, 2), (64, 65)]
    for trial, (height, width) in enumerate(sizes):
        image = random.integers(0, 256, (3, height, width), dtype=np.uint8)
        text = f"rand-m{trial + 5}-n1-p1-inc{trial % 2}"
        theirs = rand(text, interpolation=INTERPOLATIONS[interpolation])
        wanted = {made for op in theirs.ops for made in outcomes(op, image.tobytes(), image.shape)}
        step = T.TimmAugment(text, interpolation=interpolation, fill=FILL)
        assert set(through(image, 400, step, seed=trial)) <= wanted


@needs_timm
@needs_pillow
@pytest.mark.parametrize("name", ["original", "originalr", "v0", "v0r"])
def test_each_pair_of_a_policy_equals_timms(name: str) -> None:
    image = picture(24, 27, seed=3)
    theirs = timm.auto_augment_transform(name, {"img_mean": FILL})
    each = [(1 / 25, one_after_another(pair, image)) for pair in theirs.policy]
    expect_drawn(through(image, 4000, T.TimmAugment(name, fill=FILL)), mixture(each))


@needs_timm
@needs_pillow
def test_operations_are_sequential_and_weighted_ones_are_not_repeated() -> None:
    image = picture(12, 13, seed=2)
    theirs = rand("rand-m8-n2-inc1")
    each = [
        (1 / 225, one_after_another(two, image)) for two in itertools.product(theirs.ops, repeat=2)
    ]
    expect_drawn(through(image, 8000, T.TimmAugment("rand-m8-n2-inc1", fill=FILL)), mixture(each))
    theirs = rand("rand-m8-n2-p1-tweights")
    pairs = zip(theirs.ops, theirs.choice_weights, strict=True)
    each = [
        (p * q / (1 - p), one_after_another((a, b), image))
        for (a, p), (b, q) in itertools.permutations(pairs, 2)
    ]
    step = T.TimmAugment("rand-m8-n2-p1-tweights", fill=FILL)
    expect_drawn(through(image, 8000, step), mixture(each))


@needs_pillow
def test_three_of_deit_solarizes_grays_or_blurs() -> None:
    image = picture(9, 11, seed=7)
    source = Image.fromarray(image.transpose(1, 2, 0))
    blurred = {
        planes(source.filter(ImageFilter.GaussianBlur(float(radius)))): float(radius)
        for radius in np.linspace(0.1, 2.0, 12_000)
    }
    gray = np.broadcast_to(np.asarray(source.convert("L")), image.shape).tobytes()
    solarized = np.where(image < 128, image, 255 - image).tobytes()
    came = Counter(through(image, 2400, T.TimmAugment("3a")))
    for made in (gray, solarized):
        assert abs(came.pop(made) - 800) < 5 * math.sqrt(800)
    radii = [blurred[row] for row in came.elements() if row in blurred]
    assert len(radii) > 0.95 * came.total(), "other blurs than Pillow's"
    counts, _ = np.histogram(radii, bins=5, range=(0.1, 2.0))
    assert (abs(counts - len(radii) / 5) < 5 * math.sqrt(len(radii) / 5)).all()


def normal_below(x: float) -> float:
    return 0.5 * (1 + math.erf(x / math.sqrt(2)))


@pytest.mark.parametrize(("text", "mean", "deviation", "most"), [
    ("rand-m9-n1-p1-mstd0.5", 9, 0.5, 10),
    ("rand-m9-n1-p1-mstd2-mmax12", 9, 2, 12),
    ("rand-m8-n1-p1-mstd101", 8, math.inf, 10),
])  # fmt: skip
def test_magnitude_noise_equals_timms(
    text: str, mean: float, deviation: float, most: float
) -> None:
    black = np.zeros((3, 4, 4), np.uint8)  # from which solarize-add computes int(11 level), at most
    # 128
    count = 30_000
    found = Counter(row[0] for row in through(black, count, T.TimmAugment(text, fill=0)))

    def below(level: float) -> float:
        if level <= 0 or level > most:
            return float(level > most)
        if math.isinf(deviation):
            return min(1.0, level / mean)
        return normal_below((level - mean) / deviation)

    wanted = {n: below((n + 1) / 11) - below(n / 11) for n in range(128)}
    wanted[128] = 1 - below(128 / 11)
    total = 0.0
    for n in range(1, 129):
        expected = count / 15 * wanted[n]
        total += expected
        if expected >= 4:
            assert abs(found[n] - expected) < 5 * math.sqrt(expected), n
        else:
            assert found[n] < 30, n
    assert abs(sum(found[n] for n in range(1, 129)) - total) < 5 * math.sqrt(total)


@needs_timm
@needs_pillow
@pytest.mark.parametrize("blended", [0, 1])
def test_a_mixture_of_one_chain_is_blended_as_timm_blends(blended: int) -> None:
    image = picture(20, 22, seed=4)
    theirs = timm.augment_and_mix_transform("augmix-m7-w1-d1-mstd0", {"img_mean": FILL})
    made = {m for op in theirs.ops for m in outcomes(op, image.tobytes(), image.shape)}
    augmented = [pil(m, image.shape) for m in made]
    own, source = image.reshape(-1).astype(np.float64), pil(image.tobytes(), image.shape)
    shares = []
    step = T.TimmAugment(f"augmix-m7-w1-d1-mstd0-b{blended}", fill=FILL)
    for row in set(through(image, 400, step)):
        ours = np.frombuffer(row, np.uint8).astype(np.float64)
        fits = []
        for each in augmented:
            there = np.frombuffer(planes(each), np.uint8).astype(np.float64)
            share = share_of(ours, own, there)
            if share is not None and planes(Image.blend(source, each, share)) == row:
                fits.append(share)
        assert fits, "no blend with an operation's image"
        shares += fits[:1] if len(fits) == 1 else []
    assert 0.4 < np.mean(shares) < 0.6
    assert min(shares) < 0.1 and max(shares) > 0.9


@needs_timm
@needs_pillow
@pytest.mark.parametrize("text", ["augmix-m5-w4-d2", "augmix-m9-b1", "augmix"])
def test_mixtures_equal_timms_on_average(text: str) -> None:
    image = picture(10, 12, seed=6)
    source, count = pil(image.tobytes(), image.shape), 1600
    np.random.seed(1)  # timm draws from it, in addition to Python's
    timm.random.seed(1)
    theirs = timm.augment_and_mix_transform(text, {"img_mean": FILL, "translate_pct": 0.3})
    step = T.TimmAugment(text, fill=FILL, translate_pct=0.3)
    wanted = np.stack([np.frombuffer(planes(theirs(source)), np.uint8) for _ in range(count)])
    found = np.stack([np.frombuffer(row, np.uint8) for row in through(image, count, step)])
    error = np.sqrt((wanted.var(0) + found.var(0)) / count) + 0.02
    apart = (found.mean(0) - wanted.mean(0)) / error
    assert np.abs(apart).max() < 5.5
    assert 0.85 < found.std(0).mean() / wanted.std(0).mean() < 1.15
