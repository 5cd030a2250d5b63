# SPDX-License-Identifier: Apache-2.0
"""Images in the tables: the source's own files where LeRobot reads the same pixels, else PNG."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace import _core
from headrace.drawing.png import png_from_pixels
from headrace.errors import Error
from headrace.sources import Source

_PNG = b"\x89PNG\r\n\x1a\n"


def image_bytes(source: Source, record: int, field: Any, pixels: np.ndarray[Any, Any]) -> bytes:
    """An encoded image of these pixels, (3, H, W) uint8, which were read from the field in the
    record. Pillow, with which LeRobot reads it, opens it as RGB.
    """
    if field.encoded and str(field.kind) == "image":
        stored = source.engine.read(record, field.name)[field.name]
        if isinstance(stored, bytes) and opens_as_rgb(stored):
            return stored
    return png_from_pixels(pixels)


def reduction(source: Source, field: Any) -> str:
    """What is lost when the field's images become 8-bit RGB, judging by the first one; empty if
    nothing is. If that cannot be decoded, the conversion itself reports it.
    """
    if not field.encoded or str(field.kind) != "image" or len(source) == 0:
        return ""
    try:
        data = source.engine.read(0, field.name)[field.name]
        image, _ = _core.decode(data, "stored", None, None, "bilinear", False, False, False)
    except Error:
        return ""
    stored = np.asarray(image)
    if stored.dtype != np.uint8:
        return f"{field.name}: {stored.dtype} becomes uint8"
    return f"{field.name}: transparency is dropped" if len(stored) in (2, 4) else ""


def opens_as_rgb(data: bytes) -> bool:
    """Whether it is a JPEG of three components without a rotation, or a PNG of 8-bit RGB: for other
    files (gray, palettes, 16 bits) LeRobot has images of a different shape or with other values."""
    if data.startswith(_PNG):
        return data[24:26] == b"\x08\x02" and b"eXIf" not in data and b"tRNS" not in data
    if not data.startswith(b"\xff\xd8"):
        return False
    at = 2
    while at + 9 < len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if marker in (0xE1, 0xEE):  # Exif may rotate, Adobe's segment names other colors
            return False
        if 0xC0 <= marker <= 0xC3:
            return data[at + 9] == 3
        at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    return False
