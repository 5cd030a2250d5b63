# SPDX-License-Identifier: Apache-2.0
"""JPEG artifacts are the same as Pillow's and torchvision's; lighting is AlexNet's."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import PIL
import pytest
from PIL import Image

import headrace as hr
from headrace import transforms as T

Array = np.ndarray[Any, Any]
needs_pillow = pytest.mark.skipif(PIL.__version__.split(".")[0] != "13", reason="needs Pillow 13")


def through(images: Array, *steps: Any) -> Array:
    loader = hr.Loader(hr.records(image=images), list(steps), batch_size=len(images))
    return np.asarray(next(iter(loader)).image)


def pictures(count: int, seed: int) -> Any:
    """Noise, and smooth pictures like photos; of 1 x 1 to 90 pixels, and some larger ones."""
    random = np.random.default_rng(seed)
    for number in range(count):
        most = 300 if number % 20 == 0 else 90
        shape = (1, random.choice([1, 3]), *random.integers(1, most, 2))
        image = random.integers(0, 256, shape, dtype=np.uint8)
        if number % 3:
            steps = random.integers(-9, 10, shape)
            image = np.clip(np.cumsum(steps, axis=-1) + 128, 0, 255).astype(np.uint8)
        yield random, image


@needs_pillow
def test_jpeg_artifacts_equal_pillows() -> None:
    for random, image in pictures(250, seed=1):
        quality = int(random.integers(1, 101))
        rows = image[0].transpose(1, 2, 0)
        picture = Image.fromarray(rows if rows.shape[2] == 3 else rows[..., 0])
        stored = io.BytesIO()
        picture.save(stored, format="JPEG", quality=quality)
        wanted = np.atleast_3d(np.asarray(Image.open(stored))).transpose(2, 0, 1)
        np.testing.assert_array_equal(through(image, T.JPEG(quality))[0], wanted)


def test_jpeg_artifacts_equal_torchvisions() -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("torchvision")
    from torchvision.transforms.v2 import functional as F

    try:
        F.jpeg(torch.zeros((3, 8, 8), dtype=torch.uint8), 50)
    except RuntimeError:
        pytest.skip("this build of torchvision has no codecs")
    for random, image in pictures(60, seed=2):
        quality = int(random.integers(1, 101))
        wanted = F.jpeg(torch.from_numpy(image), quality).numpy()
        np.testing.assert_array_equal(through(image, T.JPEG(quality)), wanted)


def test_an_image_too_large_for_jpeg_is_a_bad_record() -> None:
    images = np.zeros((1, 1, 1, 65_501), np.uint8)
    with pytest.raises(hr.DataError, match=r"HR0389.*1 x 65501"):
        through(images, T.JPEG(50))


def test_the_quality_is_drawn_with_both_ends() -> None:
    image = np.random.default_rng(3).integers(0, 256, (1, 3, 24, 24), dtype=np.uint8)
    fixed = [through(image, T.JPEG(quality))[0].tobytes() for quality in (10, 11, 12)]
    drawn = through(np.repeat(image, 300, axis=0), T.JPEG((10, 12)))
    counts = [sum(one.tobytes() == each for one in drawn) for each in fixed]
    assert sum(counts) == 300 and min(counts) > 60, counts


def test_jpeg_distortion_of_images_decoded_together(tmp_path: Any) -> None:
    random = np.random.default_rng(5)
    images = random.integers(0, 256, (12, 3, 40, 48), dtype=np.uint8)
    for number, image in enumerate(images):
        Image.fromarray(image.transpose(1, 2, 0)).save(tmp_path / f"{number:02}.jpg", quality=90)
    files = [str(path) for path in sorted(tmp_path.glob("*.jpg"))]
    source = hr.records(image=files)
    decoded = next(iter(hr.Loader(source, [T.CenterCrop(32)], batch_size=12))).image
    wanted = np.concatenate([through(one[None], T.JPEG(30)) for one in np.asarray(decoded)])
    loader = hr.Loader(source, [T.CenterCrop(32), T.JPEG(30)], batch_size=12, threads=2)
    np.testing.assert_array_equal(next(iter(loader)).image, wanted)


def test_lighting_moves_colors_along_alexnets_directions() -> None:
    images = np.full((4000, 3, 1, 1), 127, np.uint8)
    floats = [T.ToDtype("float32", scale=True), T.PCALighting(0.1)]
    moved = through(images, *floats)[:, :, 0, 0] - np.float32(127 / 255)
    values = np.float32([0.2175, 0.0188, 0.0045])
    vectors = np.float32(
        [[-0.5675, 0.7192, 0.4009], [-0.5808, -0.0045, -0.8140], [-0.5836, -0.6948, 0.4203]]
    )
    alphas = np.linalg.solve((vectors * values).astype(float), moved.T.astype(float)) / 0.1
    assert np.abs(alphas.mean(axis=1)).max() < 0.08
    np.testing.assert_allclose(np.cov(alphas), np.eye(3), atol=0.09)
    for edge, share in ((-1.0, 0.1587), (0.0, 0.5), (1.5, 0.9332)):
        np.testing.assert_allclose((alphas < edge).mean(axis=1), share, atol=0.03)
    byte = through(images, T.PCALighting(0.1))[:, :, 0, 0]
    np.testing.assert_allclose(byte, 127 + 255 * moved, atol=0.5001)
    white = through(np.full((500, 3, 1, 1), 255, np.uint8), T.PCALighting(5.0))
    assert (white == 255).mean() > 0.3 and (white < 128).any()


@pytest.mark.parametrize(
    "make",
    [
        lambda: T.JPEG(0),
        lambda: T.JPEG(101),
        lambda: T.JPEG((60, 50)),
        lambda: T.JPEG(),
        lambda: T.PCALighting(-1),
    ],
)
def test_invalid_arguments_are_refused(make: Any) -> None:
    with pytest.raises((hr.ConfigError, TypeError)):
        through(np.zeros((1, 3, 4, 4), np.uint8), make())


def test_grayscale_images_have_no_lighting() -> None:
    with pytest.raises(hr.ConfigError, match=r"HR0510.*1 channel"):
        through(np.zeros((1, 1, 4, 4), np.uint8), T.PCALighting())
