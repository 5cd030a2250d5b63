# SPDX-License-Identifier: Apache-2.0
"""docs/spec/packed-jpeg.md suffices: a plain reader decodes every coefficient that Headrace packs.

The reference is libjpeg-turbo: the coefficients are dequantized, transformed with its arithmetic,
and compared with the samples that Pillow's decoder gives.
"""

from __future__ import annotations

import io
import os
import re
from pathlib import Path

import numpy as np
import pytest
from pack_reader import PackReader
from packed_jpeg_reader import PackedJpegReader
from PIL import Image

import headrace as hr

DOCS = Path(__file__).parent.parent / "docs"
CORPUS = os.environ.get("HEADRACE_TEST_DATA", "")


def pass_of_idct(x: np.ndarray, bits: int) -> np.ndarray:
    """One dimension of jidctint.c's transform, along the first axis."""
    z2, z3 = x[2], x[6]
    z1 = (z2 + z3) * 4433
    low, high = z1 - z3 * 15137, z1 + z2 * 6270
    sums, differences = (x[0] + x[4]) << 13, (x[0] - x[4]) << 13
    even = [sums + high, differences + low, differences - low, sums - high]
    z1, z2, z3, z4 = x[7] + x[1], x[5] + x[3], x[7] + x[3], x[5] + x[1]
    z5 = (z3 + z4) * 9633
    z1, z2, z3, z4 = -z1 * 7373, -z2 * 20995, z5 - z3 * 16069, z5 - z4 * 3196
    odd = [
        x[1] * 12299 + z1 + z4,
        x[3] * 25172 + z2 + z3,
        x[5] * 16819 + z2 + z4,
        x[7] * 2446 + z1 + z3,
    ]
    rows = [even[i] + odd[i] for i in range(4)] + [even[i] - odd[i] for i in range(3, -1, -1)]
    return (np.stack(rows) + (1 << (bits - 1))) >> bits


def samples_of(plane: np.ndarray, quantization: np.ndarray) -> np.ndarray:
    """(blocks_high, blocks_wide, 8, 8) coefficients -> (rows, columns) of 8-bit samples."""
    high, wide = plane.shape[:2]
    blocks = np.moveaxis(plane.astype(np.int64) * quantization, (2, 3), (0, 1))
    columns = pass_of_idct(blocks, 11)
    rows = pass_of_idct(np.swapaxes(columns, 0, 1), 18)  # [column][row]
    samples = np.clip(rows + 128, 0, 255).astype(np.uint8)
    return samples.transpose(2, 1, 3, 0).reshape(high * 8, wide * 8)


def expected_samples(file: bytes) -> list[np.ndarray]:
    """Pillow's decoded samples, without color conversion; for files without subsampling."""
    image = Image.open(io.BytesIO(file))
    if image.mode == "RGB":
        image.draft("YCbCr", image.size)
    pixels = np.asarray(image)
    return [pixels] if pixels.ndim == 2 else list(np.moveaxis(pixels, 2, 0))


def packed_pictures(folder: Path, pack: Path) -> list[tuple[bytes, bytes]]:
    """(file, packed) for those files that are packed."""
    hr.pack(folder, pack, level="fast")
    reader = PackReader(pack)
    return [
        ((folder / os.fsdecode(key)).read_bytes(), reader.record(i)["image"])
        for i, key in enumerate(reader.keys)
        if reader.form(i, 0) == 1
    ]


def check(file: bytes, packed: bytes) -> None:
    reader = PackedJpegReader(packed)
    expected = expected_samples(file)
    planes = reader.planes()
    assert len(planes) == len(expected)
    for plane, component, samples in zip(planes, reader.components, expected, strict=True):
        got = samples_of(plane, component.quantization)
        np.testing.assert_array_equal(got[: reader.height, : reader.width], samples)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[bytes, bytes]]:
    """Sizes, qualities, gray and color, baseline and progressive."""
    root = tmp_path_factory.mktemp("made")
    rng = np.random.default_rng(9)
    number = 0
    for width, height in ((1, 1), (8, 8), (17, 9), (70, 33), (129, 20)):
        for quality in (5, 60, 90, 100):
            for gray in (False, True):
                pixels = rng.integers(0, 256, (height, width, 3), dtype=np.uint8)
                smooth = (np.add.outer(np.arange(height) * 3, np.arange(width) * 2) % 256)[
                    ..., None
                ]
                pixels = np.where(number % 3 == 0, pixels, (smooth + pixels // 9) % 256)
                image = Image.fromarray(pixels.astype(np.uint8)).convert("L" if gray else "RGB")
                (root / "files").mkdir(exist_ok=True)
                image.save(
                    root / "files" / f"{number:03}.jpg",
                    quality=quality,
                    subsampling=0,
                    progressive=number % 4 == 1,
                )
                number += 1
    return packed_pictures(root / "files", root / "pack")


def test_a_plain_reader_gets_the_files_coefficients(made: list[tuple[bytes, bytes]]) -> None:
    assert len(made) == 40
    for file, packed in made:
        check(file, packed)


@pytest.mark.skipif(not CORPUS, reason="HEADRACE_TEST_DATA is not set")
def test_a_plain_reader_gets_the_coefficients_of_photos(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    for path in sorted(Path(CORPUS).glob("photos/*/*.jpg"))[::40]:
        (tmp_path / "files" / path.name).symlink_to(path)
    for file, packed in packed_pictures(tmp_path / "files", tmp_path / "pack"):
        reader = PackedJpegReader(packed)
        if all((c.h, c.v) == (1, 1) for c in reader.components):
            check(file, packed)
        else:
            assert [plane.shape[:2] for plane in reader.planes()] == [
                (c.blocks_high, c.blocks_wide) for c in reader.components
            ]


def test_the_specifications_example_is_an_image() -> None:
    page = (DOCS / "spec" / "packed-jpeg.md").read_text()
    shown = re.findall(r"^([0-9a-f]{4})  ((?:[0-9a-f]{2} ?)+)", page, re.MULTILINE)
    packed = b"".join(bytes.fromhex(line) for _, line in shown)
    assert [int(place, 16) for place, _ in shown] == list(
        np.cumsum([0] + [len(bytes.fromhex(line)) for _, line in shown])[:-1]
    )
    (block,) = PackedJpegReader(packed).planes()[0][0]
    said = re.search(r"its coefficients are `([^`]*)`", page)
    assert said
    values = [int(value) for value in said[1].split(",")]
    zigzag = sorted(
        ((y, x) for y in range(8) for x in range(8)),
        key=lambda c: (sum(c), c[0] if sum(c) % 2 else c[1]),
    )
    assert [block[cell] for cell in zigzag][: len(values)] == values
    assert not any(block[cell] for cell in zigzag[len(values) :])
