# SPDX-License-Identifier: Apache-2.0
"""Colours equal the library that an operator names: for every colour that there is, every dtype of
pictures and every level of the CPU's instructions."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import PIL
import pytest
from PIL import Image

import headrace as hr
from headrace import transforms as T

torch = pytest.importorskip("torch")
pytest.importorskip("torchvision")
from torchvision.transforms.v2 import functional as F  # noqa: E402

Array = np.ndarray[Any, Any]
needs_pillow = pytest.mark.skipif(PIL.__version__.split(".")[0] != "13", reason="needs Pillow 13")


def all_colors() -> Array:
    """Every colour once: 16 pictures of (3, 1024, 1024)."""
    numbers = np.arange(1 << 24, dtype=np.uint32).reshape(16, 1024, 1024)
    return np.stack([numbers >> 16, numbers >> 8, numbers], axis=1).astype(np.uint8)


def through(images: Array, tmp_path: Path, *steps: Any) -> Array:
    np.save(tmp_path / "images.npy", images)
    loader = hr.Loader(
        hr.open(tmp_path / "images.npy"), list(steps), batch_size=len(images), fields="image"
    )
    return np.asarray(next(iter(loader)).image)


def test_every_color_is_torchvisions_gray(tmp_path: Path) -> None:
    images = all_colors()
    wanted = F.rgb_to_grayscale(torch.from_numpy(images)).numpy()
    np.testing.assert_array_equal(through(images, tmp_path, T.Grayscale()), wanted)


@needs_pillow
def test_every_color_is_pillows_gray(tmp_path: Path) -> None:
    images = all_colors()
    rows = images.transpose(0, 2, 3, 1).reshape(-1, 1024, 3)
    wanted = np.asarray(Image.fromarray(rows).convert("L")).reshape(16, 1, 1024, 1024)
    ours = through(images, tmp_path, T.Grayscale(arithmetic="pillow"))
    np.testing.assert_array_equal(ours, wanted)


def test_pictures_of_floats_become_what_torchvision_makes_of_them(tmp_path: Path) -> None:
    images = np.random.default_rng(3).integers(0, 256, (5, 3, 37, 53), dtype=np.uint8)
    steps = [T.ToDtype("float32", scale=True), T.Grayscale(3)]
    floats = F.to_dtype(torch.from_numpy(images), torch.float32, scale=True)
    wanted = F.rgb_to_grayscale(floats, 3).numpy()
    np.testing.assert_array_equal(through(images, tmp_path, *steps), wanted)
    # torch itself gives other bits here from one of its loops to the next.
    with pytest.raises(hr.Error, match=r"HR0510.*uint8 and float32.* is float16"):
        through(images, tmp_path, T.ToDtype("float16", scale=True), T.Grayscale())


def test_masks_keep_their_labels_beside_a_gray_image(tmp_path: Path) -> None:
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


ON_A_LEVEL = """
import hashlib, sys
import headrace as hr
from headrace import transforms as T

digest = hashlib.sha256()
for arithmetic in ("torchvision", "pillow"):
    for memory_format in ("channels_first", "channels_last"):
        steps = [T.RandomResizedCrop((33, 31)), T.RandomHorizontalFlip(), T.Pad(1, fill=9)]
        steps += [T.Grayscale(3, arithmetic=arithmetic), T.RandomCrop(29), T.ToDtype("float32")]
        loader = hr.Loader(sys.argv[1], steps, batch_size=4, memory_format=memory_format)
        for batch in loader:
            digest.update(bytes(batch.image.copy().tobytes()))
print(digest.hexdigest())
"""


def test_bytes_do_not_depend_on_the_instruction_set(pictures: Path) -> None:
    digests = set()
    for level in ("scalar", "avx2", "avx512"):
        done = subprocess.run(
            [sys.executable, "-c", ON_A_LEVEL, str(pictures)],
            env={**os.environ, "HEADRACE_SIMD": level},
            capture_output=True,
            text=True,
        )
        if "HR0341" in done.stderr:  # this CPU lacks it
            continue
        assert done.returncode == 0, done.stderr
        digests.add(done.stdout)
    assert len(digests) == 1
