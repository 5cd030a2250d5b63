# SPDX-License-Identifier: Apache-2.0
"""A source made of columns: lists of paths, lists of strings, arrays.

>>> import headrace as hr
>>> hr.records(x=[[1.0, 2.0], [3.0, 4.0]], label=["cat", "dog"]).classes
['cat', 'dog']
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace import _core
from headrace.errors import ConfigError, declare
from headrace.plain_array import plain_array
from headrace.sources.column_list import ColumnList
from headrace.sources.media_paths import FILE_FIELDS, MEDIA_KINDS, is_media_path, is_stored_image
from headrace.sources.pictures import column_of_pillow, is_pillow
from headrace.sources.source import Source, listed_kinds

NOT_A_COLUMN = declare(
    "HR0156",
    "config",
    "not a column",
    "records() takes columns: lists of paths, lists of strings, and numeric arrays or tensors "
    "whose first axis indexes the records.",
)


def records(*unnamed: Any, kinds: Any = None, **fields: Any) -> Source:
    """A source made of columns: ``hr.records(image=sorted(glob("*.jpg")), label=labels)``.

    A column is a list of paths (pathlib's, strings that all have a suffix of image, audio or video
    files, any strings if the column is named ``image`` or ``mask``), of encoded files as bytes, an
    array or tensor whose first axis indexes the records, a list of Pillow images of the same size,
    or a list of strings; strings named ``label`` become classes. Arrays are not copied, unless
    their byte order is not the machine's. kinds: kinds of columns whose names do not determine
    them; see ``Source.with_kinds``. Strings are "text", "label", or paths of an "image", a "mask",
    "audio" or "video". Raises ConfigError if lengths differ, or if none of the paths is a file
    (HR1402).
    """
    if unnamed:
        raise NOT_A_COLUMN.error(
            f"a {type(unnamed[0]).__name__} without a name",
            hint="a keyword names each column: hr.records(image=paths, label=labels)",
        )
    said = listed_kinds(kinds)
    columns = ColumnList()
    for name, values in fields.items():
        add_column(columns, name, values, (kinds or {}).get(name, ""))
    return columns.source(kinds=said)


def add_column(
    columns: ColumnList, name: str, values: Any, said: str = "", root: str | None = None
) -> None:
    """Adds a column of paths, strings or numbers.

    said: its kind, if given. root: the base folder of a table's paths. At least one of the
    inspected paths must be a file (ConfigError HR1402).
    """
    if not hasattr(values, "__len__") or not hasattr(values, "__getitem__"):
        raise NOT_A_COLUMN.error(
            f"{name} is a {type(values).__name__}, which has no len() and [i]",
            hint=f"{name}=sorted(...) or list(...)",
        )
    if hasattr(values, "iloc"):  # a pandas column, whose [0] looks up a row name
        values = values.to_numpy()
    first = values[0] if len(values) else None
    if is_stored_image(first):  # Hugging Face's form, in a pandas table
        values = _stored(name, values)
        first, said = values[0], said or ("mask" if name == "mask" else "image")
    if isinstance(first, (bytes, bytearray)):
        _add_bytes(columns, name, values, said or FILE_FIELDS.get(name, "bytes"))
        return
    if is_pillow(first) and said in ("", *_core.picture_kinds()):
        try:
            images = column_of_pillow(name, values, said)
        except ConfigError:
            raise
        except ValueError as problem:
            raise NOT_A_COLUMN.error(f"{name}: {problem}") from None
        columns.add_array(name, images, kind=said or ("mask" if name == "mask" else "image"))
        return
    if not isinstance(first, (str, os.PathLike)):
        array = array_of(name, values)
        columns.add_array(name, array)
        return
    strings = _strings(name, values)
    if said in ("text", "label") or (not said and name == "label"):
        columns.add_texts(name, strings, said or None)
    elif said in MEDIA_KINDS or (not said and _are_files(name, first, strings)):
        if root is not None:
            suffix = _core.suffix_of_files(strings, root) or ""
            strings = [os.path.join(root, path) + suffix for path in strings]
        elif not _core.scheme_of(os.fspath(strings[0])):  # in a remote storage, not checked here
            guessed = not said and name not in FILE_FIELDS and not isinstance(first, os.PathLike)
            if _core.suffix_of_files(strings, required=not guessed, is_columns=True) is None:
                raise NOT_A_COLUMN.error(
                    f"{name} has texts that look like file names, but the file {first!r} does not "
                    "exist",
                    hint=f'kinds={{"{name}": "text"}}, or paths relative to the current folder',
                )
        columns.add_paths(name, strings)
    else:
        columns.add_texts(name, strings)


def _stored(name: str, values: Sequence[Any]) -> list[Any]:
    """The bytes of the values, or their paths if none has bytes."""
    for record, value in enumerate(values):
        if not is_stored_image(value):
            raise NOT_A_COLUMN.error(f"{name} of record {record} is {value!r:.60}, not an image")
    key = "path" if all(value["bytes"] is None for value in values) else "bytes"
    return [value[key] for value in values]


def _add_bytes(columns: ColumnList, name: str, values: Sequence[Any], kind: str) -> None:
    """Encoded files, or other bytes, concatenated in memory."""
    for record, value in enumerate(values):
        if not isinstance(value, (bytes, bytearray)):
            raise NOT_A_COLUMN.error(
                f"{name} of record {record} is {value!r:.60}, but record 0 has bytes"
            )
    data = np.frombuffer(b"".join(values), np.uint8)
    offsets = np.cumsum([0, *map(len, values)], dtype=np.int64)
    columns.add_bytes(name, kind, data, offsets)


def _strings(name: str, values: Sequence[Any]) -> list[str]:
    for record, value in enumerate(values):
        if not isinstance(value, (str, os.PathLike)):
            raise NOT_A_COLUMN.error(
                f"{name} of record {record} is {value!r}, but record 0 has {values[0]!r}",
                hint="each record needs a string; use an empty one for missing text",
            )
    return [str(os.fspath(value)) for value in values]


def _are_files(name: str, first: Any, strings: Sequence[str]) -> bool:
    """Whether strings are paths. Raises ConfigError if only some of them, including the first, look
    like paths.
    """
    if name in FILE_FIELDS or isinstance(first, os.PathLike):
        return True
    if not is_media_path(first):
        return False
    for record, text in enumerate(strings):
        if not is_media_path(text):
            raise NOT_A_COLUMN.error(
                f"{name} begins with {first!r}, which may be a file, but record {record} has "
                f"{text[:60]!r}",
                hint=f'kinds={{"{name}": "text"}} or "image"',
            )
    return True


def array_of(name: str, values: Any) -> np.ndarray[Any, Any]:
    """A column of numbers as a dense array. Raises ConfigError if it is not one."""
    try:
        array = np.ascontiguousarray(plain_array(values))
    except (TypeError, ValueError) as failure:
        text = str(failure)
        if "inhomogeneous" not in text:  # NumPy's word in errors for ragged input
            raise NOT_A_COLUMN.error(f"{name}: {text}") from None
        array = np.empty(0, object)
    if array.dtype.name not in _core.DType.__members__ or not array.ndim:
        times = array.dtype.kind in "Mm"
        raise NOT_A_COLUMN.error(
            f"{name} is {type(values).__name__} of {array.dtype}",
            hint='convert it with .astype("int64")'
            if times
            else f'records of unequal shape: hr.open([{{"{name}": value, ...}}, ...]), a list of '
            "dictionaries",
        )
    return array
