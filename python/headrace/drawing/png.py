# SPDX-License-Identifier: Apache-2.0
"""Encodes pixels as PNG, and arranges several images in one."""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Sequence

import numpy as np

_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def png_from_pixels(pixels: np.ndarray, level: int = 6) -> bytes:
    """The PNG file of an image.

    `pixels` is uint8 of shape (C, H, W) with C = 1 (gray), 3 (RGB) or 4 (RGBA).
    Raises ValueError for anything else. Source: the PNG specification, third edition.

    >>> png_from_pixels(np.zeros((3, 2, 2), np.uint8))[:8]
    b'\\x89PNG\\r\\n\\x1a\\n'
    """
    header, rows = _header(pixels), _rows(pixels, level)
    return b"".join([_SIGNATURE, header, _chunk(b"IDAT", rows), _chunk(b"IEND", b"")])


def animated_png(frames: Sequence[np.ndarray], seconds: Sequence[float], level: int = 6) -> bytes:
    """The APNG file of images of one shape, each shown for its duration, looping.

    `frames` are as png_from_pixels() takes them. Source: the PNG specification, third edition.

    >>> animated_png([np.zeros((3, 2, 2), np.uint8)] * 3, [0.1] * 3).count(b"fcTL")
    3
    """
    if not frames or any(frame.shape != frames[0].shape for frame in frames):
        raise ValueError("frames must not be empty, and must all have the same shape")
    parts = [_SIGNATURE, _header(frames[0]), _chunk(b"acTL", struct.pack(">II", len(frames), 0))]
    _, height, width = frames[0].shape
    sequence = 0
    for number, (frame, shown) in enumerate(zip(frames, seconds, strict=True)):
        delay = max(1, min(round(shown * 1000), 65535))
        control = struct.pack(">IIIIIHHBB", sequence, width, height, 0, 0, delay, 1000, 0, 0)
        parts.append(_chunk(b"fcTL", control))
        sequence += 1
        rows = _rows(frame, level)
        if number == 0:
            parts.append(_chunk(b"IDAT", rows))
        else:
            parts.append(_chunk(b"fdAT", struct.pack(">I", sequence) + rows))
            sequence += 1
    return b"".join([*parts, _chunk(b"IEND", b"")])


def picture_grid(
    pictures: Sequence[np.ndarray], columns: int | None = None, gap: int = 4
) -> np.ndarray:
    """Images of equal shape (C, H, W) as one grid, row by row, on white."""
    if not pictures:
        raise ValueError("picture_grid needs at least one image")
    columns = columns or math.ceil(math.sqrt(len(pictures)))
    rows = math.ceil(len(pictures) / columns)
    channels, height, width = pictures[0].shape
    shape = (channels, rows * (height + gap) - gap, columns * (width + gap) - gap)
    grid = np.full(shape, 255, np.uint8)
    for i, picture in enumerate(pictures):
        y, x = (i // columns) * (height + gap), (i % columns) * (width + gap)
        grid[:, y : y + height, x : x + width] = picture
    return grid


def _header(pixels: np.ndarray) -> bytes:
    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[0] not in (1, 3, 4):
        raise ValueError(f"pixels must be uint8 (1|3|4, H, W) (got {pixels.dtype} {pixels.shape})")
    channels, height, width = pixels.shape
    color_type = {1: 0, 3: 2, 4: 6}[channels]
    return _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, color_type, 0, 0, 0))


def _rows(pixels: np.ndarray, level: int) -> bytes:
    """Compresses the rows, each with filter type 0 (None)."""
    channels, height, width = pixels.shape
    rows = np.zeros((height, 1 + width * channels), np.uint8)
    rows[:, 1:] = pixels.transpose(1, 2, 0).reshape(height, -1)
    return zlib.compress(rows.tobytes(), level)


def _chunk(kind: bytes, data: bytes) -> bytes:
    checksum = zlib.crc32(kind + data)
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", checksum)
