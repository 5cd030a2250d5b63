# SPDX-License-Identifier: Apache-2.0
"""Columns to be passed to the engine. They keep their arguments, so that the source made from them
can be recreated in another process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace import _core, arguments
from headrace.sources.recipe import Recipe, makes_sources
from headrace.sources.source import Source


class ColumnList:
    """Columns of equal length, by name."""

    def __init__(self) -> None:
        self._columns = _core.ColumnList()
        self._given: list[list[Any]] = []

    def add_array(
        self,
        name: str,
        array: Any,
        keep: Any = None,
        classes: Sequence[str] = (),
        kind: str | None = None,
    ) -> None:
        """A dense array; its first axis indexes the records. keep: an object to keep alive as long.
        classes: names of its labels. kind: default: from its name and dtype.
        """
        names = list(classes)
        self._columns.add_array(name, array, array if keep is None else keep, names, kind)
        self._given.append(["add_array", name, array, None, names, kind])

    def add_paths(self, name: str, paths: list[str]) -> None:
        """Adds a column of files."""
        self._columns.add_paths(name, paths)
        self._given.append(["add_paths", name, _joined(paths)])

    def add_texts(self, name: str, values: list[str], kind: str | None = None) -> None:
        """Adds strings. kind: text or label; default: from the name."""
        self._columns.add_texts(name, values, kind)
        self._given.append(["add_texts", name, _joined(values), kind])

    def add_bytes(self, name: str, kind: str, data: Any, offsets: Any) -> None:
        """Adds values of any length, concatenated in a uint8 array; offsets: where each value
        begins, and where the last one ends.
        """
        data = np.ascontiguousarray(data, np.uint8)  # the engine gets addresses
        offsets = np.ascontiguousarray(offsets, np.int64)
        if not len(offsets):
            raise arguments.BAD_VALUE.error(f"{name!r} needs one more offset than it has values")
        part = (data.ctypes.data, data.size, offsets.ctypes.data, True, len(offsets) - 1, 0, 0, -1)
        uint8 = _core.DType.__members__["uint8"]
        self._columns.add_blobs(name, kind, uint8, [part], (data, offsets), [])
        self._given.append(["add_bytes", name, kind, data, offsets])

    def source(
        self, title: str = "", kinds: Sequence[str] = (), *, evident_kinds: bool = True
    ) -> Source:
        """The source; the list is empty afterwards. title: its description. kinds: kinds of fields,
        as from listed_kinds(). evident_kinds: whether to derive the other kinds from names and
        dtypes.
        """
        told = _core.with_evident_kinds if evident_kinds else _core.with_kinds
        engine = told(self._columns.source(title), list(kinds))
        arguments = {
            "columns": self._given,
            "title": title,
            "kinds": list(kinds),
            "evident_kinds": evident_kinds,
        }
        return Source(engine, recipe=Recipe(source_of_columns, arguments))


@makes_sources
def source_of_columns(
    columns: Sequence[Sequence[Any]], title: str, kinds: Sequence[str], evident_kinds: bool
) -> Source:
    """Recreates the source; columns: the calls that added its columns."""
    out = ColumnList()
    for call, *given in columns:
        if call not in ("add_array", "add_paths", "add_texts", "add_bytes"):
            raise arguments.BAD_VALUE.error(f"{call!r} adds no column")
        getattr(out, call)(*map(_value, given))
    return out.source(title, kinds, evident_kinds=evident_kinds)


def _joined(strings: list[str]) -> Any:
    """Paths in one string, which takes less memory than a list while the source lives."""
    text = "\0".join(strings)
    is_clear = strings and text.count("\0") == len(strings) - 1
    return {"joined": text} if is_clear else list(strings)


def _value(argument: Any) -> Any:
    if isinstance(argument, dict):
        return argument["joined"].split("\0")
    return np.ascontiguousarray(argument) if isinstance(argument, np.ndarray) else argument
