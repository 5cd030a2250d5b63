# SPDX-License-Identifier: Apache-2.0
"""Reads Arrow files without mapping them: only the layout is read, the values stay in the file.
pyarrow locates the columns of a batch by address without reading values, so it gets empty memory
for a batch's body. Offsets, validity bits and numbers of the requested columns are then read into
it; strings and bytes are only located, and the engine reads them record by record. A mapped file
that is truncated would kill the process.
"""

from __future__ import annotations

import bisect
import mmap
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from headrace import _core
from headrace.errors import StorageError
from headrace.sources.arrow_files.columns import (
    Buffers,
    FilePlace,
    large_values,
    pyarrow,
    reading,
)
from headrace.sources.arrow_files.packed_batches import check_unpacked_size
from headrace.sources.arrow_files.ranges import HeadersFile, Range, RangesFile

LARGE = 1 << 20  # bytes; smaller buffers are read immediately
_LONGEST_HEADER = 64 << 20
_FILES_AT_ONCE = 32  # far away: headers of a file are read one after the other
_READ_AT_ONCE = 64 << 20  # bytes
_NO_RESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)


class _Body(NamedTuple):
    address: int
    size: int
    memory: mmap.mmap
    file: int
    position: int  # position in the file


class FilesByPosition(Buffers):
    """The tables of some files, and the positions of their values in them."""

    def __init__(self, paths: Sequence[str]) -> None:
        self.paths = paths
        self._files = _core.StoredFiles(list(paths))
        self._bodies: list[_Body] = []  # indexed by address

    def tables(self) -> list[Any]:
        """The files' tables, whose large buffers are not read. Raises pyarrow's errors and OSError.

        Files with compressed batches or dictionaries are read completely, since their values cannot
        be used in place.
        """
        numbers = range(len(self.paths))
        if self._files.later and len(self.paths) > 1:
            with ThreadPoolExecutor(_FILES_AT_ONCE) as threads:
                read = list(threads.map(self._table, numbers))
        else:
            read = [self._table(number) for number in numbers]
        self._bodies = sorted((body for _, bodies in read for body in bodies), key=_address)
        return [table for table, _ in read]

    def _table(self, number: int) -> tuple[Any, list[_Body]]:
        pa = pyarrow()
        path = self.paths[number]
        with reading(path):
            headers = HeadersFile(self._files, number)
            begin = check_unpacked_size(headers, path)
            reads = _Reads(self._files, number, headers)
            try:
                return reads.table(begin), reads.bodies
            except StorageError:
                raise
            except (_NotPlain, pa.ArrowException, OSError):  # read_all() reports real damage
                pass
            file = pa.PythonFile(RangesFile(self._files, number), mode="r")
            reader, count = _stream(file, begin)
            batches = list(reader)
            _check_count(batches, count)
            return pa.Table.from_batches(batches, reader.schema), []

    def fill(self, values: Any, whole: bool) -> None:
        wanted: list[tuple[_Body, int, int]] = []
        for chunk in values.chunks:
            left = None if whole else large_values(chunk)
            for buffer in chunk.buffers():
                body = self._body_of(buffer) if buffer is not None else None
                stays = left is not None and body is not None and buffer.address == left.address
                if body is not None and not (stays and buffer.size > LARGE):
                    begin = buffer.address - body.address
                    for at in range(begin, begin + buffer.size, _READ_AT_ONCE):
                        count = min(_READ_AT_ONCE, begin + buffer.size - at)
                        wanted.append((body, at, count))
        while wanted:
            size = 0
            several: list[tuple[_Body, int, int]] = []
            while wanted and (not several or size < _READ_AT_ONCE):
                several.append(wanted.pop())
                size += several[-1][2]
            ranges: list[Range] = [(b.file, b.position + at, count) for b, at, count in several]
            for (body, at, count), part in zip(several, self._files.read(ranges), strict=True):
                body.memory[at : at + count] = np.asarray(part).tobytes()

    def place_of(self, buffer: Any) -> FilePlace | None:
        body = self._body_of(buffer)
        if body is None or buffer.size <= LARGE:
            return None
        position = body.position + buffer.address - body.address
        return FilePlace(self._files, body.file, self.paths[body.file], position)

    def _body_of(self, buffer: Any) -> _Body | None:
        at = bisect.bisect_right(self._bodies, buffer.address, key=_address) - 1
        if at < 0:
            return None
        body = self._bodies[at]
        end = body.address + body.size
        return body if buffer.address + buffer.size <= end else None


def _stream(file: Any, begin: int) -> tuple[Any, int]:
    """The batches in the order in which they were checked, and the number of batches in the footer,
    or -1. The footer itself could list other batches. A stream without a footer cannot be
    recognized as truncated.
    """
    pa = pyarrow()
    count = pa.ipc.open_file(file).num_record_batches if begin else -1
    file.seek(begin)
    return pa.ipc.open_stream(file), count


def _check_count(batches: list[Any], count: int) -> None:
    if count not in (-1, len(batches)):
        raise pyarrow().ArrowInvalid(f"{len(batches)} batches, but its footer declares {count}")


class _NotPlain(Exception):
    """Raised if the file does not store values in the form in which they are used."""


class _Reads(RangesFile):
    """A file for pyarrow that does not read large pieces. headers: some that were read before."""

    def __init__(self, files: _core.StoredFiles, number: int, headers: HeadersFile) -> None:
        super().__init__(files, number)
        self._headers = headers
        self.bodies: list[_Body] = []

    def table(self, begin: int) -> Any:
        pa = pyarrow()
        reader, count = _stream(pa.PythonFile(self, mode="r"), begin)
        batches = []
        while (batch := self._next(reader)) is not None:
            batches.append(batch)
        _check_count(batches, count)
        table = pa.Table.from_batches(batches, reader.schema)
        table.validate()
        return table

    def _next(self, reader: Any) -> Any:
        try:
            return self._plain(reader.read_next_batch)
        except StopIteration:
            return None

    def _plain(self, read: Any) -> Any:
        """A batch whose large buffers can all be used in place."""
        before = len(self.bodies)
        batch = read()
        bodies = self.bodies[before:]
        if not bodies:
            return batch
        for column in batch.columns:
            if "dictionary<" in str(column.type):
                raise _NotPlain
            for buffer in column.buffers():
                if buffer is None or buffer.size == 0:
                    continue
                inside = any(
                    body.address <= buffer.address
                    and buffer.address + buffer.size <= body.address + body.size
                    for body in bodies
                )
                if not inside:
                    raise _NotPlain
        return batch

    def read_at(self, begin: int, count: int) -> Any:
        if count <= LARGE:
            return self._headers.read_at(begin, count)
        memory = mmap.mmap(-1, count, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE)
        address = pyarrow().py_buffer(memory).address
        self.bodies.append(_Body(address, count, memory, self.number, begin))
        # pyarrow requests each message completely: a marker, the length of the header, the header,
        # the body.
        first = bytes(self._headers.read_at(begin, 8))
        header = 8 + int.from_bytes(first[4:], "little")
        if first[:4] == b"\xff\xff\xff\xff" and header <= min(count, _LONGEST_HEADER):
            memory[:header] = bytes(self._headers.read_at(begin, header))
        return memory


def _address(body: _Body) -> int:
    return body.address
