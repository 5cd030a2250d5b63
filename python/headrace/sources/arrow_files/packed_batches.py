# SPDX-License-Identifier: Apache-2.0
"""Decompressed sizes of an Arrow file's compressed batches (lz4, zstd), read before anything is
decompressed. A header (Apache Arrow, format/Message.fbs) locates the buffers; a compressed buffer
begins with its decompressed size. pyarrow allocates that size without checking it.
"""

from __future__ import annotations

import struct

from headrace.sources.arrow_files.columns import LEAST_UNPACKED, unpacks_too_far
from headrace.sources.arrow_files.ranges import RangesFile

_SIGNATURE = b"ARROW1\0\0"
_LONGEST_HEADER = 64 << 20
_DICTIONARY, _RECORD_BATCH = 2, 3  # types of a message's header


def check_unpacked_size(file: RangesFile, path: str) -> int:
    """The offset of the file's message stream. Reads the headers, and a few bytes of the bodies.
    Raises Error HR0499 if they would decompress to more than the file can justify. Other invalid
    files are left to pyarrow's checks.
    """
    most = max(LEAST_UNPACKED, 64 * file.size)
    total = 0
    begin = 8 if _read(file, 8) == _SIGNATURE else 0
    file.seek(begin)
    while header := _next_header(file):
        body = file.tell()
        message = _Table((memoryview(header), struct.unpack_from("<I", header, 0)[0]))
        total += _unpacked(message, file, body)
        if total > most:
            raise unpacks_too_far(
                path,
                most,
                "select the fields you need with fields=, or write the file uncompressed",
            )
        size = message.field(3)
        file.seek(body + max(struct.unpack_from("<q", header, size)[0], 0) if size else body)
    return begin


def _read(file: RangesFile, count: int) -> bytes:
    return bytes(memoryview(file.read(count)))


def _next_header(file: RangesFile) -> bytes:
    mark = _read(file, 4)
    if mark == b"\xff\xff\xff\xff":
        mark = _read(file, 4)
    size = int.from_bytes(mark, "little")
    return _read(file, size) if 4 <= size <= _LONGEST_HEADER else b""


class _Table(tuple[memoryview, int]):
    """A table of FlatBuffers: memory, and the position of the table in it."""

    def field(self, number: int) -> int:
        """The position of the field's value; 0 if the table has none."""
        memory, at = self
        fields = at - struct.unpack_from("<i", memory, at)[0]
        place = 4 + 2 * number
        if place >= struct.unpack_from("<H", memory, fields)[0]:
            return 0
        offset: int = struct.unpack_from("<H", memory, fields + place)[0]
        return at + offset if offset else 0

    def follow(self, number: int) -> int:
        """The position of the table or vector that the field refers to; 0 if there is none."""
        at = self.field(number)
        return at + int(struct.unpack_from("<I", self[0], at)[0]) if at else 0


def _unpacked(message: _Table, file: RangesFile, body: int) -> int:
    """The total declared decompressed size of a message's compressed buffers."""
    header, at = message[0], message.field(1)
    kind = header[at] if at else 0
    if kind not in (_DICTIONARY, _RECORD_BATCH):
        return 0
    batch = _Table((header, message.follow(2)))
    if kind == _DICTIONARY:
        batch = _Table((header, batch.follow(1)))
    buffers, packed = batch.follow(2), batch.field(3)
    if not buffers or not packed:
        return 0
    total = 0
    for i in range(struct.unpack_from("<I", header, buffers)[0]):
        offset, length = struct.unpack_from("<qq", header, buffers + 4 + 16 * i)
        if length >= 8:
            file.seek(body + max(offset, 0))
            size = int.from_bytes(_read(file, 8), "little", signed=True)
            total += max(size, 0)  # -1: not compressed
    return total
