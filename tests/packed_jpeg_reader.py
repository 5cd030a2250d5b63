# SPDX-License-Identifier: Apache-2.0
"""A reader of packed JPEG images in plain Python, written from docs/spec/packed-jpeg.md alone.

It is slow, checks much, and shares no code with Headrace. It returns the coefficients of every
image that the tests pack, which proves that the specification is complete.
"""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Iterator

import numpy as np

SIGNATURE = b"\x8aHRPJ\r\n\x1a"
LEVELS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 7, 9, 12, 16)
ESCAPE = 15
QUAD, GROUP = 4, 16  # blocks


def zigzag() -> list[tuple[int, int]]:
    """(row, column) of the k-th coefficient."""
    cells = [(row, column) for row in range(8) for column in range(8)]
    return sorted(cells, key=lambda c: (sum(c), c[0] if sum(c) % 2 else c[1]))


ZIGZAG = zigzag()


def divided_up(value: int, by: int) -> int:
    return -(-value // by)


class Stream:
    """Bits of bytes, starting with the least significant bit of the first byte."""

    def __init__(self, data: bytes) -> None:
        self.value, self.left = int.from_bytes(data, "little"), 8 * len(data)

    def take(self, count: int) -> int:
        assert count <= self.left, "a block is longer than its stream"
        taken = self.value & ((1 << count) - 1)
        self.value >>= count
        self.left -= count
        return taken

    def take_signed(self, count: int) -> int:
        value = self.take(count)
        return value - (1 << count) if count and value >> (count - 1) else value

    def members(self, of: list[int]) -> list[int]:
        """The elements of a list whose bit is one."""
        bits = self.take(len(of))
        return [k for i, k in enumerate(of) if bits >> i & 1]


def read_coefficients(stream: Stream, last: int, levels: int) -> np.ndarray:
    """A block's coefficients in zigzag order, without the DC one."""
    values = np.zeros(64, np.int64)
    if last == 0:
        return values
    present = [*stream.members(list(range(1, last))), last]
    negative = stream.members(present)
    for k in present:
        values[k] = 1
    for _ in range(2, levels + 1):  # one more bit for the values that have it
        larger = stream.members(present)
        ones = stream.members(larger)
        # A mantissa is read from its lowest bit: the leading one stays on top of the bits read so
        # far.
        for k in larger:
            size = int(values[k]).bit_length()
            values[k] += (1 << (size - 1)) + ((1 << (size - 1)) if k in ones else 0)
        present = larger
    values[negative] *= -1
    return values


def read_row(row: bytes, blocks: int) -> np.ndarray:
    """(blocks, 8, 8) coefficients of a row of blocks."""
    quads, groups = divided_up(blocks, QUAD), divided_up(blocks, GROUP)
    shift, at = row[0], 1
    headers = struct.unpack_from(f"<{quads}I", row, at)
    at += 4 * quads
    entries = [struct.unpack_from("<4Bh", row, at + 6 * g) for g in range(groups)]
    at += 6 * groups
    out = np.zeros((blocks, 8, 8), np.int16)
    for g, (*lengths, dc) in enumerate(entries):
        streams = []
        for length in lengths:
            end = at + (length << shift)
            assert end <= len(row), "a stream is longer than its row"
            streams.append(Stream(row[at:end]))
            at = end
        for q in range(4 * g, min(4 * g + 4, quads)):
            code, width = headers[q] >> 28, headers[q] >> 24 & 15
            for j in range(QUAD):
                if code == ESCAPE:
                    dc = streams[j].take_signed(16)
                dc += streams[j].take_signed(width)
                values = read_coefficients(streams[j], headers[q] >> 6 * j & 63, LEVELS[code])
                values[0] = dc
                if QUAD * q + j < blocks:
                    for k, (y, x) in enumerate(ZIGZAG):
                        out[QUAD * q + j, y, x] = values[k]
    assert at == len(row), "bytes are left in a row"
    return out


@dataclasses.dataclass
class Component:
    identifier: int
    h: int
    v: int
    quantization: np.ndarray  # (8, 8)
    blocks_wide: int = 0
    blocks_high: int = 0


class PackedJpegReader:
    """An image's header; planes() reads the rest."""

    def __init__(self, data: bytes) -> None:
        assert data[:8] == SIGNATURE
        version, self.flags, count, self.color = data[8:12]
        assert version == 1 and self.flags < 4
        self.width, self.height, self.orientation, tables, zero = struct.unpack_from(
            "<HHBBH", data, 12
        )
        rows_bytes, self.remainder_stored, self.remainder_bytes = struct.unpack_from(
            "<3I", data, 20
        )
        assert zero == 0 and 1 <= count <= 4
        steps = []
        for t in range(tables):
            table = np.zeros((8, 8), np.int64)
            for k, value in enumerate(struct.unpack_from("<64H", data, 32 + 4 * count + 128 * t)):
                table[ZIGZAG[k]] = value
            steps.append(table)
        self.components = []
        for c in range(count):
            identifier, factors, _, table_number = data[32 + 4 * c : 36 + 4 * c]
            self.components.append(
                Component(identifier, factors >> 4, factors & 15, steps[table_number])
            )
        self._lay_out()
        self._data, self._table = data, 32 + 4 * count + 128 * tables
        entry = 4 if self.flags & 1 else 2
        number = sum(component.blocks_high for component in self.components)
        letter = "I" if self.flags & 1 else "H"
        self._lengths = struct.unpack_from(f"<{number}{letter}", data, self._table)
        self._rows = self._table + entry * number
        assert sum(self._lengths) == rows_bytes
        assert self._rows + rows_bytes + self.remainder_stored == len(data)

    def _lay_out(self) -> None:
        if len(self.components) == 1:
            self.factors = [(1, 1)]
        else:
            self.factors = [(component.h, component.v) for component in self.components]
        h_max = max(h for h, _ in self.factors)
        v_max = max(v for _, v in self.factors)
        self.mcus_high = divided_up(self.height, 8 * v_max)
        for component, (h, v) in zip(self.components, self.factors, strict=True):
            component.blocks_wide = divided_up(divided_up(self.width * h, h_max), 8)
            component.blocks_high = divided_up(divided_up(self.height * v, v_max), 8)

    def order(self) -> Iterator[tuple[int, int]]:
        """(component, row of blocks) of all rows in stored order."""
        for m in range(self.mcus_high):
            for c, component in enumerate(self.components):
                v = self.factors[c][1]
                for y in range(m * v, min((m + 1) * v, component.blocks_high)):
                    yield c, y

    def planes(self) -> list[np.ndarray]:
        """(blocks_high, blocks_wide, 8, 8) quantized coefficients of each component."""
        planes = [
            np.zeros((component.blocks_high, component.blocks_wide, 8, 8), np.int16)
            for component in self.components
        ]
        at = self._rows
        for (c, y), length in zip(self.order(), self._lengths, strict=True):
            row = self._data[at : at + length]
            planes[c][y] = read_row(row, self.components[c].blocks_wide)
            at += length
        return planes
