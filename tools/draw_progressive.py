# SPDX-License-Identifier: Apache-2.0
"""The figures of progressive files in docs/internals/jpeg.md: draw_jpeg.py writes them."""

from __future__ import annotations

from drawing import Drawing


def scans() -> Drawing:
    """Which MCU rows of which scans are decoded for a window, by libjpeg and by us."""
    picture = Drawing(
        318, "libjpeg walks scan after scan; Headrace walks row after row of all scans"
    )
    count = 10  # of scans
    rows, shown = 12, range(3, 6)  # MCU rows; those of the window
    cell, line = 34, 15
    for panel, (name, kept) in enumerate(
        (("libjpeg: scan by scan", range(rows)), ("Headrace: row by row", range(4, 5)))
    ):
        x0, y0 = panel * 390, 48
        picture.text(x0, 14, name, "strong")
        for scan in range(count):
            for row in range(rows):
                walked = panel == 0 or row < shown.stop
                kind = ("c0" if row in shown else "c1") if walked else "track"
                picture.box(x0 + scan * cell, y0 + row * line, cell - 2, line - 2, kind)
            picture.text(x0 + scan * cell + 16, y0 - 8, str(scan + 1), "middle faint small")
        order = (
            "".join(f"M{x0 + s * cell + 16} {y0 + 4}v{rows * line - 10}" for s in range(count))
            if panel == 0
            else "".join(
                f"M{x0 + 4} {y0 + r * line + 6}h{count * cell - 10}" for r in range(shown.stop)
            )
        )
        picture.path(order, "arrow")
        top, bottom = y0 + kept.start * line - 2, y0 + kept.stop * line
        picture.path(
            f"M{x0 - 3} {top}h{count * cell + 4}v{bottom - top}h-{count * cell + 4}z",
            "crop",
        )
    legend = [
        ("c0", "rows of MCUs that the window takes"),
        ("c1", "read for what comes after them: later rows of the same scan"),
        ("track", "not touched"),
    ]
    for i, (kind, text) in enumerate(legend):
        picture.box(0, 240 + i * 22, 14, 14, kind)
        picture.text(22, 252 + i * 22, text)
    picture.box(0, 312, 14, 2, "c5")
    picture.text(22, 318, "red: coefficients that are in memory at once")
    return picture


def refinement() -> Drawing:
    """A refined block: what each bit of the stream belongs to."""
    picture = Drawing(
        236, "A refined block: bits of the stream and the coefficients they belong to"
    )
    before = [9, 0, -4, 0, 2, 0, 0, 6, -2, 0, 0, 3, 0, 2, 0, 0]
    zeros, negative = 2, True  # the symbol: a coefficient begins after two that stay 0
    bits = [1, 0, 1, 1, 0]  # corrections up to there
    left, cell, line = 130, 38, 32
    picture.text(0, 34, "coefficients")
    at = -1
    passed = []
    for i, value in enumerate(before):
        picture.box(left + i * cell, 14, cell - 3, line - 4, "c1 soft" if value == 0 else "c1")
        picture.text(left + i * cell + 17, 33, str(value), "middle mono")
        if at < 0 and value == 0:
            if zeros == 0:
                at = i
            zeros -= 1
        elif at < 0:
            passed.append(i)
    picture.text(0, 76, "not zero (mask)")
    picture.text(0, 112, "the stream")
    for i, value in enumerate(before):
        picture.box(left + i * cell, 56, cell - 3, line - 4, "c0" if value else "track")
        picture.text(
            left + i * cell + 17,
            75,
            "1" if value else "0",
            f"middle mono {'inside' if value else ''}",
        )
    fields = [("code 2/1", 78, "c3"), ("-", 22, "c5")]
    x = left
    for name, width, kind in fields:
        picture.box(x, 94, width - 3, line - 4, kind, name, "inside mono")
        x += width
    for bit, to in zip(bits, passed, strict=False):
        picture.box(x, 94, 19, line - 4, "c2", str(bit), "inside mono")
        picture.path(f"M{x + 9} 123L{left + to * cell + 17} 148", "arrow")
        x += 22
    picture.text(x + 8, 113, "next code ...", "faint")
    picture.text(0, 172, "dealt out (pdep)")
    for i in range(len(before)):
        if i in passed[: len(bits)]:
            bit = bits[passed.index(i)]
            picture.box(left + i * cell, 152, cell - 3, line - 4, "c2", str(bit), "inside mono")
        elif i == at:
            picture.box(
                left + i * cell,
                152,
                cell - 3,
                line - 4,
                "c5",
                "-1" if negative else "1",
                "inside mono",
            )
        else:
            picture.box(left + i * cell, 152, cell - 3, line - 4, "track")
    picture.text(
        0,
        206,
        "2/1: a coefficient begins behind two zeros that stay. Which they are, the mask says,",
    )
    picture.text(
        0,
        226,
        "and so how many coefficients before it have a correction bit: all are dealt out at once.",
    )
    return picture
