# SPDX-License-Identifier: Apache-2.0
"""Colors of float32 images equal torchvision's on float tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace import transforms as T

torch = pytest.importorskip("torch")
pytest.importorskip("torchvision")
from torchvision.transforms.v2 import functional as F  # noqa: E402

Array = np.ndarray[Any, Any]
WHITE = T.ToDtype("float32", scale=True)
RNG = np.random.default_rng(5)


def pictures(count: int = 3) -> list[Array]:
    """One and three channels and many widths, including grays and equal channels."""
    out = []
    for height, width in ((1, 1), (1, 9), (7, 3), (16, 16), (31, 33), (40, 131), (224, 224)):
        for channels in (1, 3):
            for _ in range(count):
                picture = RNG.integers(0, 256, (channels, height, width), dtype=np.uint8)
                if channels == 3:
                    same = RNG.random((height, width)) < 0.3
                    picture[1][same] = picture[0][same]
                    picture[2][RNG.random((height, width)) < 0.3] = 255
                out.append(picture)
    return out


PICTURES = pictures()


def through(picture: Array, *steps: Any) -> Array:
    data = hr.records(image=picture[None])
    return np.asarray(next(iter(hr.Loader(data, list(steps), batch_size=1))).image)[0]


def floats(picture: Array) -> Any:
    return F.to_dtype(torch.from_numpy(picture), torch.float32, scale=True)


EXACT: dict[str, tuple[Callable[[float], Any], Callable[[Any, float], Any]]] = {
    "brightness": (lambda x: T.AdjustBrightness(x * 2), lambda t, x: F.adjust_brightness(t, x * 2)),
    "saturation": (lambda x: T.AdjustSaturation(x * 2), lambda t, x: F.adjust_saturation(t, x * 2)),
    "hue": (lambda x: T.AdjustHue(x - 0.5), lambda t, x: F.adjust_hue(t, x - 0.5)),
    "invert": (lambda x: T.RandomInvert(1.0), lambda t, x: F.invert(t)),
    "solarize": (lambda x: T.RandomSolarize(x, p=1.0), lambda t, x: F.solarize(t, x)),
    "posterize": (
        lambda x: T.RandomPosterize(int(x * 8), p=1.0),
        lambda t, x: F.posterize(t, int(x * 8)),
    ),
    "autocontrast": (lambda x: T.RandomAutocontrast(1.0), lambda t, x: F.autocontrast(t)),
    "grayscale": (lambda x: T.Grayscale(3), lambda t, x: F.rgb_to_grayscale(t, 3)),
    "equalize": (lambda x: T.RandomEqualize(1.0), lambda t, x: F.equalize(t)),
}
NEAR: dict[str, tuple[Callable[[float], Any], Callable[[Any, float], Any]]] = {
    "contrast": (lambda x: T.AdjustContrast(x * 2), lambda t, x: F.adjust_contrast(t, x * 2)),
    "gamma": (lambda x: T.AdjustGamma(x * 4, 1.1), lambda t, x: F.adjust_gamma(t, x * 4, 1.1)),
    "power": (lambda x: T.AdjustGamma(x * 4), lambda t, x: F.adjust_gamma(t, x * 4)),
    "sharpness": (
        lambda x: T.RandomAdjustSharpness(x * 3, p=1.0),
        lambda t, x: F.adjust_sharpness(t, x * 3),
    ),
}
AMOUNTS = [0.0, 1.0, 0.5, 0.25, *RNG.uniform(0, 1, 6).tolist()]


@pytest.mark.parametrize("name", EXACT)
def test_values_equal_torchvisions(name: str) -> None:
    ours, theirs = EXACT[name]
    for number, picture in enumerate(PICTURES):
        amount = float(AMOUNTS[number % len(AMOUNTS)])
        wanted = theirs(floats(picture), amount).numpy()
        np.testing.assert_array_equal(through(picture, WHITE, ours(amount)), wanted)


@pytest.mark.parametrize("name", NEAR)
def test_values_equal_torchvisions_within_the_stated_bound(name: str) -> None:
    ours, theirs = NEAR[name]
    for number, picture in enumerate(PICTURES):
        amount = float(AMOUNTS[number % len(AMOUNTS)])
        wanted = theirs(floats(picture), amount).numpy()
        np.testing.assert_allclose(through(picture, WHITE, ours(amount)), wanted, rtol=0, atol=1e-6)


STRANGE = np.array([-3.5, -0.0, 0.0, 1e-30, 0.3, 1.0, 1.7, 1e30, np.inf, -np.inf, np.nan])


@pytest.mark.parametrize("name", [name for name in [*EXACT, *NEAR] if name != "sharpness"])
def test_values_beyond_white_and_nans_are_as_in_torch(name: str) -> None:
    """After Normalize, values may have any magnitude. Hues of infinities are left out: they convert
    a NaN to an integer.
    """
    ours, theirs = (EXACT | NEAR)[name]
    for amount in AMOUNTS[:6]:
        values = RNG.choice(STRANGE[:8] if name == "hue" else STRANGE, (3, 5, 40))
        if name == "equalize":
            values = np.clip(values, 0, 1)  # beyond that, torch's result depends on the machine
            values[np.isnan(values)] = 0
        if name in ("autocontrast", "contrast"):
            values[np.isnan(values)] = 0.5
            values[np.abs(values) > 10] = 2.0
        picture = values.astype(np.float32)
        wanted = theirs(torch.from_numpy(picture), amount).numpy()
        given = of_floats(picture, ours(amount))
        np.testing.assert_allclose(given, wanted, rtol=3e-7, atol=1e-6 if name in NEAR else 0)


def of_floats(picture: Array, step: Any) -> Array:
    """The engine's images start as bytes: a function converts them to floats."""

    def values(image: Array) -> Array:
        return picture

    made = T.Python(values, returns={"image": ("float32", picture.shape)})
    return through(np.zeros(picture.shape, np.uint8), made, step)


def test_a_channel_with_a_nan_becomes_nan_by_autocontrast() -> None:
    picture = np.linspace(0, 1, 60, dtype=np.float32).reshape(3, 4, 5)
    picture[1, 2, 3] = np.nan
    wanted = F.autocontrast(torch.from_numpy(picture)).numpy()
    np.testing.assert_array_equal(of_floats(picture, T.RandomAutocontrast(1.0)), wanted)


@pytest.mark.parametrize("seed", range(3))
def test_color_jitter_of_floats_is_close_to_that_of_bytes(seed: int) -> None:
    """The same draws of factors and order. Bytes are truncated between the steps, floats are
    not."""
    data = hr.records(image=np.stack([p for p in PICTURES if p.shape == (3, 224, 224)]))
    for jitter in (T.ColorJitter(0.4, 0.4, 0.4, 0.1), T.RandomPhotometricDistort()):
        of_bytes = hr.Loader(data, [jitter, WHITE], batch_size=1, seed=seed)
        of_white = hr.Loader(data, [WHITE, jitter], batch_size=1, seed=seed)
        for a, b in zip(of_bytes, of_white, strict=True):
            assert np.abs(a.image - b.image).mean() < 0.01


def test_color_steps_apply_to_borders_too() -> None:
    picture = PICTURES[-1]
    steps = [WHITE, T.Pad(3, fill=0.25), T.RandomInvert(1.0), T.AdjustBrightness(0.5)]
    wanted = F.adjust_brightness(F.invert(F.pad(floats(picture), 3, fill=0.25)), 0.5).numpy()
    np.testing.assert_array_equal(through(picture, *steps), wanted)


@pytest.mark.parametrize(
    "step",
    [
        T.ColorJitter(0.4, arithmetic="pillow"),
        T.AdjustContrast(0.5, arithmetic="pillow"),
        T.AdjustGamma(0.5, arithmetic="pillow"),
        T.RandomAdjustSharpness(2, arithmetic="pillow"),
        T.RandomSolarize(128),
    ],
)
def test_steps_without_float_arithmetic_are_refused(step: Any) -> None:
    with pytest.raises(hr.ConfigError, match="HR0510"):
        through(PICTURES[-1], WHITE, step)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_floats_are_refused(dtype: str) -> None:
    with pytest.raises(hr.ConfigError, match="HR0510"):
        through(PICTURES[-1], T.ToDtype(dtype, scale=True), T.AdjustBrightness(0.5))


def test_floats_beyond_white_are_equalized_as_white() -> None:
    picture = RNG.normal(0.5, 0.5, (3, 20, 30)).astype(np.float32)
    picture[0, 3, 4] = np.nan
    wanted = F.equalize(torch.from_numpy(np.clip(np.nan_to_num(picture), 0, 1))).numpy()
    np.testing.assert_array_equal(of_floats(picture, T.RandomEqualize(1.0)), wanted)


@pytest.mark.parametrize("scale", [1.0, 50.0])
def test_floats_are_sharpened_and_blurred_within_the_stated_bound(scale: float) -> None:
    for _ in range(20):
        shape = (int(RNG.choice([1, 3])), *(int(each) for each in RNG.integers(3, 70, 2)))
        picture = RNG.normal(0.5, scale, shape).astype(np.float32)
        tensor, most = torch.from_numpy(picture), float(np.abs(picture).max())
        factor, sigma = float(RNG.uniform(0, 5)), float(RNG.uniform(0.1, 3))
        ours = of_floats(picture, T.RandomAdjustSharpness(factor, p=1.0))
        wanted = F.adjust_sharpness(tensor, factor).numpy()
        np.testing.assert_allclose(ours, wanted, rtol=0, atol=1e-6 * most * max(1, factor))
        kernel = [2 * int(RNG.integers(0, (side + 1) // 2)) + 1 for side in shape[:0:-1]]
        ours = of_floats(picture, T.GaussianBlur(kernel, sigma))
        wanted = F.gaussian_blur(tensor, kernel, [sigma, sigma]).numpy()
        np.testing.assert_allclose(ours, wanted, rtol=0, atol=1e-6 * most)
