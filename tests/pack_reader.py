# SPDX-License-Identifier: Apache-2.0
"""A reader of packs in plain Python, written from docs/spec/pack-format.md alone.

It is slow, checks everything, and shares no code with Headrace. It reads every pack that the tests
make, which proves that the specification is complete. Packed images are returned as they are
stored.
"""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

SIGNATURE, END = b"\x89HRPACK\n", b"HRPACK/\n"
DTYPE_BYTES = (1, 1, 2, 4, 8, 2, 4, 8, 2, 2, 4, 8, 1)
PAGES, COLUMN, STORED, SUMS, ORIGINAL, ORIGINAL_SUMS, FORMS, REASONS = range(1, 9)
KEY_BYTES, KEYS = 9, 10
KNOWN_TAGS = range(1, 12)


def crc32c_table() -> list[int]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


TABLE = crc32c_table()


def crc32c(data: bytes) -> int:
    state = 0xFFFFFFFF
    for byte in data:
        state = state >> 8 ^ TABLE[(state ^ byte) & 255]
    return state ^ 0xFFFFFFFF


@dataclasses.dataclass
class PackField:
    name: str
    kind: int
    dtype: int
    is_column: bool
    encoded: bool
    shape: tuple[int, ...]

    @property
    def width(self) -> int:
        """The bytes of a column's value."""
        elements = 1
        for size in self.shape:
            elements *= size
        return elements * DTYPE_BYTES[self.dtype]


class PackReader:
    """One file of a pack: ``fields``, ``classes``, ``keys``, and ``record(i)`` as raw bytes."""

    def __init__(self, path: Path) -> None:
        self.data = path.read_bytes()
        self._read_header()
        self._read_directory()
        lengths = self._numbers(KEY_BYTES, 0)
        ends = list(accumulate(lengths))
        keys = self._section(KEYS, 0)
        self.keys = [keys[end - size : end] for end, size in zip(ends, lengths, strict=True)]
        self.places = list(self._places())

    def _read_header(self) -> None:
        data = self.data
        assert data[:8] == SIGNATURE
        version, size, features, self.page_bytes = struct.unpack_from("<IIQQ", data, 8)
        assert version == 1 and features < 4 and size % 4096 == 0
        self.video_indexes = bool(features & 1)
        self.entries_in_rows = bool(features & 2)
        self.shard, self.shards, self.first, self.records, self.total, self.plan = (
            struct.unpack_from("<IIQQQQ", data, 32)
        )
        count, self.flags, metadata_sum, own_sum = struct.unpack_from("<IIII", data, 72)
        metadata = data[88 : 88 + count]
        assert crc32c(data[:84]) == own_sum and crc32c(metadata) == metadata_sum
        at = 0

        def take(layout: str) -> tuple[int, ...]:
            nonlocal at
            at += struct.calcsize("<" + layout)
            return struct.unpack_from("<" + layout, metadata, at - struct.calcsize("<" + layout))

        def text(layout: str) -> bytes:
            nonlocal at
            (length,) = take(layout)
            at += length
            return metadata[at - length : at]

        self.fields = []
        for _ in range(take("I")[0]):
            name = text("H").decode()
            kind, dtype, storage, encoded, rank = take("BBBBB")
            shape = take(f"{rank}q")
            self.fields.append(
                PackField(name, kind, dtype, storage == 0, encoded == 1, tuple(shape))
            )
        self.classes = [text("I").decode(errors="surrogateescape") for _ in range(take("I")[0])]

    def _read_directory(self) -> None:
        tail = self.data[-64:]
        directory, count, directory_sum, records, self.pages, _, size, _, own_sum = struct.unpack(
            "<QIIQQQQII", tail[:56]
        )
        assert tail[56:] == END and crc32c(tail[:52]) == own_sum
        assert size == len(self.data) and records == self.records
        entries = self.data[directory : directory + 32 * count]
        assert crc32c(entries) == directory_sum
        self.sections = {}
        for at in range(0, len(entries), 32):
            tag, field, offset, length, checksum, flags = struct.unpack_from("<IIQQII", entries, at)
            assert tag in KNOWN_TAGS or not flags & 1, "a section that must be understood"
            self.sections[tag, field] = (offset, length, checksum)

    def _section(self, tag: int, field: int) -> bytes:
        offset, length, checksum = self.sections[tag, field]
        section = self.data[offset : offset + length]
        assert crc32c(section) == checksum
        return section

    def _numbers(self, tag: int, field: int, layout: str = "I") -> list[int]:
        section = self._section(tag, field)
        return [number for (number,) in struct.iter_unpack("<" + layout, section)]

    def _places(self) -> Iterator[dict[int, tuple[int, int, int]]]:
        """For each record: field -> offset, bytes, checksum of its blob."""
        pages = list(struct.iter_unpack("<QQQ", self._section(PAGES, 0)))
        blobs = [i for i, field in enumerate(self.fields) if not field.is_column]
        sizes = {i: self._numbers(STORED, i) for i in blobs}
        sums = {i: self._numbers(SUMS, i) for i in blobs}
        begins = {first: offset for _, offset, first in pages}
        at = 0
        for record in range(self.records):
            at = begins.get(record, at)
            places = {}
            for i in blobs:
                places[i] = (at, sizes[i][record], sums[i][record])
                at += (sizes[i][record] + 15) // 16 * 16
            yield places

    def check_pages(self) -> int:
        """Reads the pages without the index, and checks that they agree. Returns their number."""
        at = struct.unpack_from("<I", self.data, 12)[0]
        record = page = 0
        while record < self.records:
            magic, checksum, size, number, first, count, table_bytes, begin = struct.unpack_from(
                "<4sIQQQIII", self.data, at
            )
            table = self.data[at + 64 : at + 64 + table_bytes]
            assert (magic, number, first) == (b"HRPG", page, record)
            assert crc32c(self.data[at + 8 : at + 64] + table) == checksum
            assert size % 4096 == 0 and begin % 16 == 0
            for part, is_equal in self._facts(record, count):
                assert table.startswith(part) or not is_equal
                table = table[len(part) :]
            if any(not field.is_column for field in self.fields):
                assert at + begin == min(offset for offset, _, _ in self.places[record].values())
            at, record, page = at + size, record + count, page + 1
        assert page == self.pages
        return page

    def _facts(self, first: int, count: int) -> Iterator[tuple[bytes, bool]]:
        """The parts of a page's table from the sections, and whether they must be equal."""
        for i, field in enumerate(self.fields):
            widths = {COLUMN: field.width}
            if not field.is_column:
                widths = {STORED: 4, SUMS: 4, ORIGINAL: 4, ORIGINAL_SUMS: 4, FORMS: 1, REASONS: 1}
            for tag, width in widths.items():
                part = self._section(tag, i)[first * width : (first + count) * width]
                yield part, tag != REASONS  # reasons are numbered per page
        yield self._section(KEY_BYTES, 0)[first * 4 : (first + count) * 4], True
        yield b"".join(self.keys[first : first + count]), True

    def record(self, number: int) -> dict[str, bytes]:
        """The stored bytes of each field."""
        values = {}
        for i, field in enumerate(self.fields):
            if field.is_column:
                column = self._section(COLUMN, i)
                values[field.name] = column[number * field.width : (number + 1) * field.width]
                continue
            offset, size, checksum = self.places[number][i]
            values[field.name] = self.data[offset : offset + size]
            assert crc32c(values[field.name]) == checksum
        return values

    def form(self, number: int, field: int) -> int:
        """0: unchanged, 1: fast, 2: dense."""
        return self._section(FORMS, field)[number] & 127
