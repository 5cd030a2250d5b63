# SPDX-License-Identifier: Apache-2.0
"""Parquet files that do not fit into memory, row group by row group."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace import _core
from headrace.arrow_files.columns import (
    Column,
    Place,
    add_column,
    is_text,
    pyarrow,
    refused,
    unreadable,
)

_GROUPS_HELD = 4  # decoded row groups


class RowGroups:
    """The row groups of all files, one behind the other."""

    def __init__(self, opened: Sequence[Any], files: Sequence[str]) -> None:
        self.places = [(f, g) for f, file in enumerate(opened) for g in range(file.num_row_groups)]
        self.opened, self.files = opened, files
        self.starts = [0]
        for f, g in self.places:
            self.starts.append(self.starts[-1] + opened[f].metadata.row_group(g).num_rows)

    def __len__(self) -> int:
        return len(self.places)

    def bytes_of(self, columns: Sequence[str]) -> int:
        total = 0
        for f, g in self.places:
            group = self.opened[f].metadata.row_group(g)
            for i in range(group.num_columns):
                chunk = group.column(i)
                if chunk.path_in_schema.split(".")[0] in columns:
                    total += chunk.total_uncompressed_size
        return total

    def shape(self) -> list[tuple[int, int]]:
        """What tells one set of files from another."""
        groups = [self.opened[f].metadata.row_group(g) for f, g in self.places]
        return [(group.num_rows, group.total_byte_size) for group in groups]

    def read(self, group: int, columns: Sequence[str]) -> Any:
        f, g = self.places[group]
        try:
            return self.opened[f].read_row_group(g, columns=list(columns))
        except (pyarrow().ArrowException, OSError) as error:
            raise unreadable(self.files[f], error) from error


class OnDemand:
    """Reads records of row groups that are decoded when they are wanted; called on one thread.

    Each group becomes a source of its own in memory, so that records are what they would be there.
    """

    def __init__(self, groups: RowGroups, chosen: Sequence[Column], place: Place) -> None:
        self._groups, self._chosen, self._place = groups, chosen, place
        self._held: OrderedDict[int, _core.Source] = OrderedDict()
        for column in chosen:
            if column.name == "label" and is_text(
                groups.opened[0].schema_arrow.field(column.column).type
            ):
                raise refused(
                    column,
                    "holds names of classes, which take a look at all rows",
                    'raise memory=, or read it as text: fields=["class_name=' + column.column,
                )
        self.fields = list(self._group(0).schema)
        self._starts = np.array(groups.starts)

    def read(self, indices: Sequence[int], wanted: Sequence[bool]) -> list[Any]:
        out: list[Any] = [None] * len(indices)
        groups = np.searchsorted(self._starts, indices, side="right") - 1
        for at in np.argsort(groups, kind="stable").tolist():
            group = int(groups[at])
            try:
                record = self._group(group).read(int(indices[at]) - self._groups.starts[group])
            except Exception as error:
                out[at] = str(error)
                continue
            out[at] = [
                _crossing(record[field.name]) if take else None
                for field, take in zip(self.fields, wanted, strict=True)
            ]
        return out

    def key(self, index: int) -> str:
        return str(index)

    def integer_column(self, name: str) -> list[int]:
        columns = [column for column in self._chosen if column.name == name]
        if not columns or not any(f.name == name and f.dtype == "int64" for f in self.fields):
            return []
        values: list[int] = []
        for group in range(len(self._groups)):
            table = self._groups.read(group, [columns[0].column])
            values += table.column(0).to_pylist()
        return [-1 if value is None else value for value in values]  # a bad record, as elsewhere

    def _group(self, group: int) -> _core.Source:
        if group in self._held:
            self._held.move_to_end(group)
            return self._held[group]
        while len(self._held) >= _GROUPS_HELD:
            self._held.popitem(last=False)
        columns = _core.ColumnList()
        table = self._groups.read(group, [column.column for column in self._chosen])
        for column in self._chosen:
            add_column(columns, column, table.column(column.column), self._place)
        self._held[group] = columns.source("")
        return self._held[group]


def _crossing(value: Any) -> Any:
    return np.asarray(value) if isinstance(value, _core.Array) else value
