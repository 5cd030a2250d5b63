# SPDX-License-Identifier: Apache-2.0
"""Restores original JPEG files from their dense form, in plain Python.

It is written from docs/spec/dense-jpeg.md, docs/spec/jpeg-remainder.md and ISO/IEC 10918-1 alone,
and shares no code with Headrace. It restores every file that the tests pack, which proves that
these documents are complete.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import struct
from collections.abc import Callable

from jpeg_reader import Component, Picture, codes_of, decode_baseline, tables_of

JFIF = bytes.fromhex("4a464946000101000001000100 00")

# K.3, K.5, K.4 and K.6 of the standard: how many codes of each length, and their symbols.
DC_SYMBOLS = bytes(range(12))
STANDARD_TABLES = (
    bytes.fromhex("00010501010101010100000000000000") + DC_SYMBOLS,
    bytes.fromhex(
        "0002010303020403050504040000017d01020300041105122131410613516107227114328191a1082342b1c11552d1"
        "f02433627282090a161718191a25262728292a3435363738393a434445464748494a535455565758595a63646566676"
        "8696a737475767778797a838485868788898a92939495969798999aa2a3a4a5a6a7a8a9aab2b3b4b5b6b7b8b9bac2c"
        "3c4c5c6c7c8c9cad2d3d4d5d6d7d8d9dae1e2e3e4e5e6e7e8e9eaf1f2f3f4f5f6f7f8f9fa"
    ),
    bytes.fromhex("00030101010101010101010000000000") + DC_SYMBOLS,
    bytes.fromhex(
        "0002010204040304070504040001027700010203110405213106124151076171132232810814429"
        "1a1b1c109233352f0156272d10a162434e125f11718191a262728292a35363738393a434445464748494a535455565"
        "758595a636465666768696a737475767778797a82838485868788898a92939495969798999aa2a3a4a5a6a7a8a9aab"
        "2b3b4b5b6b7b8b9bac2c3c4c5c6c7c8c9cad2d3d4d5d6d7d8d9dae2e3e4e5e6e7e8e9eaf2f3f4f5f6f7f8f9fa"
    ),
)


class ScanWriter:
    """The entropy-coded data of one scan."""

    def __init__(self, parts: list[Component], header: bytes) -> None:
        self.parts = parts
        self.first, self.last = header[-3], header[-2]
        self.high, self.low = header[-1] >> 4, header[-1] & 15
        self.digits: list[str] = []
        self.run = 0
        self.waiting = ""  # corrections after the run
        self.predictors = [0] * len(parts)
        self.dc: list[dict[int, str]] = []
        self.ac: list[dict[int, str]] = []

    def number(self, table: dict[int, str], run: int, value: int) -> None:
        size = abs(value).bit_length()
        bits = value if value > 0 else value + (1 << size) - 1
        self.digits.append(table[run << 4 | size] + (f"{bits:0{size}b}" if size else ""))

    def difference(self, i: int, value: int) -> None:
        self.number(self.dc[i], 0, value - self.predictors[i])
        self.predictors[i] = value

    def sequential(self, i: int, block: list[int]) -> None:
        self.difference(i, block[0])
        run = 0
        for value in block[1:]:
            if value == 0:
                run += 1
                continue
            for _ in range(run // 16):
                self.digits.append(self.ac[i][0xF0])
            self.number(self.ac[i], run % 16, value)
            run = 0
        if run:
            self.digits.append(self.ac[i][0])

    def ac_first(self, block: list[int]) -> None:
        run = 0
        for value in block[self.first : self.last + 1]:
            shown = (abs(value) >> self.low) * (1 if value > 0 else -1)
            if shown == 0:
                run += 1
                continue
            self.end_run()
            for _ in range(run // 16):
                self.digits.append(self.ac[0][0xF0])
            self.number(self.ac[0], run % 16, shown)
            run = 0
        if run:
            self.add_to_run("")

    def ac_refine(self, block: list[int]) -> None:
        band = block[self.first : self.last + 1]
        shown = [abs(value) >> self.low for value in band]
        last_new = max((k for k, value in enumerate(shown) if value == 1), default=-1)
        run, corrections = 0, ""
        for k, value in enumerate(shown):
            if value == 0:
                run += 1
                continue
            while run > 15 and k <= last_new:
                self.end_run()
                self.digits.append(self.ac[0][0xF0] + corrections)
                run, corrections = run - 16, ""
            if value > 1:
                corrections += str(value & 1)
                continue
            self.end_run()
            sign = "1" if band[k] > 0 else "0"
            self.digits.append(self.ac[0][run << 4 | 1] + sign + corrections)
            run, corrections = 0, ""
        if run or corrections:
            self.add_to_run(corrections)

    def add_to_run(self, corrections: str) -> None:
        self.run += 1
        self.waiting += corrections
        if self.run == 32767 or len(self.waiting) > 937:
            self.end_run()

    def end_run(self) -> None:
        if self.run:
            size = self.run.bit_length() - 1
            bits = f"{self.run:b}"[1:]
            self.digits.append(self.ac[0][size << 4] + bits + self.waiting)
        self.run, self.waiting = 0, ""

    def finish(self, padding: Callable[[int], str]) -> bytes:
        """The bytes of the interval."""
        self.end_run()
        self.predictors = [0] * len(self.parts)
        digits = "".join(self.digits)
        self.digits = []
        digits += padding(-len(digits) % 8)
        data = int(digits, 2).to_bytes(len(digits) // 8, "big") if digits else b""
        return data.replace(b"\xff", b"\xff\x00")


class Remainder:
    """An image and the remainder -> the file."""

    def __init__(self, picture: Picture, remainder: bytes) -> None:
        self.picture, self.rest = picture, remainder
        self.tables: dict[tuple[int, int], dict[int, str]] = {}
        self.interval = 0

    def take(self, size: int) -> bytes:
        assert size <= len(self.rest)
        taken, self.rest = self.rest[:size], self.rest[size:]
        return taken

    def byte(self) -> int:
        return self.take(1)[0]

    def number(self) -> int:
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def signed_number(self) -> int:
        coded = self.number()
        return -(coded + 1) // 2 if coded % 2 else coded // 2

    def file(self) -> bytes:
        assert self.byte() == 1
        stored = self.rest[0] == 3
        if stored:
            self.byte()
        for component in self.picture.components:
            self.edge_blocks(component, self.number() if stored else 0)
        out = b"\xff\xd8"
        while True:
            code, fill = self.byte(), 0
            if code == 2:
                fill, code = self.number(), self.byte()
            if code == 4:
                code, body = 0xE0, JFIF
            elif code == 1 or 0xD0 <= code <= 0xD7:
                out += b"\xff" * (fill + 1) + bytes([code])
                continue
            elif code == 0xD9:
                return out + b"\xff" * (fill + 1) + b"\xd9" + self.rest
            elif code in (0xC0, 0xC1, 0xC2):
                body = self.frame_header()
                self.progressive = code == 0xC2
            elif code == 0xC4:
                body = b"".join(self.huffman_table() for _ in range(self.number()))
                for kind, slot, table in tables_of(body):
                    self.tables[kind, slot] = codes_of(table)
            elif code == 0xDB:
                body = b"".join(self.quantization_table() for _ in range(self.number()))
            elif code == 0xDA:
                flags = self.byte()
                body = self.scan_header(flags)
            else:
                body = self.take(self.number())
                if code == 0xDD:
                    (self.interval,) = struct.unpack(">H", body)
            out += b"\xff" * (fill + 1) + bytes([code]) + struct.pack(">H", len(body) + 2) + body
            if code == 0xDA:
                out += self.scan(flags, body)

    def edge_blocks(self, component: Component, stored: int) -> None:
        padded_wide = self.picture.mcus_wide * component.h
        padded_high = self.picture.mcus_high * component.v
        index, wanted = 0, self.number() if stored else -1
        for y in range(padded_high):
            for x in range(component.wide if y < component.high else 0, padded_wide):
                before = (x + component.h - 1, y - 1) if x % component.h == 0 else (x - 1, y)
                block = component.blocks[x, y] = [component.blocks[before][0]] + [0] * 63
                if index == wanted:
                    block[0] += self.signed_number()
                    for _ in range(self.number()):
                        k = self.byte()
                        block[k] = self.signed_number()
                    stored -= 1
                    wanted = index + 1 + self.number() if stored else -1
                index += 1

    def frame_header(self) -> bytes:
        picture, count = self.picture, len(self.picture.components)
        body = struct.pack(">BHHB", 8, picture.height, picture.width, count)
        if self.byte():
            body += self.take(3 * count)
        else:
            for i, c in enumerate(picture.components):
                body += bytes([i + 1, c.h << 4 | c.v, i in (1, 2)])
        for i, c in enumerate(picture.components):
            c.identifier, c.slot = body[6 + 3 * i], body[8 + 3 * i]
        return body

    def huffman_table(self) -> bytes:
        byte = self.byte()
        first = bytes([(byte >> 2 & 1) << 4 | byte & 3])
        if byte >> 3:
            return first + STANDARD_TABLES[(byte >> 3) - 1]
        counts = self.take(16)
        return first + counts + self.take(sum(counts))

    def quantization_table(self) -> bytes:
        byte = self.byte()
        wide = byte >> 2 & 1
        first = bytes([wide << 4 | byte & 3])
        if byte >> 3 == 0:
            return first + self.take(64 << wide)
        steps = self.picture.components[(byte >> 3) - 1].steps
        return first + struct.pack(">64H" if wide else ">64B", *steps)

    def scan_header(self, flags: int) -> bytes:
        if flags & 1:
            return self.take(4 + 2 * self.rest[0])
        components = self.picture.components
        parts = b"".join(bytes([c.identifier, c.slot << 4 | c.slot]) for c in components)
        return bytes([len(components)]) + parts + bytes([0, 63, 0])

    def scan(self, flags: int, header: bytes) -> bytes:
        listed = self.take(self.number()) if flags & 4 else b""
        breaks, block = set(), 0
        for _ in range(self.number() if flags & 8 else 0):
            block += self.number()
            breaks.add(block)
            block += 1
        named = {c.identifier: c for c in self.picture.components}
        parts = [named[header[1 + 2 * i]] for i in range(header[0])]
        writer = ScanWriter(parts, header)
        for i in range(header[0]):
            writer.dc.append(self.tables.get((0, header[2 + 2 * i] >> 4), {}))
            writer.ac.append(self.tables.get((1, header[2 + 2 * i] & 15), {}))
        intervals = 0

        def padding(count: int) -> str:
            byte = listed[intervals] if listed else 0 if flags & 2 else 255
            return f"{byte & (1 << count) - 1:0{count}b}" if count else ""

        out, number = b"", 0
        for n, mcu in enumerate(self.picture.mcus(parts)):
            if self.interval and n and n % self.interval == 0:
                out += writer.finish(padding) + bytes([0xFF, 0xD0 + intervals % 8])
                intervals += 1
            for i, where in mcu:
                values = parts[i].blocks[where]
                if number in breaks:
                    writer.end_run()
                number += 1
                if not self.progressive:
                    writer.sequential(i, values)
                elif writer.first > 0:
                    (writer.ac_refine if writer.high else writer.ac_first)(values)
                elif writer.high:
                    writer.digits.append(str(values[0] >> writer.low & 1))
                else:
                    writer.difference(i, values[0] >> writer.low)
        return out + writer.finish(padding)


def decompressed(frame: bytes, size: int) -> bytes:
    """Python has no Zstandard before 3.14, so this calls the C library."""
    zstd = ctypes.CDLL(ctypes.util.find_library("zstd") or "libzstd.so.1")
    zstd.ZSTD_decompress.restype = ctypes.c_size_t
    zstd.ZSTD_decompress.argtypes = [ctypes.c_char_p, ctypes.c_size_t] * 2
    out = ctypes.create_string_buffer(size)
    assert zstd.ZSTD_decompress(out, size, frame, len(frame)) == size
    return out.raw


Entry = tuple[int, int, tuple[int, ...]]


class DenseJpeg:
    """The dense form: ``jpeg``, ``row_index``, ``remade``, ``orientation`` and ``original()``."""

    def __init__(self, data: bytes) -> None:
        assert data[:4] == b"\x8aHRJ" and data[4] in (1, 2)
        self.flags = data[5]
        self.remade = bool(self.flags & 1)
        self.orientation = (self.flags >> 4 & 7) + 1
        reader = Remainder(Picture(0, 0, []), data[6:])
        self.row_index = reader.take(reader.number())
        self.remainder = b""
        if self.remade:
            stored = reader.number()
            size = reader.number() if self.flags & 2 else stored
            self.remainder = reader.take(stored)
            if self.flags & 2:
                self.remainder = decompressed(self.remainder, size)
        self.jpeg = reader.rest

    def original(self) -> bytes:
        if not self.remade:
            return self.jpeg
        return Remainder(decode_baseline(self.jpeg)[0], self.remainder).file()

    def rows(self) -> list[tuple[int, int, tuple[int, ...], list[Entry]]]:
        """Of each row that the index names, byte, bit, DC predictors, and the entries inside of it:
        MCUs before it, its bit, DC predictors."""
        assert self.row_index[:2] == b"R\x02"
        components, zero = self.row_index[10:12]
        assert zero == 0
        out, at = [], 12
        while at < len(self.row_index):
            byte, bit, *predictors, count = struct.unpack_from(
                f"<IB{components}hB", self.row_index, at
            )
            at += 6 + 2 * components
            entries, mcu, place = [], 0, bit
            for _ in range(0 if count == 255 else count):
                mcus, bits, *dc = struct.unpack_from(f"<BH{components}h", self.row_index, at)
                at += 3 + 2 * components
                mcu, place = mcu + mcus, place + bits
                entries.append((mcu, place, tuple(dc)))
            out.append((byte, bit, tuple(predictors), entries))
        return out
