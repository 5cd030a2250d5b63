# SPDX-License-Identifier: Apache-2.0
"""The Parquet files of one source: the footers, read together, and reading of the files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from headrace import _core
from headrace.sources.arrow_files.columns import TABLE, pyarrow, reading
from headrace.sources.arrow_files.ranges import Range, RangesFile

_END = 64 << 10  # bytes that most footers fit into
_LONGEST_FOOTER = 256 << 20
_AT_ONCE = 256  # files whose ends are in memory at a time
_MAGIC = b"PAR1"


class ParquetFiles:
    """Footers by file index."""

    def __init__(self, paths: Sequence[str]) -> None:
        self.paths = paths
        self.files = _core.StoredFiles(list(paths))
        self.footers: list[Any] = []
        self.schemas: list[Any] = []
        for number, end in enumerate(self._ends()):
            with reading(paths[number]):
                file = pyarrow("pyarrow.parquet").ParquetFile(self._file(number, [end]))
                self.footers.append(file.metadata)
                self.schemas.append(file.schema_arrow)

    def __len__(self) -> int:
        return len(self.paths)

    def open(self, number: int, known: Sequence[tuple[int, Any]] = (), **options: Any) -> Any:
        """A ``pyarrow.parquet.ParquetFile``; known: offsets and bytes already read."""
        with reading(self.paths[number]):
            return pyarrow("pyarrow.parquet").ParquetFile(
                self._file(number, known), metadata=self.footers[number], **options
            )

    def read(self, ranges: Sequence[Range]) -> list[Any]:
        return self.files.read(ranges)

    def _file(self, number: int, known: Sequence[tuple[int, Any]]) -> Any:
        return pyarrow().PythonFile(RangesFile(self.files, number, known), mode="r")

    def _ends(self) -> Iterator[tuple[int, Any]]:
        """The offset and bytes of each file's end, which has the footer."""
        for first in range(0, len(self), _AT_ONCE):
            numbers = range(first, min(first + _AT_ONCE, len(self)))
            ends = self._last_bytes({number: _END for number in numbers})
            longer = {number: self._footer_bytes(number, end) for number, (_, end) in ends.items()}
            ends.update(self._last_bytes({n: size for n, size in longer.items() if size > _END}))
            yield from (ends[number] for number in numbers)

    def _last_bytes(self, wanted: dict[int, int]) -> dict[int, tuple[int, Any]]:
        begins = {n: max(self.files.size(n) - count, 0) for n, count in wanted.items()}
        ranges = [(n, begin, self.files.size(n) - begin) for n, begin in begins.items()]
        read = self.files.read(ranges)
        return {n: (begin, each) for (n, begin, _), each in zip(ranges, read, strict=True)}

    def _footer_bytes(self, number: int, end: Any) -> int:
        last = bytes(memoryview(end)[-8:])
        size = int.from_bytes(last[:4], "little") + 8
        if last[4:] != _MAGIC or size > self.files.size(number):
            return 0  # pyarrow reports what is wrong
        if size > _LONGEST_FOOTER:
            raise TABLE.error(
                f"the footer of {self.paths[number]} takes {size:,} bytes",
                hint="write fewer columns, or larger row groups",
            )
        return size
