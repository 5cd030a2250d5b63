# SPDX-License-Identifier: Apache-2.0
"""Decodes one image, without a source or a loader: for your own Dataset, a notebook, a service."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace import _core, arguments
from headrace.errors import warn

MODES = ("RGB", "L", "RGBA", "stored")
LAYOUTS = ("HWC", "CHW")
INTERPOLATIONS = ("nearest", "bilinear", "bicubic", "box", "hamming", "lanczos")
_SIDEWAYS = (
    "an Exif tag says that this image is rotated or mirrored; it is delivered as stored "
    "(exif_orientation=True rotates it upright, exif_orientation=False accepts this)"
)


def decode(
    encoded: Any,
    *,
    mode: str = "RGB",
    window: Sequence[int] | None = None,
    size: Sequence[int] | None = None,
    interpolation: str = "bilinear",
    layout: str = "HWC",
    exif_orientation: bool | None = None,
    strict: bool = False,
) -> np.ndarray[Any, Any]:
    """Decodes an image file's bytes: JPEG, PNG, WebP, TIFF and the other formats of a loader.

    Only ``window`` is decoded: in a JPEG, the rows below it are never read, and the parts next to
    it only as far as the format requires. Any number of threads may decode at once; the GIL is
    released.

    Args:
        encoded: ``bytes`` or any other contiguous buffer.
        mode: ``"RGB"``, ``"L"`` or ``"RGBA"``, converted as with Pillow's ``convert()``;
            ``"stored"`` keeps the file's channels and its depth: uint8, uint16 or float32.
        window: ``(top, left, height, width)`` in pixels, inside the image; None: the whole image.
        size: ``(height, width)`` to which the window is resized, as Pillow does, or None.
        interpolation: of ``size``: ``"nearest"``, ``"bilinear"``, ``"bicubic"``, ``"box"``,
            ``"hamming"`` or ``"lanczos"``.
        layout: ``"HWC"`` for NumPy, Pillow and OpenCV (channels are RGB), ``"CHW"`` for PyTorch.
        exif_orientation: whether to rotate by the Exif tag, before ``window``. None: no rotation,
            but a warning if there is such a tag.
        strict: whether damage that decoders usually conceal is an error.

    Returns:
        An array of shape (H, W, C) or (C, H, W); it belongs to the caller.

    Raises:
        hr.DataError: bytes that cannot be decoded, or a window outside the image. hr.ConfigError:
        an invalid argument.

    >>> encoded = open("examples/images/cat.jpg", "rb").read()
    >>> decode(encoded, window=(10, 20, 64, 96), size=(32, 48)).shape
    (32, 48, 3)
    """
    if isinstance(encoded, str):
        raise TypeError("a path, where a file's bytes were expected: hr.imread(path) opens it")
    return _decoded(encoded, mode, window, size, interpolation, layout, exif_orientation, strict)


def imread(
    path: str | os.PathLike[str],
    *,
    mode: str = "RGB",
    window: Sequence[int] | None = None,
    size: Sequence[int] | None = None,
    interpolation: str = "bilinear",
    layout: str = "HWC",
    exif_orientation: bool | None = None,
    strict: bool = False,
) -> np.ndarray[Any, Any]:
    """Reads and decodes an image file; arguments as for :func:`headrace.decode`.

    Unlike ``cv2.imread``, it returns RGB instead of BGR, and raises an exception instead of
    returning None.

    Raises:
        hr.StorageError: a file that cannot be read.

    >>> imread("examples/images/cat.jpg", mode="L").ndim
    3
    """
    name = os.fsdecode(path)
    return _decoded(name, mode, window, size, interpolation, layout, exif_orientation, strict)


def _decoded(
    encoded: Any,
    mode: str,
    window: Sequence[int] | None,
    size: Sequence[int] | None,
    interpolation: str,
    layout: str,
    exif_orientation: bool | None,
    strict: bool,
) -> np.ndarray[Any, Any]:
    arguments.one_of("mode", mode, MODES)
    arguments.one_of("layout", layout, LAYOUTS)
    arguments.one_of("interpolation", interpolation, INTERPOLATIONS)
    array, orientation = _core.decode(
        encoded,
        mode,
        None if window is None else _integers("window", window, 4, 0),
        None if size is None else _integers("size", size, 2, 1),
        interpolation,
        layout == "HWC",
        exif_orientation is not None and arguments.switch("exif_orientation", exif_orientation),
        arguments.switch("strict", strict),
    )
    if exif_orientation is None and orientation != 1:
        warn(_SIDEWAYS)
    return np.asarray(array)


def _integers(name: str, values: Sequence[int], count: int, minimum: int) -> Any:
    """A tuple of ``count`` integers."""
    numbers = tuple(values)
    if len(numbers) != count:
        raise arguments.BAD_VALUE.error(f"{name} must be {count} integers (got {values!r})")
    return tuple(arguments.integer(name, number, minimum, 1 << 30) for number in numbers)
