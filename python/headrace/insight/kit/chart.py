# SPDX-License-Identifier: Apache-2.0
"""Charts as SVG text. Colours are classes: a page's style, or `standalone`, decides them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headrace.drawing.markup import clean
from headrace.insight.kit.svg import Drawing, Scale

WIDTH = 760
SERIES = 7  # c0 .. c6

STYLE = """
text{font:14px system-ui,-apple-system,"Segoe UI","DejaVu Sans",sans-serif;fill:var(--ink)}
text.strong{font-weight:650}.faint{fill:var(--faint);font-size:12.5px}
text.end{text-anchor:end}text.middle{text-anchor:middle}text.inside{fill:#fff}
.track{fill:var(--track)}.grid{stroke:var(--track);stroke-width:1}
.c0{fill:var(--c0)}.c1{fill:var(--c1)}.c2{fill:var(--c2)}.c3{fill:var(--c3)}
.c4{fill:var(--c4)}.c5{fill:var(--c5)}.c6{fill:var(--c6)}
.line{fill:none;stroke:var(--c0);stroke-width:2.2;stroke-linejoin:round;stroke-linecap:round}
.dots{fill:var(--c0);opacity:.28}.whisker{stroke:var(--ink);stroke-width:1.4}
"""
LIGHT = (
    "--ink:#1c2733;--faint:#5d6b7a;--paper:#fff;--track:#e4e9ee;--c0:#0b6e8f;--c1:#93a3b3;"
    "--c2:#d98e2b;--c3:#5c8a3a;--c4:#8a5ea8;--c5:#c2564b;--c6:#b7c2cc"
)
DARK = (
    "--ink:#e3e9ef;--faint:#97a5b3;--paper:#11181f;--track:#2a3641;--c0:#35a7cc;--c1:#66788a;"
    "--c2:#e0a04a;--c3:#7fb257;--c4:#ad86c9;--c5:#dd7a70;--c6:#4b5a68"
)


@dataclass(frozen=True)
class Bar:
    """One bar: what it is, how long, and what to say at its end."""

    label: str
    value: float
    text: str = ""
    low: float | None = None  # of a spread, drawn as a whisker
    high: float | None = None
    ours: bool = False


def bar_chart(
    bars: Sequence[Bar], title: str = "", unit: str = "", longest: float | None = None
) -> str:
    """Horizontal bars from zero. `ours` are drawn in the first colour.

    longest: the value of a bar of full width; default, that of the longest bar. Charts that are
    compared with one another need the same.
    """
    label_width, row, top = 210, 38, 30 if title else 6
    room = WIDTH - label_width - 150
    longest = longest or max([bar.high or bar.value for bar in bars], default=0) or 1.0
    drawing = _titled(title, unit)
    for i, bar in enumerate(bars):
        y = top + i * row
        length = max(2.0, room * bar.value / longest)
        kind, strong = ("c0", "strong") if bar.ours else ("c1", "")
        drawing.text(label_width - 12, y + 22, bar.label, f"end {strong}".strip())
        drawing.rect(kind, label_width, y + 6, length, 24)
        end = label_width + length
        if bar.low is not None and bar.high is not None:
            left, right = (label_width + room * v / longest for v in (bar.low, bar.high))
            end = max(end, right)
            drawing.line("whisker", left, y + 18, right, y + 18)
            for edge in (left, right):
                drawing.line("whisker", edge, y + 13, edge, y + 23)
        drawing.text(end + 10, y + 22, bar.text or f"{bar.value:,.0f}", strong)
    return _svg(drawing, top + len(bars) * row + 4, title)


def share_chart(parts: Sequence[tuple[str, float]], title: str = "") -> str:
    """One bar of full width, divided in proportion, with a legend below it. Values are seconds."""
    top = 30 if title else 4
    total = sum(value for _, value in parts) or 1.0
    drawing = _titled(title)
    x = 0.0
    for i, (_, value) in enumerate(parts):
        width = WIDTH * value / total
        drawing.rect(f"c{i % SERIES}", x, top, width - 1, 30)
        if width > 46:
            share = f"{100 * value / total:.0f} %"
            drawing.text(x + width / 2, top + 20, share, "middle inside")
        x += width
    x, y = 0.0, top + 54
    for i, (name, value) in enumerate(parts):
        text = f"{name} {100 * value / total:.0f} %, {value:.2f} s"
        width = 30 + 7.4 * len(text)
        if x + width > WIDTH:
            x, y = 0.0, y + 24
        drawing.rect(f"c{i % SERIES}", x, y - 11, 12, 12)
        drawing.text(x + 18, y, text)
        x += width
    return _svg(drawing, y + 12, title)


def line_chart(values: Sequence[float], title: str = "", x_label: str = "", smooth: int = 9) -> str:
    """Values in order as faint dots, and their running mean as a line."""
    height, top, left, bottom = 210, 34 if title else 10, 52, 30
    low, high = min(values, default=0.0), max(values, default=1.0)
    low, high = min(0.0, low), high if high > low else low + 1
    across = Scale(0, max(1, len(values) - 1), left, WIDTH - 12)
    up = Scale(low, high, height - bottom, top)
    drawing = _titled(title)
    drawing.axis_left(up, left, WIDTH - 12, lambda tick: f"{tick:g}")
    means = []
    for i, value in enumerate(values):
        drawing.dot("dots", across(i), up(value), 2.6)
        near = values[max(0, i - smooth // 2) : i + smooth // 2 + 1]
        means.append((across(i), up(sum(near) / len(near))))
    drawing.path("line", means)
    drawing.text(WIDTH - 12, height - 8, x_label, "faint end")
    return _svg(drawing, height, title)


def standalone(svg: str) -> str:
    """The chart as an SVG file of its own, with light and dark colours and some margin."""
    view = svg.split('viewBox="', 1)[1].split('"', 1)[0]
    _, _, width, height = (float(v) for v in view.split())
    pad = 18
    dark = f"@media (prefers-color-scheme:dark){{:root{{{DARK}}}}}"
    style = f":root{{{LIGHT}}}{dark}{STYLE}.paper{{fill:var(--paper)}}"
    inner = svg.split(">", 1)[1].rsplit("</svg>", 1)[0]
    width, height = width + 2 * pad, height + 2 * pad
    paper = Drawing(width)
    paper.rect("paper", -pad, -pad, width, height)
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" role="img" '
        f'viewBox="{-pad} {-pad} {width:g} {height:g}" width="{width:g}" height="{height:g}">'
        f"<style>{style}</style>{''.join(paper.parts)}{inner}</svg>\n"
    )


def _svg(drawing: Drawing, height: float, title: str) -> str:
    label = f' aria-label="{clean(title)}"' if title else ""
    parts = "".join(drawing.parts)
    return f'<svg viewBox="0 0 {WIDTH} {height:g}" role="img"{label}>{parts}</svg>'


def _titled(title: str, unit: str = "") -> Drawing:
    """A drawing with its title above, and what the values are."""
    drawing = Drawing(WIDTH)
    if title:
        tail = f'<tspan class="faint" dx="10" font-weight="400">{clean(unit)}</tspan>'
        inner = clean(title) + (tail if unit else "")
        drawing.parts.append(f'<text class="strong" x="0" y="16">{inner}</text>')
    return drawing
