# SPDX-License-Identifier: Apache-2.0
"""Makes the image of a table's entry, with Pillow, OpenCV or torchvision."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.migrate.look.marks import Op
from headrace.migrate.look.row_files import file_of


def opened(path: str, ops: Sequence[Op]) -> Any:
    """The image of a file up to its first transform."""
    first = ops[0] if ops else ("",)
    if first[0] == "imread":
        value = importlib.import_module("cv2").imread(path)
    elif first[0] == "decode":
        io = importlib.import_module("torchvision.io")
        upright = {"apply_exif_orientation": True} if ("upright",) in ops else {}
        return io.decode_image(io.read_file(path), io.ImageReadMode[first[1]], **upright)
    else:
        value = importlib.import_module("PIL.Image").open(file_of(path))
    for op in ops:
        if op[0] == "convert":
            value = value.convert(op[1])
        elif op[0] == "upright":
            value = importlib.import_module("PIL.ImageOps").exif_transpose(value)
        elif op[0] == "array":
            value = np.array(value)
        elif op[0] == "reversed":
            value = np.ascontiguousarray(value[..., ::-1])
        elif op[0] == "call":
            break
    return value


def alike(first: Any, second: Any) -> bool:
    """Whether two images have the same mode, and are equal bit for bit."""
    if hasattr(first, "getbands"):
        if not hasattr(second, "getbands") or (first.mode, first.size) != (
            second.mode,
            second.size,
        ):
            return False
        return bool(first.tobytes() == second.tobytes())
    if type(first) is not type(second) or first.dtype != second.dtype:
        return False
    return first.shape == second.shape and bool((first == second).all())
