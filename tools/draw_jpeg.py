#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the figures of docs/internals/jpeg.md into a folder:

python tools/draw_jpeg.py docs/images

Their content is computed: codes from the standard's table, blocks from a window's geometry, bit
planes from coefficients.
"""

from __future__ import annotations

import sys
from pathlib import Path

from draw_packed import bit_planes, compact, packed_row
from draw_progressive import refinement, scans
from drawing import WIDTH, Drawing

# The AC codes of luminance in Annex K (table K.5): code lengths, then symbols, as DHT stores them.
LUMINANCE_AC_COUNTS = [0, 2, 1, 3, 3, 2, 4, 3, 5, 5, 4, 4, 0, 0, 1, 125]
LUMINANCE_AC_FIRST = [0x01, 0x02, 0x03, 0x00, 0x04, 0x11, 0x05, 0x12, 0x21, 0x31, 0x41]


def code_of(symbol: int) -> str:
    """The code of a symbol of LUMINANCE_AC_FIRST, by the rule of Annex C."""
    code, at = 0, 0
    for length, count in enumerate(LUMINANCE_AC_COUNTS, 1):
        for _ in range(count):
            if LUMINANCE_AC_FIRST[at] == symbol:
                return f"{code:0{length}b}"
            code, at = code + 1, at + 1
        code <<= 1
    raise KeyError(symbol)


def magnitude(value: int) -> str:
    """The bits after the code of a coefficient (F.1.2.1)."""
    size = abs(value).bit_length()
    return f"{value if value > 0 else value + (1 << size) - 1:0{size}b}"


def pair_table() -> Drawing:
    """Eleven bits of a stream: two coefficients."""
    coefficients = [(0, -3), (0, 11), (1, 1), (0, 1)]  # zeros before it, and its value
    picture = Drawing(286, "Eleven bits index a table entry that holds two AC symbols")
    cell, x, y = 25, 0, 30
    picture.text(0, 14, "The stream", "strong")
    fields: list[tuple[str, str]] = []
    for i, (zeros, value) in enumerate(coefficients):
        code = code_of(zeros << 4 | abs(value).bit_length())
        fields.append((code, "c0" if i < 2 else "c6"))
        fields.append((magnitude(value), "c2" if i < 2 else "track"))
    ends, at = [], 0
    for bits, kind in fields:
        for bit in bits:
            if at < 27:
                picture.box(x + at * cell, y, cell - 1, 28, kind)
                ink = "inside" if kind in ("c0", "c2") else ""
                picture.text(x + at * cell + 12, y + 19, bit, f"middle mono {ink}")
            at += 1
        ends.append(at)
    # The result of one lookup: two codes and two magnitudes.
    names = ["0/2", "-3", "0/4", "+11"]
    start = 0
    for name, end in zip(names, ends, strict=False):
        picture.text((start + end) / 2 * cell, y + 46, name, "middle small mono")
        start = end
    picture.bracket(0, 11 * cell, y + 56, "the next 11 bits: the index")
    taken = ends[3]
    picture.path(f"M{taken * cell:g} {y - 6:g}v42", "crop")
    picture.text(taken * cell + 6, y - 6, f"{taken} bits taken; the last magnitude may lie outside")
    y = 150
    picture.text(0, y, "The entry", "strong")
    parts = [
        ("first takes", "4", "c1"),
        ("first advances", "1", "c0"),
        ("first size", "2", "c2"),
        ("last size", "4", "c2"),
        ("advances", "2", "c0"),
        ("end, rare", "0, 0", "c5"),
        ("bits", str(taken), "c1"),
    ]
    widths = [100, 128, 90, 82, 108, 108, 90]
    at_x = 0.0
    for (name, value, kind), width in zip(parts, widths, strict=True):
        picture.box(at_x, y + 12, width - 2, 30, kind, value, "inside mono")
        picture.text(at_x + width / 2, y + 60, name, "middle faint")
        at_x += width
    y = 238
    picture.text(0, y, "The note", "strong")
    picture.box(0, y + 12, 350, 30, "c0", "the 32 bits of the stream from here on", "inside")
    picture.box(352, y + 12, 354, 30, "c1", "the entry", "inside")
    return picture


def lanes() -> Drawing:
    """Each lookup waits for the previous one; four streams fill the time."""
    picture = Drawing(236, "A lookup waits for the one before; lookups of four images overlap")
    left, step, each = 130, 74, 18

    def chain(y: float, start: float, kind: str, count: int) -> None:
        for i in range(count):
            x = left + start + i * step
            picture.box(x, y, 20, 20, kind)
            if i + 1 < count:
                picture.path(f"M{x + 21:g} {y + 10:g}H{x + step - 2:g}", "arrow")

    picture.text(0, 14, "One stream: shift, load from the table, subtract, and only then the next")
    picture.text(0, 48, "image 1")
    chain(33, 0, "c0", 8)
    picture.text(0, 96, "Four streams in one loop: the core works on all of them at once")
    for lane, kind in enumerate(("c0", "c2", "c3", "c4")):
        picture.text(0, 130 + lane * 26, f"image {lane + 1}")
        chain(115 + lane * 26, lane * each, kind, 8)
    picture.path(f"M{left} 222H{WIDTH}", "arrow")
    picture.text(left, 236, "time", "faint")
    return picture


def windows() -> Drawing:
    """Which luma blocks of a 4:2:0 picture each format entropy-decodes and transforms for one
    crop."""
    columns, rows = 31, 24  # of blocks
    left, top, right, bottom = 166, 84, 237, 147  # the crop's first and last pixels
    picture = Drawing(284, "The blocks that plain, indexed and packed decoding touch for one crop")
    cell = 240 / columns
    first, end = left // 8 // 4 * 4, right // 8 + 1  # columns begin at a quad of blocks
    needed = range(top // 8, bottom // 8 + 1)
    # The neighbors of the chroma rows, in MCU rows of two blocks.
    walked = range((top // 2 - 1) // 8 * 2, ((bottom // 2 + 1) // 8 + 1) * 2)
    for panel, name in enumerate(("plain", "indexed", "packed")):
        x0, y0 = panel * 260, 26
        picture.text(x0, 14, name, "strong")
        for row in range(rows):
            for column in range(columns):
                if row in needed and first <= column < end:
                    kind = "c0"
                elif name == "plain":  # every code, up to the last one needed
                    last = row in walked and row >= walked.stop - 2
                    walks = row < walked.stop and (column < end or not last)
                    kind = "c1" if walks else "track"
                elif name == "indexed":
                    kind = "c1" if row in walked and column < end else "track"
                else:  # from the start of its group of 16 blocks
                    kind = "c1" if row in needed and first // 16 * 16 <= column < end else "track"
                picture.box(x0 + column * cell, y0 + row * cell, cell - 1, cell - 1, kind)
        scale = cell / 8
        picture.box(
            x0 + left * scale,
            y0 + top * scale,
            (right - left + 1) * scale,
            (bottom - top + 1) * scale,
            "crop",
        )
    legend = [
        ("c0", "decoded and transformed: the crop (red), from a multiple of four blocks on"),
        ("c1", "read only to find where the next block begins"),
        ("track", "not touched"),
    ]
    for i, (kind, text) in enumerate(legend):
        picture.box(0, 224 + i * 22, 14, 14, kind)
        picture.text(22, 236 + i * 22, text)
    return picture


def inverse_transform() -> Drawing:
    """The layout of four blocks in a register."""
    picture = Drawing(
        252, "Four blocks in one 512-bit register, two words of a column side by side"
    )
    picture.text(0, 14, "Four neighboring blocks", "strong")
    kinds = ("c0", "c2", "c3", "c4")
    rows, columns = (0, 4), (0, 4, 2, 6)  # the first register of eight
    for block, kind in enumerate(kinds):
        for row in range(8):
            for column in range(8):
                chosen = row in rows and column in columns
                picture.box(
                    block * 104 + column * 12,
                    26 + row * 12,
                    11,
                    11,
                    kind if chosen else f"{kind} soft",
                )
    picture.text(440, 50, "rows 0 and 4 of each block at columns")
    picture.text(440, 70, "0, 4, 2, 6: the first register of eight")
    picture.path("M420 84C428 112 428 118 404 138", "arrow")
    y, cell = 144, 23.4
    for block, kind in enumerate(kinds):
        for word in range(8):
            row, column = rows[word % 2], columns[word // 2]
            x = block * 8 * cell + word * cell + block * 3
            picture.box(x, y, cell - 1, 28, kind, f"{row}{column}", "inside small mono")
    y += 40
    picture.text(0, y + 14, "dpwssd", "mono strong")
    picture.text(
        74, y + 14, "multiplies the two words of each 32 bits by two constants and adds both:"
    )
    picture.text(
        74, y + 36, "x0·c + x4·d, one butterfly of 16 columns in an instruction, exact in 32 bits."
    )
    picture.text(
        0, y + 66, "Pairs are (0,4) (2,6) (7,1) (3,5); packed sums of the first pass are such pairs"
    )
    return picture


def upsampling() -> Drawing:
    """Fancy upsampling along a row."""
    picture = Drawing(236, "Each new sample is three quarters of the nearer old one; edges repeat")
    picture.text(0, 14, "One row of chroma, twice as many samples", "strong")
    olds, gap, left = 5, 140, 70
    for i in range(olds):
        x = left + i * gap
        picture.box(x - 17, 38, 34, 30, "c0", "abcde"[i], "inside mono")
        for side in (-1, 1):
            at = x + side * gap / 4
            picture.path(f"M{x:g} 68L{at:g} 122", "thick edge")
            neighbor = i + side
            if 0 <= neighbor < olds:
                picture.path(f"M{left + neighbor * gap:g} 68L{at:g} 122", "edge")
            else:
                picture.path(f"M{x:g} 68L{at:g} 122", "crop")
            number = 2 * i + (side > 0)
            picture.box(at - 17, 122, 34, 30, "c2", str(number), "inside mono")
    picture.text(0, 180, "out[2i]   = (3·in[i] + in[i-1] + 1) >> 2", "mono small")
    picture.text(0, 200, "out[2i+1] = (3·in[i] + in[i+1] + 2) >> 2", "mono small")
    picture.text(400, 180, "thick: weight 3/4; thin: 1/4", "small")
    picture.text(400, 200, "red: at the image's edge the sample is copied,", "small")
    picture.text(400, 217, "at the window's edge it is not", "small")
    return picture


DRAWINGS = {
    "jpeg-pair-table": pair_table,
    "jpeg-lanes": lanes,
    "jpeg-windows": windows,
    "jpeg-idct": inverse_transform,
    "jpeg-upsampling": upsampling,
    "jpeg-scans": scans,
    "jpeg-refinement": refinement,
    "jpeg-bit-planes": bit_planes,
    "jpeg-packed-row": packed_row,
    "jpeg-compact": compact,
}


def main() -> None:
    folder = Path(sys.argv[1])
    for name, draw in DRAWINGS.items():
        (folder / f"{name}.svg").write_text(draw().svg())


if __name__ == "__main__":
    main()
