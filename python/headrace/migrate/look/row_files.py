# SPDX-License-Identifier: Apache-2.0
"""Images that are stored in a table, as files.

Each image has a path of its own, ``table 0, row 17``, whose bytes are read from the table when a
library opens ``file_of(path)``. Forked processes know the same paths.
"""

from __future__ import annotations

import functools
import io
import itertools
import weakref
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

_numbers = itertools.count()
_tables: weakref.WeakValueDictionary[str, TableImages] = weakref.WeakValueDictionary()


class TableImages:
    """The image column of a ``datasets.Dataset``, not decoded. Its paths last as long as it."""

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset
        (self.column,) = dataset.column_names
        self._name = f"table {next(_numbers)}"
        _tables[self._name] = self

    def paths(self, rows: Iterable[int]) -> list[str]:
        return [f"{self._name}, row {int(row)}" for row in rows]

    def content(self, row: int) -> bytes:
        """The file in one row."""
        value = self.dataset[row][self.column]
        if value["bytes"] is not None:
            return bytes(value["bytes"])
        with open(value["path"], "rb") as file:
            return file.read()


class RowFile:
    """A file that is opened for reading. Its bytes are only read when they are needed."""

    def __init__(self, path: str) -> None:
        self.path = path

    @functools.cached_property
    def _file(self) -> io.BytesIO:
        found = _row_of(self.path)
        assert found is not None, "the table exists as long as its paths are used"
        table, row = found
        return io.BytesIO(table.content(row))

    def __getattr__(self, name: str) -> Any:  # read, seek, tell
        return getattr(self._file, name)


class TableRows(NamedTuple):
    table: TableImages
    numbers: np.ndarray[Any, np.dtype[np.int64]]


def _row_of(path: str) -> tuple[TableImages, int] | None:
    """The row with this path; None for the path of a file."""
    name, _, number = path.partition(", row ")
    table = _tables.get(name)
    return None if table is None else (table, int(number))


def rows_of(paths: Sequence[str]) -> TableRows | None:
    """The rows with these paths, which are all of one table; None for paths of files."""
    first = _row_of(paths[0])
    if first is None:
        return None
    numbers = (int(path.rpartition(" ")[2]) for path in paths)
    return TableRows(first[0], np.fromiter(numbers, np.int64, len(paths)))


def file_of(path: str) -> Any:
    """What libraries open: a RowFile, or the path of a file unchanged."""
    return path if _row_of(path) is None else RowFile(path)
