# SPDX-License-Identifier: Apache-2.0
"""The row groups of Parquet files, as tables."""

from __future__ import annotations

import bisect
import itertools
import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from headrace.sources.arrow_files.columns import (
    LEAST_UNPACKED,
    TABLE,
    pyarrow,
    reading,
    unpacked_bytes,
    unpacks_too_far,
)
from headrace.sources.arrow_files.parquet_files import ParquetFiles
from headrace.sources.arrow_files.ranges import Range, merged

Known = Sequence[tuple[int, Any]]  # offsets in a file and the bytes there

_USUAL_MEMORY = 1 << 30
_READ_AT_ONCE = 64 << 20  # bytes of groups that are requested together
_MIXED = 48  # groups: shuffle="blocks" draws from 32, and requests the next ones
_PLACES, _PEEKED = 32, 256  # number of groups that marks() inspects, and bytes of each column
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8}


class RowGroups:
    """The row groups of all files, one after the other.

    In Parquet, a few bytes can encode the value of every row in a group, and pages of zeros take
    almost no space. So no group may take more than 256 MiB, or 64 times its size in the file,
    unless ``memory`` allows more.
    """

    def __init__(self, files: ParquetFiles, memory: int | None) -> None:
        self._memory = memory
        self._least = max(memory or 0, LEAST_UNPACKED)
        self.files = files
        self.places = [
            (f, g) for f, of in enumerate(files.footers) for g in range(of.num_row_groups)
        ]
        self.starts = [0]
        for path, footer in zip(files.paths, files.footers, strict=True):
            rows = [footer.row_group(g).num_rows for g in range(footer.num_row_groups)]
            if min(rows, default=0) < 0 or sum(rows) != footer.num_rows:
                raise TABLE.error(
                    f"the footer of {path} declares {footer.num_rows:,} rows, but "
                    f"{sum(rows):,} in its row groups",
                    hint="copy the file again, or write it again",
                )
            for count in rows:
                self.starts.append(self.starts[-1] + count)

    def __len__(self) -> int:
        return len(self.places)

    def rows(self) -> list[int]:
        """The number of rows of each group."""
        return [end - begin for begin, end in itertools.pairwise(self.starts)]

    def schema(self) -> Any:
        return self.files.schemas[0]

    def fit_into_memory(self, columns: Sequence[str]) -> bool:
        """Whether the columns may be decoded while the source is opened."""
        chunks = [chunk for i in range(len(self)) for chunk in self._chunks(i, columns)]
        size = sum(map(_decoded_bytes, chunks))
        share = max(self._least, 64 * sum(chunk.total_compressed_size for chunk in chunks))
        return bool(size <= min(_USUAL_MEMORY if self._memory is None else self._memory, share))

    def _read_by_dictionary(
        self, f: int, g: int, columns: Sequence[str], strings: list[str], most: int, known: Known
    ) -> Any:
        """Reads each value once, until the size of a copy for every row is known."""
        file = self.files.open(f, known, read_dictionary=strings)
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
        self, f: int, g: int, columns: Sequence[str], longest: int, most: int, known: Known
    ) -> Any:
        """Reads few rows at a time, so that a value shared by all of them is not too large."""
        at_once = min(max(most // 8 // longest, 1), 1 << 16)
        batches, size = [], 0
        for batch in self.files.open(f, known).iter_batches(at_once, [g], list(columns)):
            size += batch.nbytes
            if size > most:
                raise unpacks_too_far(self.files.paths[f], most)
            batches.append(batch)
        return pyarrow().Table.from_batches(batches)

    def ranges(self, group: int, columns: Sequence[str]) -> list[Range]:
        """The positions of a group's columns."""
        f = self.places[group][0]
        size = self.files.files.size(f)
        out = []
        for chunk in self._chunks(group, columns):
            begin, count = _begin_of(chunk), chunk.total_compressed_size
            if not 0 <= begin <= begin + count <= size:
                raise TABLE.error(
                    f"the footer of {self.files.paths[f]} refers to bytes {begin} to "
                    f"{begin + count}, but the file has {size}",
                    hint="copy the file again, or write it again",
                )
            out.append((f, begin, count))
        return merged(out) or [(f, 0, 0)]

    def _chunks(self, group: int, columns: Sequence[str]) -> Iterator[Any]:
        f, g = self.places[group]
        found = self.files.footers[f].row_group(g)
        paths = tuple(f"{name}." for name in columns)
        for i in range(found.num_columns):
            chunk = found.column(i)
            if f"{chunk.path_in_schema}.".startswith(paths):  # a column's name may also have dots
                yield chunk

    def marks(self, columns: Sequence[str]) -> list[Any]:
        """Identifies a set of files: sizes of all groups, bytes of some."""
        out: list[Any] = []
        for f, g in self.places:
            group = self.files.footers[f].row_group(g)
            out.append((group.num_rows, group.total_byte_size))
        peeks = []
        for group in range(0, len(self), max(len(self) // _PLACES, 1)):
            f = self.places[group][0]
            size = self.files.files.size(f)
            for chunk in self._chunks(group, columns):
                begin = _begin_of(chunk)
                for at in (begin, begin + max(chunk.total_compressed_size - _PEEKED, 0)):
                    at = min(max(at, 0), size)
                    peeks.append((f, at, min(_PEEKED, size - at)))
        asked = merged(peeks)
        read = [memoryview(each) for each in self.files.read(asked)]
        for f, at, count in peeks:
            i = bisect.bisect_right(asked, (f, at, sys.maxsize)) - 1
            begin = at - asked[i][1]
            out.append(bytes(read[i][begin : begin + count]))
        return out

    def table(self, columns: Sequence[str]) -> Any:
        """A ``pyarrow.Table`` of all groups, with these columns in this order."""
        parts = list(self.each(columns)) or [self.schema().empty_table()]
        return pyarrow().concat_tables([table.select(columns) for table in parts])

    def each(self, columns: Sequence[str]) -> Iterator[Any]:
        """The table of each group; the bytes of several are requested at once."""
        ranges = [self.ranges(group, columns) for group in range(len(self))]
        first = 0
        while first < len(self):
            last, size = first, 0
            while last < len(self) and (last == first or size < _READ_AT_ONCE):
                size += sum(count for _, _, count in ranges[last])
                last += 1
            asked = [one for group in range(first, last) for one in ranges[group]]
            read = iter(self.files.read(asked))
            for group in range(first, last):
                yield self.read(group, columns, [next(read) for _ in ranges[group]])
            first = last

    def read(self, group: int, columns: Sequence[str], parts: Sequence[Any]) -> Any:
        """A group's table; parts: the bytes of its :meth:`ranges`."""
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
        begins = [begin for _, begin, _ in self.ranges(group, columns)]
        known = list(zip(begins, parts, strict=True))
        with reading(path):
            if numbers + rows * longest <= most:
                table = self.files.open(f, known).read_row_group(g, columns=list(columns))
            else:
                strings = [path for path, size in repeated.items() if size]
                if large > LEAST_UNPACKED or any("." in path for path in strings):
                    table = self._read_in_pieces(f, g, columns, longest, most, known)
                else:
                    table = self._read_by_dictionary(f, g, columns, strings, most, known)
        if table.nbytes > most:  # the footer's sizes are too small
            raise unpacks_too_far(path, most)
        if table.num_rows != rows:
            raise TABLE.error(
                f"row group {g} of {path} has {table.num_rows:,} rows, but its footer declares "
                f"{rows:,}",
                hint="copy the file again, or write it again",
            )
        return table

    def memory(self, columns: Sequence[str]) -> int:
        """Bytes for groups that are decoded on demand."""
        if self._memory is not None:
            return self._memory
        largest = max((self.decoded_bytes(group, columns) for group in range(len(self))), default=0)
        share = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 4
        return max(_USUAL_MEMORY, min(_MIXED * largest, share))

    def decoded_bytes(self, group: int, columns: Sequence[str]) -> int:
        return sum(map(_decoded_bytes, self._chunks(group, columns)))


def _decoded_bytes(chunk: Any) -> int:
    """Upper bound of a column's size: for strings only their size in the file is known."""
    numbers = chunk.num_values * _WIDTHS.get(chunk.physical_type, 0)
    return max(int(chunk.total_uncompressed_size), int(numbers))


def _begin_of(chunk: Any) -> int:
    dictionary, data = chunk.dictionary_page_offset, int(chunk.data_page_offset)
    return data if dictionary is None or not 0 < dictionary < data else int(dictionary)


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
