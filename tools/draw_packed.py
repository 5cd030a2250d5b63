# SPDX-License-Identifier: Apache-2.0
"""The figures of packed files in docs/internals/jpeg.md: draw_jpeg.py writes them."""

from __future__ import annotations

from drawing import Drawing

EXAMPLE_BLOCK = [-3, 5, 0, 1, -1, 0, 0, 12, 0, 0, 2, -1, 0, 0, 0, -6, 0, 1, 0, 0, 1]


def bit_planes() -> Drawing:
    """A block's AC coefficients in packed form."""
    values = EXAMPLE_BLOCK
    picture = Drawing(300, "A block's coefficients as bit planes, each shorter than the last")
    left, cell, line = 150, 28.5, 30
    sizes = [abs(v).bit_length() for v in values]
    largest = max(sizes)

    def plane(row: int, name: str, cells: list[str | None], kind: str) -> None:
        y = 44 + row * line
        picture.text(0, y + 18, name)
        for i, bit in enumerate(cells):
            if bit is not None:
                on = kind if bit == "1" else "track"
                ink = "inside mono" if bit == "1" else "mono"
                picture.box(left + i * cell, y, cell - 2, line - 6, on, bit, ink)

    picture.text(0, 30, "zigzag 1..21", "faint")
    for i, value in enumerate(values):
        picture.text(left + i * cell + 13, 30, str(value), "middle mono strong")
    plane(0, "not zero", ["1" if v else "0" for v in values], "c0")
    plane(1, "sign", [("1" if v < 0 else "0") if v else None for v in values], "c5")
    row = 2
    for size in range(2, largest + 1):
        have = [s >= size - 1 and s > 0 for s in sizes]
        reach = [
            ("1" if s >= size else "0") if h else None for s, h in zip(sizes, have, strict=True)
        ]
        plane(row, f"size {size} or more", reach, "c3")
        bit = size - 2
        low = [
            str(abs(v) >> bit & 1) if s >= size else None
            for v, s in zip(values, sizes, strict=True)
        ]
        plane(row + 1, f"bit {bit} of those", low, "c2")
        row += 2
    return picture


def compact() -> Drawing:
    """How bytes of larger coefficients become those of one size less, without pdep."""
    picture = Drawing(262, "A plane of bits opens gaps between bytes, and constants fill them")
    sizes = [3, 1, 2, 4, 1, 3, 2, 1, 1, 2]  # bits of the nonzero coefficients
    values = [5, 1, 3, 11, 1, 6, 2, 1, 1, 2]
    left, cell, height = 210, 44, 30
    y = 20
    for least in (3, 2, 1):
        members = [i for i, size in enumerate(sizes) if size >= least]
        x = left
        picture.text(0, y + 20, f"{least} bits or more" if least > 1 else "all that are not zero")
        for i in members:
            kind = "c0" if sizes[i] > least else "c3"
            picture.box(x, y, cell - 3, height, kind, str(values[i]), "inside mono")
            x += cell
        if least > 1:
            below = [i for i, size in enumerate(sizes) if size >= least - 1]
            y += 48
            picture.text(0, y + 17, f"plane: {least} bits or more?", "faint")
            for at, i in enumerate(below):
                bit = sizes[i] >= least
                kind = "c0 soft" if bit else "track"
                picture.box(left + at * cell, y, cell - 3, 22, kind, str(int(bit)), "mono")
                if bit:
                    source = left + members.index(i) * cell + cell / 2
                    target = left + at * cell + cell / 2
                    picture.path(f"M{source:g} {y - 17}L{target:g} {y - 2}", "arrow")
            y += 26
    picture.text(
        0,
        y + 54,
        "Green: gaps, filled with the smallest of that size, to which a plane adds a bit.",
    )
    return picture


def packed_row() -> Drawing:
    """The tables and streams of a row of blocks."""
    picture = Drawing(268, "A packed row: a table of quads, a table of groups, and streams of bits")
    picture.text(0, 14, "A row of blocks, 16 a group, 4 a quad", "strong")
    cell = 11.2
    for block in range(44):
        x = block * cell + block // 16 * 8 + block // 4 * 2
        picture.box(x, 26, cell - 1.5, 18, ("c0", "c2", "c3", "c4")[block % 4])
    picture.text(0, 82, "Its bytes", "strong")
    at = 0.0
    for name, count, width, kind in (("quads", 11, 21, "c1"), ("groups", 3, 36, "c5")):
        start = at
        for _ in range(count):
            picture.box(at, 94, width - 1.5, 26, kind)
            at += width
        picture.bracket(start, at, 124, f"{name}: {count} x {4 if name == 'quads' else 6} bytes")
        at += 16
    start = at
    for lengths in ((30, 26, 33, 28), (24, 31, 27, 30), (22, 19, 24, 25)):
        for length, kind in zip(lengths, ("c0", "c2", "c3", "c4"), strict=True):
            picture.box(at, 94, length - 1.5, 26, kind)
            at += length
        at += 6
    picture.bracket(start, at, 124, "payload: four streams of bits a group")
    picture.text(0, 182, "A quad", "strong")
    at = 0
    fields = [(f"last {i}", 88, kind) for i, kind in enumerate(("c0", "c2", "c3", "c4"))]
    for name, width, kind in [*fields, ("DC width", 100, "c1"), ("levels", 100, "c5")]:
        picture.box(at, 194, width - 2, 28, kind, name, "inside")
        at += width
    for i, bits in enumerate((6, 6, 6, 6)):
        picture.text(i * 88 + 44, 240, f"{bits} bits", "middle faint")
    picture.text(4 * 88 + 50, 240, "4 bits", "middle faint")
    picture.text(4 * 88 + 150, 240, "4 bits", "middle faint")
    picture.text(
        0, 264, "Block 4q + j of a group is in stream j: four chains of reads, side by side."
    )
    return picture
