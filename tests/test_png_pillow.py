# SPDX-License-Identifier: Apache-2.0
"""Exact pixels: a PNG of any kind equals Pillow 13's convert("RGB"); a mask keeps its stored
values."""

from __future__ import annotations

import os
import struct
import warnings
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import headrace as hr

WIDTH, HEIGHT = 37, 23
SAMPLES = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}  # per pixel, by PNG's color type
DEPTHS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
KINDS = [(kind, depth) for kind, depths in DEPTHS.items() for depth in depths]


def chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png(kind: int, depth: int, colors: int | None = None, transparent: bool = False) -> bytes:
    """A PNG of random samples; written here because Pillow cannot write all kinds."""
    rng = np.random.default_rng(kind * 100 + depth)
    row_bytes = (WIDTH * SAMPLES[kind] * depth + 7) // 8
    rows = rng.integers(0, 256, (HEIGHT, row_bytes), np.uint8)
    if depth == 16:  # values on both sides of 255
        rows[:, ::2] *= rng.integers(0, 2, rows[:, ::2].shape, np.uint8)
    extra = b""
    if kind == 3:
        extra = chunk(b"PLTE", rng.bytes(3 * (colors or 2**depth)))
    if transparent:
        extra += chunk(b"tRNS", {0: b"\0\1", 2: b"\0\1\0\2\0\3", 3: b"\0\x80"}[kind])
    extra += chunk(b"gAMA", struct.pack(">I", 100_000))
    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, depth, kind, 0, 0, 0)
    pixels = zlib.compress(b"".join(b"\0" + row.tobytes() for row in rows))
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + extra
        + chunk(b"IDAT", pixels)
        + chunk(b"IEND", b"")
    )


def ours(path: Path, field: str = "image") -> np.ndarray:
    """16-bit gray by Pillow's rule, which must be requested."""
    source = hr.records(**{field: [path]})
    (batch,) = hr.Loader(source, batch_size=1, threads=1, ragged="list", sixteen_bit="clip")
    return np.asarray(batch[0])[0]


def pillow_rgb(path: Path) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(Image.open(path).convert("RGB")).transpose(2, 0, 1)


@pytest.mark.parametrize(("kind", "depth"), KINDS)
def test_every_kind_equals_pillows_rgb(kind: int, depth: int, tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(png(kind, depth))
    assert np.array_equal(ours(path), pillow_rgb(path))


@pytest.mark.parametrize(("kind", "depth"), [(0, 4), (0, 16), (2, 8), (2, 16), (3, 2), (3, 8)])
def test_transparency_is_dropped_as_pillow_does(kind: int, depth: int, tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(png(kind, depth, transparent=True))
    assert np.array_equal(ours(path), pillow_rgb(path))


def test_an_index_outside_the_palette_is_black(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(png(3, 8, colors=5))
    got = ours(path)
    assert np.array_equal(got, pillow_rgb(path))
    assert (got == 0).all(axis=0).any()


@pytest.mark.parametrize("depth", DEPTHS[3])
def test_a_palette_mask_keeps_its_indices(depth: int, tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(png(3, depth))
    assert np.array_equal(hr.records(mask=[path])[0]["mask"], np.asarray(Image.open(path))[None])


@pytest.mark.parametrize("depth", DEPTHS[0])
def test_a_gray_mask_equals_pillows_l(depth: int, tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(png(0, depth))
    expected = np.asarray(Image.open(path).convert("L"))[None]
    assert np.array_equal(ours(path, "mask"), expected)


def test_the_corpus_equals_pillows_rgb() -> None:
    root = os.environ.get("HEADRACE_TEST_DATA")
    if not root:
        pytest.skip("HEADRACE_TEST_DATA names no corpus")
    paths = sorted((Path(root) / "png").rglob("*.png"))
    different = [path.name for path in paths if not np.array_equal(ours(path), pillow_rgb(path))]
    assert len(paths) > 300
    assert different == []
