# SPDX-License-Identifier: Apache-2.0
"""Parquet files that do not fit into memory, row group by row group."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from headrace import _core
from headrace.sources.arrow_files.columns import (
    LEAST_UNPACKED,
    Column,
    Place,
    add_column,
    is_text,
    pyarrow,
    reading,
    refused,
    unpacked_bytes,
    unpacks_too_far,
)
from headrace.sources.arrow_files.parquet_files import ParquetFiles

_GROUPS_HELD = 4  # decoded row groups
_USUAL_MEMORY = 1 << 30
_PLACES, _PEEKED = 32, 256  # groups that marks() looks into, and bytes of each column
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8}


class RowGroups:
    """The row groups of all files, one after the other.

    In Parquet, a few bytes can encode the value of every row in a group, and pages of zeros take
    almost no space. So no group may take more than 256 MiB, or 64 times its size in the file,
    unless ``memory`` allows more.
    """

    def __init__(self, files: ParquetFiles, memory: int | None) -> None:
        self._memory = _USUAL_MEMORY if memory is None else memory
        self._least = max(memory or 0, LEAST_UNPACKED)
        self.files = files
        self.places = [
            (f, g) for f, of in enumerate(files.footers) for g in range(of.num_row_groups)
        ]
        self.starts = [0]
        for f, g in self.places:
            self.starts.append(self.starts[-1] + files.footers[f].row_group(g).num_rows)

    def __len__(self) -> int:
        return len(self.places)

    def schema(self) -> Any:
        return self.files.schemas[0]

    def fit_into_memory(self, columns: Sequence[str]) -> bool:
        """Whether the columns may be decoded while the source is opened."""
        chunks = [chunk for i in range(len(self)) for chunk in self._chunks(i, columns)]
        size = sum(map(_decoded_bytes, chunks))
        share = max(self._least, 64 * sum(chunk.total_compressed_size for chunk in chunks))
        return bool(size <= min(self._memory, share))

    def _read_by_dictionary(
        self, f: int, g: int, columns: Sequence[str], strings: list[str], most: int
    ) -> Any:
        """Reads each value once, until the size of a copy for every row is known."""
        pq = pyarrow("pyarrow.parquet")
        path = self.files.paths[f]
        with pq.ParquetFile(path, read_dictionary=strings) as file:
            table = file.read_row_group(g, columns=list(columns))
        schema = self.files.schemas[f]
        for i, name in enumerate(table.column_names):
            column, kind = table.column(i), schema.field(name).type
            if column.type != kind:
                if unpacked_bytes(column) > most:
                    raise unpacks_too_far(self.files.paths[f], most)
                table = table.set_column(i, name, column.cast(kind))
        return table

    def _read_in_pieces(
        self, f: int, g: int, columns: Sequence[str], longest: int, most: int
    ) -> Any:
        """Reads so few rows at a time that a value shared by all of them is not too large."""
        at_once = min(max(most // 8 // longest, 1), 1 << 16)
        batches, size = [], 0
        for batch in self.files.open(f).iter_batches(at_once, [g], list(columns)):
            size += batch.nbytes
            if size > most:
                raise unpacks_too_far(self.files.paths[f], most)
            batches.append(batch)
        return pyarrow().Table.from_batches(batches)

    def _chunks(self, group: int, columns: Sequence[str]) -> Iterator[Any]:
        f, g = self.places[group]
        found = self.files.footers[f].row_group(g)
        paths = tuple(f"{name}." for name in columns)
        for i in range(found.num_columns):
            chunk = found.column(i)
            if f"{chunk.path_in_schema}.".startswith(paths):  # a column's name may have dots, too
                yield chunk

    def marks(self, columns: Sequence[str]) -> list[Any]:
        """Identifies a set of files: sizes of all groups, bytes of some."""
        out: list[Any] = []
        for f, g in self.places:
            group = self.files.footers[f].row_group(g)
            out.append((group.num_rows, group.total_byte_size))
        for group in range(0, len(self), max(len(self) // _PLACES, 1)):
            path = self.files.paths[self.places[group][0]]
            with reading(path), open(path, "rb") as file:
                for chunk in self._chunks(group, columns):
                    begin = _begin_of(chunk)
                    for at in (begin, begin + max(chunk.total_compressed_size - _PEEKED, 0)):
                        file.seek(at)
                        out.append(file.read(_PEEKED))
        return out

    def table(self, columns: Sequence[str]) -> Any:
        """A ``pyarrow.Table`` of all groups, with these columns in this order."""
        parts = [self.read(group, columns) for group in range(len(self))]
        tables = parts or [self.schema().empty_table()]
        return pyarrow().concat_tables([table.select(columns) for table in tables])

    def read(self, group: int, columns: Sequence[str]) -> Any:
        f, g = self.places[group]
        path = self.files.paths[f]
        chunks = list(self._chunks(group, columns))
        numbers = sum(each.num_values * _WIDTHS.get(each.physical_type, 0) for each in chunks)
        repeated = {each.path_in_schema: _longest_repeated(each) for each in chunks}
        longest = sum(repeated.values())
        rows = self.starts[group + 1] - self.starts[group]
        most = max(self._least, 64 * sum(each.total_compressed_size for each in chunks))
        large = sum(each.total_uncompressed_size for each in chunks)
        if max(numbers, large) > most:
            raise unpacks_too_far(path, most)
        with reading(path):
            if numbers + rows * longest <= most:
                return self.files.open(f).read_row_group(g, columns=list(columns))
            strings = [path for path, size in repeated.items() if size]
            if large > LEAST_UNPACKED or any("." in path for path in strings):
                return self._read_in_pieces(f, g, columns, longest, most)
            return self._read_by_dictionary(f, g, columns, strings, most)


def _decoded_bytes(chunk: Any) -> int:
    """Upper bound of a column's size: for strings only their size in the file is known."""
    numbers = chunk.num_values * _WIDTHS.get(chunk.physical_type, 0)
    return max(int(chunk.total_uncompressed_size), int(numbers))


def _begin_of(chunk: Any) -> int:
    dictionary = chunk.dictionary_page_offset
    return int(chunk.data_page_offset if dictionary is None else dictionary)


def _longest_repeated(chunk: Any) -> int:
    """The maximum size of a value that many rows can share: it is stored in the dictionary page."""
    if not chunk.has_dictionary_page or chunk.physical_type in _WIDTHS:
        return 0
    page = chunk.total_uncompressed_size
    if chunk.dictionary_page_offset is not None:
        packed = chunk.data_page_offset - chunk.dictionary_page_offset
        times = {"UNCOMPRESSED": 1, "SNAPPY": 22}.get(chunk.compression, 1 << 20)
        page = min(page, max(packed, 0) * times)
    return int(page)


class OnDemand:
    """Reads records of row groups that are decoded on demand; called on one thread. Each group
    becomes an in-memory source, so that its records are the same as there.
    """

    def __init__(self, groups: RowGroups, chosen: Sequence[Column], place: Place) -> None:
        self._groups, self._chosen, self._place = groups, chosen, place
        self._held: OrderedDict[int, _core.Source] = OrderedDict()
        for column in chosen:
            if column.name == "label" and is_text(groups.schema().field(column.column).type):
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
