# SPDX-License-Identifier: Apache-2.0
"""Without antialiasing pixels equal torch's for tensors, to the last bit.

torch itself gives different ones on CPUs without AVX2, and with ATEN_CPU_CAPABILITY=default.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from processes import printed_at_each_simd_level

import headrace as hr
from headrace import transforms as T

torch = pytest.importorskip("torch")
pytest.importorskip("torchvision")
from torchvision.transforms import InterpolationMode  # noqa: E402
from torchvision.transforms.v2 import functional as F  # noqa: E402

Array = np.ndarray[Any, Any]
needs_avx2 = pytest.mark.skipif(
    "AVX" not in torch.backends.cpu.get_cpu_capability(), reason="torch computes with AVX2 here"
)
BLENDS = ["bilinear", "bicubic"]
CHOOSES = ["nearest", "nearest-exact"]


def through(images: Array, *steps: Any) -> Array:
    (batch,) = hr.Loader(hr.records(image=images), list(steps), batch_size=len(images))
    return np.asarray(batch.image)


def torchs(image: Array, size: tuple[int, int], how: str) -> Array:
    mode = InterpolationMode(how)
    resized: Array = F.resize(torch.from_numpy(image), list(size), mode, antialias=False).numpy()
    return resized


@needs_avx2
@pytest.mark.parametrize("how", BLENDS + CHOOSES)
def test_sizes_of_all_kinds_have_torchs_pixels(how: str) -> None:
    random = np.random.default_rng(7)
    for number in range(150):
        height, width, *size = (int(each) for each in random.integers(1, 140, 4))
        if number % 10 == 0:
            width = int(random.integers(1, 1500))
        if number % 15 == 0:
            size[0] = height  # only one axis
        shape = (1, int(random.integers(1, 5)), height, width)
        image = random.integers(0, 256, shape, dtype=np.uint8)
        if number % 3 == 0:
            image = np.where(image > 127, 255, 0).astype(np.uint8)  # overshoots are clamped
        ours = through(image, T.Resize(size, interpolation=how, antialias=False))[0]
        np.testing.assert_array_equal(ours, torchs(image[0], tuple(size), how))


@needs_avx2
@pytest.mark.parametrize("how", BLENDS + CHOOSES)
def test_positions_at_large_offsets_are_rounded_as_in_torch(how: str) -> None:
    random = np.random.default_rng(11)
    for before, after in ((5000, 4999), (8999, 9000), (40000, 7), (3, 20000), (65535, 65536)):
        image = random.integers(0, 256, (1, 1, 2, before), dtype=np.uint8)
        for shape, size in ((image, (3, after)), (image.transpose(0, 1, 3, 2), (after, 3))):
            picture = np.ascontiguousarray(shape)
            ours = through(picture, T.Resize(size, interpolation=how, antialias=False))[0]
            np.testing.assert_array_equal(ours, torchs(picture[0], size, how))


@needs_avx2
@pytest.mark.parametrize("how", BLENDS + CHOOSES)
def test_surrounding_steps_see_the_same_pixels(how: str) -> None:
    """Crops and flips that are done in one pass with it, and steps that are not."""
    random = np.random.default_rng(8)
    for _ in range(40):
        height, width = (int(each) for each in random.integers(24, 90, 2))
        image = random.integers(0, 256, (1, 3, height, width), dtype=np.uint8)
        size = [int(each) for each in random.integers(20, 80, 2)]
        steps = [T.RandomHorizontalFlip(1.0), T.CenterCrop(20)]
        resize = T.Resize(size, interpolation=how, antialias=False)
        tensor = torch.from_numpy(image[0])
        before = F.center_crop(F.horizontal_flip(tensor), [20, 20]).numpy()
        ours = through(image, *steps, resize, T.RandomVerticalFlip(1.0))[0]
        np.testing.assert_array_equal(ours, torchs(before, tuple(size), how)[:, ::-1])
        ours = through(image, resize, *steps)[0]
        after = F.horizontal_flip(torch.from_numpy(torchs(image[0], tuple(size), how)))
        np.testing.assert_array_equal(ours, F.center_crop(after, [20, 20]).numpy())


@pytest.mark.parametrize("how", CHOOSES)
def test_neighbors_of_floats_equal_torchs_too(how: str) -> None:
    random = np.random.default_rng(9)
    for _ in range(40):
        height, width, *size = (int(each) for each in random.integers(1, 140, 4))
        image = random.integers(0, 256, (1, 3, height, width), dtype=np.uint8)
        floats = (image[0] * np.float32(1 / 255)).astype(np.float32)
        resize = T.Resize(size, interpolation=how, antialias=False)
        ours = through(image, T.ToDtype("float32", scale=True), resize)[0]
        np.testing.assert_array_equal(ours, torchs(floats, tuple(size), how))


def test_every_resizing_step_has_antialias() -> None:
    image = np.random.default_rng(3).integers(0, 256, (4, 3, 61, 47), dtype=np.uint8)
    for step in (
        lambda **how: T.RandomResizedCrop((20, 20), scale=(1, 1), ratio=(1, 1), **how),
        lambda **how: T.RandomResize(20, 21, **how),
        lambda **how: T.RandomShortestSize([20], **how),
        lambda **how: T.ScaleJitter((20, 20), (1, 1), **how),
        lambda **how: T.Letterbox((20, 20), **how),
    ):
        crop = T.CenterCrop((10, 10))
        smooth, sharp = (through(image, step(antialias=each), crop) for each in (True, False))
        assert (smooth != sharp).mean() > 0.5, step(antialias=False)


def test_unsupported_combinations_are_refused_and_masks_are_exempt() -> None:
    image = np.zeros((2, 3, 8, 8), np.uint8)
    for how in ("box", "hamming", "lanczos"):
        with pytest.raises(hr.ConfigError, match=rf'HR0513.*"{how}" does not support'):
            through(image, T.Resize(4, interpolation=how, antialias=False))
    floats = T.ToDtype("float32", scale=True)
    for how in BLENDS:
        step = T.RandomResizedCrop(4, interpolation=how, antialias=False)
        with pytest.raises(hr.ConfigError, match=r"(?s)HR0513.*float32 here.*before ToDtype"):
            through(image, floats, step)
    mask = np.random.default_rng(2).integers(0, 9, (2, 1, 8, 8), dtype=np.uint8)
    source = hr.records(image=image, mask=mask, kinds={"mask": "mask"})
    one, other = (
        np.asarray(next(iter(hr.Loader(source, [T.Resize(5, antialias=each)], batch_size=2))).mask)
        for each in (True, False)
    )
    np.testing.assert_array_equal(one, other)


SCRIPT = """
import hashlib
import numpy as np
import headrace as hr
from headrace import transforms as T
images = np.random.default_rng(1).integers(0, 256, (9, 3, 61, 203), dtype=np.uint8)
for how in ("nearest", "nearest-exact", "bilinear", "bicubic"):
    steps = [T.RandomResizedCrop((33, 131), interpolation=how, antialias=False)]
    for threads, batch_size in ((1, 9), (3, 2)):
        loader = hr.Loader(hr.records(image=images), steps, batch_size=batch_size, threads=threads)
        print(hashlib.sha256(b"".join(bytes(np.asarray(b.image).data) for b in loader)).hexdigest())
"""


def test_pixels_are_the_same_at_every_simd_level() -> None:
    assert len(printed_at_each_simd_level(SCRIPT)) == 4
