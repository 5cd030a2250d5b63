# SPDX-License-Identifier: Apache-2.0
"""Values of Python records, and their conversion for the engine.

>>> named_values(("a", 3))
{'data': 'a', 'label': 3}
>>> whole_number("age", 31.5)
Traceback (most recent call last):
    ...
TypeError: age is 31.5 (float), and record 0 had an integer
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from headrace import _core
from headrace.errors import declare
from headrace.plain_array import plain_array
from headrace.sources.media_paths import FILE_FIELDS, MEDIA_KINDS, is_stored_image, kind_by_suffix
from headrace.sources.pictures import PictureForm, can_be_picture, is_picture, is_pillow

UNKNOWN_VALUE = declare(
    "HR0614",
    "config",
    "unsupported record",
    "Record 0 of a Python object determines the fields. It may be a dictionary, a tuple or a "
    "single value; values may be integers, floats, strings, bytes, pathlib paths of images, audio "
    "and video, Pillow images, and numeric arrays or tensors. Have the object convert anything "
    "else to one of these.",
)


def is_plain(record: Any) -> bool:
    """Whether it is a tuple or list, whose values have no names."""
    return isinstance(record, (tuple, list)) and not hasattr(record, "_fields")


def named_values(record: Any, names: Sequence[str] = ()) -> dict[str, Any]:
    """A record's values by field name; names: for the values of a plain tuple."""
    if names and is_plain(record):
        return dict(zip(names, record, strict=True))
    if isinstance(record, Mapping):
        return {str(name): value for name, value in record.items()}
    if isinstance(record, tuple) and hasattr(record, "_fields"):
        return dict(zip(record._fields, record, strict=True))
    if not isinstance(record, (tuple, list)):
        return {_first_name(record): record}
    found = [_first_name(record[0])] if record else []
    for value in record[1:]:
        base = "label" if is_integer(value) else "image" if is_picture(value) else "data"
        taken = sum(name.rstrip("0123456789") == base for name in found)
        found.append(base if not taken else f"{base}{taken + 1}")
    return dict(zip(found, record, strict=True))


def _first_name(value: Any) -> str:
    if isinstance(value, os.PathLike):
        return kind_by_suffix(value) or "data"
    return "image" if is_picture(value) else "data"


def is_integer(value: Any) -> bool:
    """Whether it is a Python or NumPy integer, or a tensor with a single integer."""
    if isinstance(value, (bool, int, np.integer)):
        return True
    return getattr(value, "shape", None) == () and "int" in str(getattr(value, "dtype", ""))


def kind_of(name: str, value: Any, said: str = "") -> str:
    """label, integer, text, file, encoded, bytes, image or tensor: how its values are passed to the
    engine.
    """
    picture_kinds = _core.picture_kinds()
    pictured = said in picture_kinds or (not said and name in ("image", "mask"))
    if is_integer(value):
        return "label" if (said or name) == "label" else "integer"
    if isinstance(value, (str, os.PathLike)):
        return _kind_of_string(name, value, said)
    if is_stored_image(value):
        return "encoded"
    if isinstance(value, (bytes, bytearray, memoryview)):
        return "encoded" if pictured else "bytes"
    if is_pillow(value) and said in ("", *picture_kinds):
        return "picture"
    shape = tuple(getattr(value, "shape", ()))
    if pictured and can_be_picture(value, bool(said)):
        return "picture"
    plane = len(shape) == 2 or (len(shape) == 3 and shape[0] == 1)
    if plane and (said in picture_kinds or (not said and name == "mask")):
        return "picture"
    if isinstance(value, float) or hasattr(value, "__array__") or hasattr(value, "__dlpack__"):
        return "tensor"
    if isinstance(value, (list, tuple)) and _are_numbers(value):
        return "tensor"
    raise UNKNOWN_VALUE.error(
        f"{name} of record 0 is {type(value).__name__}",
        hint="return an array, a tensor, an image, an integer, text or bytes",
    )


def _kind_of_string(name: str, value: str | os.PathLike[str], said: str) -> str:
    if said in ("text", "label"):
        return "text"
    if said in MEDIA_KINDS or (not said and name in FILE_FIELDS):
        return "file"
    if isinstance(value, str):
        return "text"
    if kind_by_suffix(value):
        return "file"
    raise UNKNOWN_VALUE.error(
        f"{name} of record 0 is a path without the suffix of an image, audio or video file",
        hint=f'kinds={{"{name}": "image"}} reads it, str() of it is text',
    )


def _are_numbers(values: Sequence[Any]) -> bool:
    try:
        return plain_array(values).dtype.kind in "biuf"
    except (TypeError, ValueError):  # lists of unequal lengths
        return False


# --- Transfer -------------------------------------------------------------------------------------


def crossing(kind: str, name: str, value: Any, form: PictureForm) -> Any:
    """A value in the engine's form: int, str, bytes or a dense array. Raises TypeError or
    ValueError if it does not match the kind: nothing is truncated or converted.
    """
    if kind in ("label", "integer"):
        return whole_number(name, value)
    if kind == "text":
        if not isinstance(value, (str, os.PathLike)):
            raise TypeError(f"{name} is {_shown(value)}, but record 0 had text")
        return os.fspath(value)
    if kind == "encoded" and is_stored_image(value):
        kind, value = ("file", value["path"]) if value["bytes"] is None else (kind, value["bytes"])
    if kind == "file":
        with open(os.fspath(value), "rb") as file:
            return file.read()
    if kind in ("encoded", "bytes"):
        if not isinstance(value, (bytes, bytearray, memoryview)):
            raise TypeError(f"{name} is {_shown(value)}, but record 0 had bytes")
        return bytes(value)
    if kind == "picture":
        return form.pixels(value)
    return plain_array(value, order="C")


def whole_number(name: str, value: Any) -> int:
    """An integer or a bool; rejects values that int() would truncate or parse."""
    is_bool = getattr(value, "shape", None) == () and "bool" in str(getattr(value, "dtype", ""))
    if is_integer(value) or is_bool:
        return int(value)
    raise TypeError(f"{name} is {_shown(value)}, but record 0 had an integer")


def of_dtype(name: str, array: np.ndarray[Any, Any], dtype: str) -> np.ndarray[Any, Any]:
    """``array``, which must have this dtype, or be integers that this float dtype can hold."""
    if array.dtype.name == dtype:
        return array
    if np.dtype(dtype).kind == "f" and array.dtype.kind in "iu":
        floats = array.astype(dtype)
        if floats.tolist() == array.tolist():  # Python compares them exactly
            return floats
    raise TypeError(f"{name} is {array.dtype.name}, but record 0 had {dtype}")


def _shown(value: Any) -> str:
    text = repr(value)
    return f"{text if len(text) <= 40 else text[:37] + '...'} ({type(value).__name__})"
