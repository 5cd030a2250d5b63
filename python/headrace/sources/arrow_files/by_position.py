# SPDX-License-Identifier: Apache-2.0
"""Arrow files without mapping them: only the layout is read, the values stay in the file.

pyarrow locates the columns of a batch by address without reading values. So it gets memory for a
body that is still empty. Offsets, valid bits and numbers are then read into it, for the requested
columns; for strings and bytes only the position in the file is known, and the engine reads a
record's when it is wanted. A mapped file that is truncated would end the process.
"""

from __future__ import annotations

import bisect
import mmap
import os
from typing import Any, NamedTuple

from headrace.sources.arrow_files.columns import Buffers, FilePlace, large_values, pyarrow
from headrace.sources.arrow_files.packed_batches import check_unpacked_size

LARGE = 1 << 20  # bytes; what is less is read at once
_LONGEST_HEADER = 64 << 20
_NO_RESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)


class _Body(NamedTuple):
    address: int
    size: int
    memory: mmap.mmap
    path: str
    position: int  # in the file


class FilesByPosition(Buffers):
    """The tables of some files, and the positions of their values in them."""

    def __init__(self) -> None:
        self._bodies: list[_Body] = []  # by address

    def table(self, path: str) -> Any:
        """The file's table, whose large buffers are not read. Raises pyarrow's errors and OSError.

        Files with compressed batches or dictionaries are read completely, since their values cannot
        be used in place.
        """
        pa = pyarrow()
        begin = check_unpacked_size(path)
        try:
            reads = _Reads(path)
            with reads.file:
                table = reads.table(begin)
            for body in reads.bodies:
                bisect.insort(self._bodies, body)
            return table
        except (_NotPlain, pa.ArrowException, OSError):  # which read_all() tells, where it is real
            pass
        with pa.OSFile(path) as file:
            reader, count = _stream(file, begin)
            batches = list(reader)
            _check_count(batches, count)
            return pa.Table.from_batches(batches, reader.schema)

    def fill(self, values: Any, whole: bool) -> None:
        for chunk in values.chunks:
            left = None if whole else large_values(chunk)
            for buffer in chunk.buffers():
                body = self._body_of(buffer) if buffer is not None else None
                stays = left is not None and body is not None and buffer.address == left.address
                if body is not None and not (stays and buffer.size > LARGE):
                    begin = buffer.address - body.address
                    with open(body.path, "rb", buffering=0) as file:
                        _read_into(file.fileno(), body, begin, begin + buffer.size)

    def place_of(self, buffer: Any) -> FilePlace | None:
        body = self._body_of(buffer)
        if body is None or buffer.size <= LARGE:
            return None
        return FilePlace(body.path, body.position + buffer.address - body.address)

    def _body_of(self, buffer: Any) -> _Body | None:
        at = bisect.bisect_right(self._bodies, buffer.address, key=lambda body: body.address) - 1
        if at < 0:
            return None
        body = self._bodies[at]
        end = body.address + body.size
        return body if buffer.address + buffer.size <= end else None


def _stream(file: Any, begin: int) -> tuple[Any, int]:
    """The batches in the order in which they were checked, and how many a footer names, or -1.

    A footer could name others. A stream without one that is truncated looks like any other.
    """
    pa = pyarrow()
    count = pa.ipc.open_file(file).num_record_batches if begin else -1
    file.seek(begin)
    return pa.ipc.open_stream(file), count


def _check_count(batches: list[Any], count: int) -> None:
    if count not in (-1, len(batches)):
        raise pyarrow().ArrowInvalid(f"{len(batches)} batches, and its footer names {count}")


class _NotPlain(Exception):
    """The file does not store the values in the form in which they are used."""


class _Reads:
    """A file for pyarrow that does not read large pieces."""

    closed = False

    def __init__(self, path: str) -> None:
        self.file = open(path, "rb", buffering=0)  # noqa: SIM115, the owner of the table closes it
        self._path = path
        self._size = os.fstat(self.file.fileno()).st_size
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
        """A batch whose large parts are all usable in place."""
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

    def read(self, count: int | None = -1) -> Any:
        at = self.file.tell()
        left = max(self._size - at, 0)
        count = left if count is None or count < 0 else min(count, left)
        self.file.seek(at + count)
        if count <= LARGE:
            return _bytes_at(self.file.fileno(), at, count)
        memory = mmap.mmap(-1, count, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE)
        body = _Body(pyarrow().py_buffer(memory).address, count, memory, self._path, at)
        self.bodies.append(body)
        # A message in a file is requested completely: a mark, the length of its header, the header,
        # its body.
        begin = _bytes_at(self.file.fileno(), at, 8)
        header = 8 + int.from_bytes(begin[4:], "little")
        if begin[:4] == b"\xff\xff\xff\xff" and header <= min(count, _LONGEST_HEADER):
            _read_into(self.file.fileno(), body, 0, header)
        return memory

    def seek(self, offset: int, whence: int = 0) -> int:
        return self.file.seek(offset, whence)

    def tell(self) -> int:
        return self.file.tell()

    def close(self) -> None:
        pass

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True


def _bytes_at(descriptor: int, at: int, count: int) -> bytes:
    out = bytearray(count)
    _fill(descriptor, at, memoryview(out))
    return bytes(out)


def _read_into(descriptor: int, body: _Body, begin: int, end: int) -> None:
    with memoryview(body.memory) as memory, memory[begin:end] as part:
        _fill(descriptor, body.position + begin, part)


def _fill(descriptor: int, at: int, out: memoryview) -> None:
    done = 0
    while done < len(out):
        with out[done:] as rest:
            count = os.preadv(descriptor, [rest], at + done)
        if count == 0:
            raise OSError("the file was truncated while it was read")
        done += count
