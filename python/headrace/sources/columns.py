# SPDX-License-Identifier: Apache-2.0
"""A source made of columns: lists of paths, lists of strings, arrays.

>>> import headrace as hr
>>> hr.records(x=[[1.0, 2.0], [3.0, 4.0]], label=["cat", "dog"]).classes
['cat', 'dog']
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from headrace import _core
from headrace.errors import declare
from headrace.sources.source import Source, listed_kinds

_NOT_A_COLUMN = declare(
    "HR0156",
    "config",
    "not a column",
    "records() takes columns: lists of paths, lists of strings, and arrays or tensors of numbers "
    "whose first axis is the record.",
)
_FILES = ("image", "images", "mask", "masks", "audio", "video")


def records(*, kinds: Any = None, **fields: Any) -> Source:
    """A source made of columns: ``hr.records(image=sorted(glob("*.jpg")), label=labels)``.

    A column is a list of paths (pathlib's, strings that end as pictures do, any strings named
    ``image`` or ``mask``), an array or tensor whose first axis is the record, or a list of strings;
    strings named ``label`` become classes.
    Arrays are not copied. kinds: what columns mean, where their names do not say it; see
    ``Source.with_kinds``. ConfigError when lengths differ.
    """
    columns = _core.ColumnList()
    for name, values in fields.items():
        if not hasattr(values, "__len__") or not hasattr(values, "__getitem__"):
            raise _NOT_A_COLUMN.error(
                f"{name} is a {type(values).__name__}, which has no len() and [i]",
                hint=f"{name}=sorted(...) or list(...) of it",
            )
        first = values[0] if len(values) else None
        as_file = isinstance(first, str) and (name in _FILES or is_picture_path(first))
        if as_file or isinstance(first, os.PathLike):
            columns.add_paths(name, [os.fspath(path) for path in values])
        elif isinstance(first, str):
            columns.add_texts(name, [str(text) for text in values])
        else:
            array = array_of(name, values)
            columns.add_array(name, array, array)
    return Source(_core.with_evident_kinds(columns.source(), listed_kinds(kinds)))


def is_picture_path(path: str) -> bool:
    """Whether a path ends as those of pictures, sounds or videos do."""
    codecs = [
        *_core.codecs().values(),
        *_core.audio_codecs().values(),
        *_core.video_containers().values(),
    ]
    suffixes = {suffix for codec in codecs for suffix in codec["suffixes"]}
    return os.path.splitext(path)[1].lower() in suffixes


def array_of(name: str, values: Any) -> np.ndarray[Any, Any]:
    """A column of numbers as a dense array. ConfigError where it is none."""
    if hasattr(values, "detach"):
        values = values.detach().cpu().numpy()
    try:
        array = np.ascontiguousarray(values)
    except ValueError:
        array = np.empty(0, object)
    if array.dtype.name not in _core.DType.__members__ or not array.ndim:
        raise _NOT_A_COLUMN.error(
            f"{name} is {type(values).__name__} of {array.dtype}",
            hint="records of unequal shape: hr.open(a list of dictionaries)",
        )
    return array
