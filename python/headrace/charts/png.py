# SPDX-License-Identifier: Apache-2.0
"""Pixels to PNG bytes, and several pictures to one."""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Sequence

import numpy as np


def png_from_pixels(pixels: np.ndarray, level: int = 6) -> bytes:
    """The PNG file of a picture.

    `pixels` is uint8 of shape (C, H, W) with C = 1 (grey), 3 (RGB) or 4 (RGBA).
    Raises ValueError for anything else. Source: the PNG specification, third edition.

    >>> png_from_pixels(np.zeros((3, 2, 2), np.uint8))[:8]
    b'\\x89PNG\\r\\n\\x1a\\n'
    """
    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[0] not in (1, 3, 4):
        raise ValueError(f"pixels must be uint8 (1|3|4, H, W) (got {pixels.dtype} {pixels.shape})")
    channels, height, width = pixels.shape
    color_type = {1: 0, 3: 2, 4: 6}[channels]
    rows = np.zeros((height, 1 + width * channels), np.uint8)  # filter byte 0: None
    rows[:, 1:] = pixels.transpose(1, 2, 0).reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, color_type, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + _chunk(b"IHDR", header)
        + _chunk(b"IDAT", zlib.compress(rows.tobytes(), level))
        + _chunk(b"IEND", b"")
    )


def picture_grid(
    pictures: Sequence[np.ndarray], columns: int | None = None, gap: int = 4
) -> np.ndarray:
    """Pictures of equal shape (C, H, W) in one, row by row, on white."""
    if not pictures:
        raise ValueError("picture_grid needs at least one picture")
    columns = columns or math.ceil(math.sqrt(len(pictures)))
    rows = math.ceil(len(pictures) / columns)
    channels, height, width = pictures[0].shape
    shape = (channels, rows * (height + gap) - gap, columns * (width + gap) - gap)
    grid = np.full(shape, 255, np.uint8)
    for i, picture in enumerate(pictures):
        y, x = (i // columns) * (height + gap), (i % columns) * (width + gap)
        grid[:, y : y + height, x : x + width] = picture
    return grid


def _chunk(kind: bytes, data: bytes) -> bytes:
    checksum = zlib.crc32(kind + data)
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", checksum)
