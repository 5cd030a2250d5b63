# SPDX-License-Identifier: Apache-2.0
"""Colors are the same as in the library that an operator names: for every possible color, every
image dtype and every level of CPU instructions.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import PIL
import pytest
from PIL import Image, ImageFilter
from processes import printed_at_each_simd_level

import headrace as hr
from headrace import transforms as T

torch = pytest.importorskip("torch")
pytest.importorskip("torchvision")
from torchvision.transforms.v2 import functional as F  # noqa: E402

Array = np.ndarray[Any, Any]
needs_pillow = pytest.mark.skipif(PIL.__version__.split(".")[0] != "13", reason="needs Pillow 13")


@functools.cache
def all_colors() -> Array:
    """Every color once: 16 images of (3, 1024, 1024)."""
    numbers = np.arange(1 << 24, dtype=np.uint32).reshape(16, 1024, 1024)
    return np.stack([numbers >> 16, numbers >> 8, numbers], axis=1).astype(np.uint8)


def through(images: Array, *steps: Any) -> Array:
    source = hr.records(image=images, kinds={"image": "image"})
    loader = hr.Loader(source, list(steps), batch_size=len(images))
    return np.asarray(next(iter(loader)).image)


def test_every_color_equals_torchvisions_gray() -> None:
    images = all_colors()
    wanted = F.rgb_to_grayscale(torch.from_numpy(images)).numpy()
    np.testing.assert_array_equal(through(images, T.Grayscale()), wanted)


@needs_pillow
def test_every_color_equals_pillows_gray() -> None:
    images = all_colors()
    rows = images.transpose(0, 2, 3, 1).reshape(-1, 1024, 3)
    wanted = np.asarray(Image.fromarray(rows).convert("L")).reshape(16, 1, 1024, 1024)
    ours = through(images, T.Grayscale(arithmetic="pillow"))
    np.testing.assert_array_equal(ours, wanted)


def test_float_images_equal_torchvisions() -> None:
    images = np.random.default_rng(3).integers(0, 256, (5, 3, 37, 53), dtype=np.uint8)
    steps = [T.ToDtype("float32", scale=True), T.Grayscale(3)]
    floats = F.to_dtype(torch.from_numpy(images), torch.float32, scale=True)
    wanted = F.rgb_to_grayscale(floats, 3).numpy()
    np.testing.assert_array_equal(through(images, *steps), wanted)
    # torch itself gives different bits here in different loops.
    with pytest.raises(hr.Error, match=r"HR0510.*uint8 and float32.* is float16"):
        through(images, T.ToDtype("float16", scale=True), T.Grayscale())


def test_masks_keep_their_labels_next_to_a_grayscale_image(tmp_path: Path) -> None:
    random = np.random.default_rng(4)
    images = random.integers(0, 256, (4, 3, 9, 8), dtype=np.uint8)
    masks = random.integers(0, 9, (4, 1, 9, 8), dtype=np.uint8)
    for name, pictures in (("images", images.transpose(0, 2, 3, 1)), ("masks", masks[:, 0])):
        (tmp_path / name).mkdir()
        for number, picture in enumerate(pictures):
            Image.fromarray(picture).save(tmp_path / name / f"{number}.png")
    source = hr.join(
        tmp_path / "images", tmp_path / "masks", rename={"image": "mask"}, kinds={"mask": "mask"}
    )
    steps = [T.CenterCrop((9, 8)), T.Grayscale()]
    batch = next(iter(hr.Loader(source, steps, batch_size=4)))
    wanted = F.rgb_to_grayscale(torch.from_numpy(images)).numpy()
    np.testing.assert_array_equal(batch.image, wanted)
    np.testing.assert_array_equal(batch.mask, masks)


def through_each(images: Array, *steps: Any) -> Array:
    """Each image is measured alone, independent of its batch."""
    return np.concatenate([through(images[i : i + 1], *steps) for i in range(len(images))])


def by_pillow(function: Any, images: Array) -> Array:
    pictures = (Image.fromarray(image.transpose(1, 2, 0)) for image in images)
    return np.stack([np.asarray(function(picture)).transpose(2, 0, 1) for picture in pictures])


def by_torch(function: Any, images: Array) -> Array:
    made = [function(torch.from_numpy(image)).numpy() for image in images]
    return np.stack(made)


SATURATIONS = (0.0, 0.37, 1.0, 1.43, 3.0, 1e9)
HUES = (-0.5, -0.13, 0.0, 0.021, 0.1, 0.5)


@pytest.mark.parametrize("factor", SATURATIONS)
def test_the_saturation_of_every_color_is_adjusted_as_by_torchvision(factor: float) -> None:
    images = all_colors()[int(factor * 7) % 4 :: 4]
    wanted = by_torch(lambda image: F.adjust_saturation(image, factor), images)
    ours = through(images, T.AdjustSaturation(factor))
    np.testing.assert_array_equal(ours, wanted)


@needs_pillow
@pytest.mark.parametrize("factor", SATURATIONS)
def test_the_saturation_of_every_color_is_adjusted_as_by_pillow(factor: float) -> None:
    images = all_colors()[int(factor * 7) % 4 :: 4]
    wanted = by_pillow(lambda image: F.adjust_saturation(image, factor), images)
    ours = through(images, T.AdjustSaturation(factor, arithmetic="pillow"))
    np.testing.assert_array_equal(ours, wanted)


@pytest.mark.parametrize("share", HUES)
def test_the_hue_of_every_color_is_shifted_as_by_torchvision(share: float) -> None:
    images = all_colors()[int(abs(share) * 70) % 4 :: 4]
    wanted = by_torch(lambda image: F.adjust_hue(image, share), images)
    np.testing.assert_array_equal(through(images, T.AdjustHue(share)), wanted)


@needs_pillow
@pytest.mark.parametrize("share", HUES)
def test_the_hue_of_every_color_is_shifted_as_by_pillow(share: float) -> None:
    images = all_colors()[int(abs(share) * 70) % 4 :: 4]
    wanted = by_pillow(lambda image: F.adjust_hue(image, share), images)
    ours = through(images, T.AdjustHue(share, arithmetic="pillow"))
    np.testing.assert_array_equal(ours, wanted)


def pictures_of_many_kinds(seed: int) -> list[Array]:
    """From 1 x 1 to 300 pixels; noise, few values, one value, a part of the range."""
    random = np.random.default_rng(seed)
    out = []
    for _ in range(25):
        height, width = random.integers(1, 300, 2)
        low, high = np.sort(random.integers(0, 257, 2))
        shape = (1, random.choice([1, 3]), min(height, 200), width)
        noise = random.integers(low, max(high, low + 1), shape).astype(np.uint8)
        out.append(noise if random.random() < 0.8 else noise // 100 * 100)
    return out


EXACT = {
    "brightness": (lambda f: T.AdjustBrightness(2 * f), lambda i, f: F.adjust_brightness(i, 2 * f)),
    "invert": (lambda f: T.RandomInvert(1.0), lambda i, f: F.invert(i)),
    "solarize": (lambda f: T.RandomSolarize(255 * f, 1.0), lambda i, f: F.solarize(i, 255 * f)),
    "posterize": (
        lambda f: T.RandomPosterize(1 + int(7.99 * f), 1.0),
        lambda i, f: F.posterize(i, 1 + int(7.99 * f)),
    ),
    "equalize": (lambda f: T.RandomEqualize(1.0), lambda i, f: F.equalize(i)),
}
OF_A_LIBRARY = {
    "contrast": (
        lambda f, **whose: T.AdjustContrast(3 * f, **whose),
        lambda i, f: F.adjust_contrast(i, 3 * f),
    ),
    "sharpness": (
        lambda f, **whose: T.RandomAdjustSharpness(3 * f, 1.0, **whose),
        lambda i, f: F.adjust_sharpness(i, 3 * f),
    ),
    "autocontrast": (
        lambda f, **whose: T.RandomAutocontrast(1.0, **whose),
        lambda i, f: F.autocontrast(i),
    ),
    "gray": (
        lambda f, **whose: T.RandomGrayscale(1.0, **whose),
        lambda i, f: F.rgb_to_grayscale(i, len(i.getbands()) if hasattr(i, "getbands") else len(i)),
    ),
}


@needs_pillow
@pytest.mark.parametrize("name", [*EXACT, *OF_A_LIBRARY])
@pytest.mark.parametrize("whose", ["torch", "pillow"])
def test_tables_and_measured_colors_equal_the_librarys(name: str, whose: str) -> None:
    random = np.random.default_rng(9)
    for image in pictures_of_many_kinds(seed=5):
        factor = random.random()
        if name in EXACT:
            make, original = EXACT[name]
            step = make(factor)
        else:
            make, original = OF_A_LIBRARY[name]
            step = make(factor, arithmetic=whose)
        ours = through(image, step)
        if whose == "torch":
            wanted = by_torch(lambda i, o=original, f=factor: o(i, f), image)
        else:
            picture = Image.fromarray(
                image[0].transpose(1, 2, 0).squeeze(-1 if len(image[0]) == 1 else ())
            )
            made = np.asarray(original(picture, factor))
            wanted = np.atleast_3d(made).transpose(2, 0, 1)[None]
        np.testing.assert_array_equal(ours, wanted)


@needs_pillow
@pytest.mark.parametrize(
    "gamma, gain", [(0.5, 1.0), (2.2, 1.0), (0.7, 1.3), (0.0, 1.0), (1.0, 2.0)]
)
def test_gamma_equals_pillows_and_torchs_within_one_level(gamma: float, gain: float) -> None:
    values = np.arange(256, dtype=np.uint8).reshape(1, 1, 16, 16).repeat(3, axis=1)
    ours = through(values, T.AdjustGamma(gamma, gain, arithmetic="pillow"))
    wanted = by_pillow(lambda image: F.adjust_gamma(image, gamma, gain), values)
    np.testing.assert_array_equal(ours, wanted)
    ours = through(values, T.AdjustGamma(gamma, gain))
    wanted = by_torch(lambda image: F.adjust_gamma(image, gamma, gain), values)
    assert np.abs(ours.astype(int) - wanted.astype(int)).max() <= 1
    assert np.count_nonzero(ours != wanted) <= 3


@pytest.mark.parametrize("kernel", [3, 23, (5, 11)])
@pytest.mark.parametrize("sigma", [0.1, 0.73, 2.0, 9.0])
def test_a_blur_equals_torchvisions_except_for_the_order_of_sums(kernel: Any, sigma: float) -> None:
    random = np.random.default_rng(2)
    noise = random.integers(0, 256, (4, 3, 150, 203), dtype=np.uint8)
    smooth = np.clip(np.cumsum(random.integers(-4, 5, noise.shape), axis=-1) + 128, 0, 255)
    for images in (noise, smooth.astype(np.uint8), noise[:, :1, :13, :14]):
        ours = through(images, T.GaussianBlur(kernel, sigma)).astype(int)
        size = [kernel, kernel] if isinstance(kernel, int) else list(kernel)
        wanted = F.gaussian_blur(torch.from_numpy(images), size, [sigma, sigma]).numpy()
        differs = np.abs(ours - wanted.astype(int))
        assert differs.max() <= 1
        assert np.count_nonzero(differs) <= max(1, 1e-4 * images.size)


def test_pillows_blur_is_reproduced_bit_for_bit() -> None:
    random = np.random.default_rng(5)
    for case in range(120):
        height, width = random.integers(1, (3, 20, 90, 300)[case % 4], 2)
        radius = 0.0 if case == 0 else float(random.uniform(0, (0.3, 2, 30)[case % 3]))
        pixels = random.integers(0, 256, (height, width, 3)[: 2 + case % 2], dtype=np.uint8)
        images = pixels.reshape(1, height, width, -1).transpose(0, 3, 1, 2)
        ours = through(images, T.PillowGaussianBlur(radius))[0].transpose(1, 2, 0)
        blurred = Image.fromarray(pixels).filter(ImageFilter.GaussianBlur(radius))
        wanted = np.asarray(blurred).reshape(ours.shape)
        np.testing.assert_array_equal(ours, wanted, err_msg=f"{pixels.shape}, {radius}")


def test_the_radius_of_pillows_blur_is_drawn() -> None:
    images = np.zeros((300, 1, 9, 9), np.uint8)
    images[:, :, 4, 4] = 255
    picture = Image.fromarray(images[0, 0])
    radii = np.linspace(0.5, 1.0, 400).tolist()
    peaks = [picture.filter(ImageFilter.GaussianBlur(r)).getpixel((4, 4)) for r in radii]
    drawn = through(images, T.PillowGaussianBlur((0.5, 1.0)))[:, 0, 4, 4]
    shares = [(drawn >= peaks[k]).mean() for k in (100, 200, 300)]
    np.testing.assert_allclose(shares, [0.25, 0.5, 0.75], atol=0.12)


def test_a_blur_needs_an_image_large_enough_to_mirror(tmp_path: Path) -> None:
    with pytest.raises(hr.ConfigError, match="larger than twice"):
        through(np.zeros((1, 3, 9, 11), np.uint8), T.GaussianBlur(23))
    with pytest.raises(hr.ConfigError, match="odd"):
        through(np.zeros((1, 3, 9, 11), np.uint8), T.GaussianBlur(4))
    Image.new("RGB", (9, 30)).save(tmp_path / "small.png")
    loader = hr.Loader(
        hr.records(image=[str(tmp_path / "small.png")]),
        [T.GaussianBlur(23)],
        batch_size=1,
        ragged="list",
    )
    with pytest.raises(hr.DataError, match="HR0504"):
        next(iter(loader))


def test_the_width_of_a_blur_is_drawn() -> None:
    images = np.zeros((300, 1, 9, 9), np.uint8)
    images[:, :, 4, 4] = 255
    peaks = through(images, T.GaussianBlur(9, (0.5, 1.0)))[:, 0, 4, 4] / 255
    widths = np.sqrt(1 / (2 * np.pi * peaks))  # of a normal distribution with this peak
    assert 0.45 < widths.min() < 0.56 and 0.9 < widths.max() < 1.1
    assert 0.35 < (widths < 0.75).mean() < 0.65


def test_each_step_starts_from_bytes_as_the_library_does() -> None:
    """Random chains: fused tables, measured steps between others, and all of them after a crop."""
    random = np.random.default_rng(12)
    single = {
        "b": (T.AdjustBrightness, F.adjust_brightness, (0.2, 2.0)),
        "c": (T.AdjustContrast, F.adjust_contrast, (0.2, 2.0)),
        "s": (T.AdjustSaturation, F.adjust_saturation, (0.0, 2.0)),
        "h": (T.AdjustHue, F.adjust_hue, (-0.5, 0.5)),
    }
    for _ in range(60):
        image = random.integers(0, 256, (1, 3, *random.integers(9, 90, 2)), dtype=np.uint8)
        steps: list[Any] = [T.CenterCrop(8)]
        wanted = F.center_crop(torch.from_numpy(image), [8, 8])
        for name in random.choice(list(single), random.integers(1, 11)):
            make, original, (low, high) = single[name]
            factor = float(random.uniform(low, high))
            steps.append(make(factor))
            wanted = original(wanted, factor)
        np.testing.assert_array_equal(through(image, *steps), wanted.numpy())


def drawn(step: Any, count: int = 600) -> Array:
    """One pixel of (100, 60, 20) after the step, for this many records."""
    images = np.broadcast_to(np.uint8([100, 60, 20])[:, None, None], (count, 3, 1, 1))
    return through(np.ascontiguousarray(images), step)[:, :, 0, 0]


def test_draws_have_torchvisions_distribution() -> None:
    bright = drawn(T.ColorJitter(brightness=0.5))[:, 0] / 100
    edges = np.histogram(bright, bins=5, range=(0.5, 1.5))[0]
    assert edges.sum() == 600 and (edges > 80).all(), edges
    orders, counts = np.unique(drawn(T.RandomChannelPermutation()), axis=0, return_counts=True)
    assert len(orders) == 6 and (counts > 65).all(), counts
    gray = (drawn(T.RandomGrayscale(0.3)) == 67).all(axis=1).mean()
    assert 0.22 < gray < 0.38
    changed = (drawn(T.RandomPhotometricDistort(hue=(0.2, 0.3))) != (100, 60, 20)).any(axis=1)
    assert 0.9 < changed.mean() < 1.0  # 1 - 1 / 32


def test_the_order_of_a_jitter_is_drawn() -> None:
    """Brightness saturates at 255, so gray after it differs from gray before it."""
    step = T.ColorJitter(brightness=(2.5, 2.5), saturation=(0.0, 0.0))
    grays = drawn(step)
    values, counts = np.unique(grays, axis=0, return_counts=True)
    pixel = torch.tensor([100, 60, 20], dtype=torch.uint8).reshape(3, 1, 1)
    bright_first = F.adjust_saturation(F.adjust_brightness(pixel, 2.5), 0.0)
    gray_first = F.adjust_brightness(F.adjust_saturation(pixel, 0.0), 2.5)
    wanted = {tuple(made.flatten().tolist()) for made in (bright_first, gray_first)}
    assert {tuple(value) for value in values.tolist()} == wanted
    assert (counts > 240).all()


@pytest.mark.parametrize(
    "make",
    [
        lambda: T.ColorJitter(brightness=-1),
        lambda: T.ColorJitter(brightness=(1.2, 0.8)),
        lambda: T.ColorJitter(hue=0.6),
        lambda: T.RandomPhotometricDistort(contrast=(2, 1)),
        lambda: T.AdjustHue(0.7),
        lambda: T.RandomPosterize(9),
        lambda: T.RandomSolarize(300),
        lambda: T.ColorJitter(arithmetic="opencv"),
    ],
)
def test_invalid_arguments_are_refused(make: Any) -> None:
    with pytest.raises(hr.ConfigError):
        through(np.zeros((1, 3, 4, 4), np.uint8), make())


def test_colors_of_floats_are_refused_with_a_hint() -> None:
    steps = [T.ToDtype("float32", scale=True), T.AdjustContrast(0.5, arithmetic="pillow")]
    with pytest.raises(hr.ConfigError, match=r"(?s)HR0510.*float32 here.*before ToDtype"):
        through(np.zeros((1, 3, 4, 4), np.uint8), *steps)


ON_A_LEVEL = """
import hashlib, sys
import headrace as hr
from headrace import transforms as T

digest = hashlib.sha256()
for arithmetic in ("torch", "pillow"):
    for memory_format in ("channels_first", "channels_last"):
        steps = [T.RandomResizedCrop((33, 31)), T.RandomHorizontalFlip(), T.Pad(1, fill=9)]
        steps += [T.ColorJitter(0.4, 0.4, 0.4, 0.1, arithmetic=arithmetic)]
        steps += [T.RandomEqualize(), T.RandomPosterize(5), T.RandomAutocontrast()]
        steps += [T.GaussianBlur((5, 3), (0.3, 1.5))]
        steps += [T.RandomAdjustSharpness(1.8, arithmetic=arithmetic)]
        steps += [T.RandomGrayscale(0.2, arithmetic=arithmetic), T.RandomCrop(29)]
        steps += [T.ToDtype("float32")]
        loader = hr.Loader(sys.argv[1], steps, batch_size=4, memory_format=memory_format)
        for batch in loader:
            digest.update(bytes(batch.image.copy().tobytes()))
print(digest.hexdigest())
"""


def test_results_do_not_depend_on_the_instruction_set(pictures: Path) -> None:
    assert len(printed_at_each_simd_level(ON_A_LEVEL, pictures)) == 1
