# SPDX-License-Identifier: Apache-2.0
"""A chart in a page or a file: a wide and a narrow drawing, a legend, and the numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from headrace.drawing.markup import clean
from headrace.insight.kit.style import MARKS, PALETTES
from headrace.insight.kit.svg import GLYPH, Drawing

WIDE, NARROW = 760, 360  # pixels; the page shows the one that fits the screen
MOST_ROWS = 200  # maximum number of table rows; the others are counted


@dataclass(frozen=True)
class Chart:
    """``draw`` makes the drawing for a width, and returns its height."""

    title: str
    told: str  # a sentence or two with numbers, also used as alternative text
    draw: Callable[[float], tuple[Drawing, float]]
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    legend: Sequence[tuple[str, str]] = field(default=())  # pairs of CSS class and meaning


class Rows:
    """Marks in rows with a label and a value: next to them if there is room, otherwise above."""

    def __init__(self, width: float, top: float, gutter: float = 204, value: float = 132) -> None:
        self.drawing = Drawing(width)
        self.wide = width > 500
        self._top = top
        self._told: list[tuple[int, str, str, str]] = []
        self._height = 30 if self.wide else 44
        self.left = gutter if self.wide else 2.0
        self.right = width - (value if self.wide else 8.0)

    def middle(self, row: int) -> float:
        """The vertical center of a row's mark."""
        return self._top + row * self._height + (15 if self.wide else 31)

    def bottom(self, rows: int) -> float:
        return self._top + rows * self._height + 4

    def finish(self) -> Drawing:
        """Draws the labels last, on top of all lines."""
        for row, label, value, kind in self._told:
            self._write(row, label, value, kind)
        return self.drawing

    def tell(self, row: int, label: str, value: str, kind: str = "") -> None:
        self._told.append((row, label, value, kind))

    def _write(self, row: int, label: str, value: str, kind: str) -> None:
        drawing = self.drawing
        if self.wide:
            y = self.middle(row) + 4
            drawing.text(self.left - 14, y, label, f"end {kind}", int((self.left - 14) / GLYPH))
            drawing.text(self.right + 14, y, value, kind, 24)
        else:
            y = self.middle(row) - 14
            drawing.text(0, y, label, kind, 30)
            drawing.text(drawing.width, y, value, f"end {kind}", 24)

    def mark_line(self, x: float, rows: int, text: str) -> None:
        """A vertical line through all rows, with its name above."""
        half = 3.2 * len(text)
        near = min(max(x, half), self.drawing.width - half)
        self.drawing.text(near, self._top - 8, text, "strong mid", 40)
        self.drawing.line("measured", x, self._top - 2, x, self.bottom(rows))


def html(chart: Chart, number: int) -> str:
    """The figure, with its numbers in a collapsible part."""
    drawings = []
    for width, kind in ((WIDE, "wide"), (NARROW, "narrow")):
        drawing, height = chart.draw(width)
        name = f"f{number}{kind[0]}"
        drawings.append(drawing.svg(height, name, chart.title, chart.told, kind))
    legend = "".join(
        f'<li><span class="key {kind}"></span>{clean(text)}</li>' for kind, text in chart.legend
    )
    keys = f'<ul class="legend">{legend}</ul>' if legend else ""
    return (
        f'<figure id="figure-{number}"><figcaption><b>Figure {number}.</b> {clean(chart.title)}'
        f"</figcaption>{keys}{''.join(drawings)}"
        f"<p>{clean(chart.told)}</p><details><summary>The numbers of figure {number}</summary>"
        f"{table(chart.header, chart.rows)}</details></figure>"
    )


def standalone(chart: Chart) -> str:
    """The drawing as an SVG file, with its title above it."""
    drawing, height = chart.draw(WIDE)
    drawing.text(0, -14, chart.title, "title")
    return drawing.file(-38, height, chart.title, chart.told, PALETTES + MARKS)


def table(header: Sequence[str], rows: Sequence[Sequence[str]], words: Sequence[int] = (0,)) -> str:
    """A table; columns other than ``words`` hold numbers. At most 200 rows are shown."""

    def cell(tag: str, column: int, text: str) -> str:
        scope = ' scope="col"' if tag == "th" else ""
        kind = "" if column in words else ' class="n"'
        return f"<{tag}{scope}{kind}>{clean(text, 600)}</{tag}>"

    head = "".join(cell("th", n, text) for n, text in enumerate(header))
    body = "".join(
        f"<tr>{''.join(cell('td', n, text) for n, text in enumerate(row))}</tr>"
        for row in rows[:MOST_ROWS]
    )
    more = len(rows) - MOST_ROWS
    rest = f"<p>{more:,} more are not shown.</p>" if more > 0 else ""
    return (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
        f"</div>{rest}"
    )
