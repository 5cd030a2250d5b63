# SPDX-License-Identifier: Apache-2.0
"""The coefficients of baseline JPEG files, in plain Python, from ISO/IEC 10918-1 alone."""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Iterator

ZIGZAG = sorted(
    range(64),
    key=lambda n: (n // 8 + n % 8, n // 8 if (n // 8 + n % 8) % 2 else n % 8),
)  # position in a block (8 * row + column) of the k-th coefficient


def divided_up(value: int, by: int) -> int:
    return -(-value // by)


@dataclasses.dataclass
class Component:
    identifier: int
    h: int
    v: int
    slot: int
    steps: list[int] = dataclasses.field(default_factory=list)  # in zigzag order
    blocks: dict[tuple[int, int], list[int]] = dataclasses.field(default_factory=dict)  # by x, y
    wide: int = 0
    high: int = 0


@dataclasses.dataclass
class Picture:
    width: int
    height: int
    components: list[Component]

    def lay_out(self) -> None:
        if len(self.components) == 1:
            self.components[0].h = self.components[0].v = 1
        h_most = max(c.h for c in self.components)
        v_most = max(c.v for c in self.components)
        self.mcus_wide = divided_up(self.width, 8 * h_most)
        self.mcus_high = divided_up(self.height, 8 * v_most)
        for c in self.components:
            c.wide = divided_up(divided_up(self.width * c.h, h_most), 8)
            c.high = divided_up(divided_up(self.height * c.v, v_most), 8)

    def mcus(self, parts: list[Component]) -> Iterator[list[tuple[int, tuple[int, int]]]]:
        """Of a scan: for each MCU the number of the component in the scan and the block's place."""
        if len(parts) == 1:
            for y in range(parts[0].high):
                for x in range(parts[0].wide):
                    yield [(0, (x, y))]
            return
        for row in range(self.mcus_high):
            for column in range(self.mcus_wide):
                yield [
                    (i, (column * c.h + x, row * c.v + y))
                    for i, c in enumerate(parts)
                    for y in range(c.v)
                    for x in range(c.h)
                ]


def codes_of(table: bytes) -> dict[int, str]:
    """Symbol -> code, as digits (C.2)."""
    codes, code, symbols = {}, 0, iter(table[16:])
    for length, count in enumerate(table[:16], 1):
        for _ in range(count):
            codes[next(symbols)] = f"{code:0{length}b}"
            code += 1
        code <<= 1
    return codes


def tables_of(body: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Class, slot and definition of each table in a DHT segment."""
    while body:
        size = 17 + sum(body[1:17])
        yield body[0] >> 4, body[0] & 15, body[1:size]
        body = body[size:]


def decode_baseline(jpeg: bytes) -> tuple[Picture, list[tuple[int, list[int]]]]:
    """A file of one scan without restart markers; and of each MCU the bit where it begins, without
    stuffed bytes, and the DC predictors there."""
    assert jpeg[:2] == b"\xff\xd8"
    at, steps, tables = 2, {}, {}
    while True:
        code, size = struct.unpack_from(">xBH", jpeg, at)
        body = jpeg[at + 4 : at + 2 + size]
        at += 2 + size
        if code == 0xDB:
            while body:
                wide = body[0] >> 4
                layout = ">64H" if wide else ">64B"
                steps[body[0] & 15] = list(struct.unpack_from(layout, body, 1))
                body = body[65 + 64 * wide :]
        elif code in (0xC0, 0xC1):
            height, width, count = struct.unpack_from(">xHHB", body)
            fields = [body[6 + 3 * i : 9 + 3 * i] for i in range(count)]
            picture = Picture(
                width, height, [Component(f[0], f[1] >> 4, f[1] & 15, f[2]) for f in fields]
            )
            picture.lay_out()
        elif code == 0xC4:
            for kind, slot, table in tables_of(body):
                tables[kind, slot] = {code: symbol for symbol, code in codes_of(table).items()}
        elif code == 0xDA:
            slots = [body[2 + 2 * i] for i in range(body[0])]
            break
    for c in picture.components:
        c.steps = steps[c.slot]
    data = jpeg[at : jpeg.rindex(b"\xff\xd9")].replace(b"\xff\x00", b"\xff")
    digits = f"{int.from_bytes(data, 'big'):0{8 * len(data)}b}"
    place = 0

    def symbol(table: dict[str, int]) -> int:
        nonlocal place
        for length in range(1, 17):
            found = table.get(digits[place : place + length])
            if found is not None:
                place += length
                return found
        raise AssertionError("no such code")

    def number(size: int) -> int:
        nonlocal place
        if size == 0:
            return 0
        bits = digits[place : place + size]
        place += size
        return int(bits, 2) - (0 if bits[0] == "1" else (1 << size) - 1)

    mcus: list[tuple[int, list[int]]] = []
    predictors = [0] * len(picture.components)
    for mcu in picture.mcus(picture.components):
        mcus.append((place, list(predictors)))
        for i, where in mcu:
            block = [0] * 64
            predictors[i] += number(symbol(tables[0, slots[i] >> 4]))
            block[0] = predictors[i]
            k = 1
            while k < 64:
                both = symbol(tables[1, slots[i] & 15])
                if both == 0:
                    break
                k += both >> 4
                block[k] = number(both & 15)
                k += 1
            component = picture.components[i]
            if where[0] < component.wide and where[1] < component.high:
                component.blocks[where] = block
    return picture, mcus
