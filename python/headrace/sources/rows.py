# SPDX-License-Identifier: Apache-2.0
"""A source's records as dictionaries that read an image only on access.

>>> import headrace as hr
>>> src = hr.records(x=[1.5, 2.5], label=["cat", "dog"])
>>> [dict(row) for row in Rows(src)]
[{'x': 1.5, 'label': 1}, {'x': 2.5, 'label': 0}]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from headrace.sources.source import Source


class Rows(Sequence["Row"]):
    """Random access to records. Fields other than files are read for all records at once, on first
    access; images, audio and video record by record.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.names = [field.name for field in source.schema]
        self._files = {field.name for field in source.schema if field.encoded}
        self._columns: dict[str, Any] = {}

    def __len__(self) -> int:
        return len(self.source)

    def __getitem__(self, index: Any) -> Row:  # type: ignore[override]
        return Row(self, int(index))

    def __iter__(self) -> Iterator[Row]:
        return (Row(self, index) for index in range(len(self)))

    def value(self, index: int, name: str) -> Any:
        """A field of a record; numbers as Python numbers."""
        if name in self._files:
            return self.source[index][name]
        if name not in self._columns:
            self._columns[name] = self.source.column(name)
        value = self._columns[name][index]
        return value.item() if isinstance(value, np.generic) else value


class Row(Mapping[str, Any]):
    """A record: its fields by name, each read on access."""

    def __init__(self, rows: Rows, index: int) -> None:
        self._rows = rows
        self._index = index

    def __getitem__(self, name: str) -> Any:
        if name not in self._rows.names:
            raise KeyError(f"{name!r} is not a field: {', '.join(self._rows.names)}")
        return self._rows.value(self._index, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows.names)

    def __len__(self) -> int:
        return len(self._rows.names)
