# SPDX-License-Identifier: Apache-2.0
"""Charts shared by several pages: horizontal bars, and a curve."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from headrace.insight.kit.figure import Chart, Rows
from headrace.insight.kit.svg import Drawing, Scale

Say = Callable[[float], str]


class Bar(NamedTuple):
    """One bar: label, length, and the text at its end. ``kind``: the CSS class of its color."""

    label: str
    value: float
    text: str
    kind: str = "mute"
    low: float | None = None  # start of a range, drawn as a whisker
    high: float | None = None


class Words(NamedTuple):
    """The texts of a chart: see Chart."""

    title: str
    told: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]


def bars(words: Words, shown: Sequence[Bar], say: Say, unit: str, gutter: float = 204) -> Chart:
    """Horizontal bars from zero; those that are not "mute" have bold labels.

    ``say``: formats an axis value; ``gutter``: space for the labels.
    """
    most = max([bar.high or bar.value for bar in shown], default=0) or 1.0

    def draw(width: float) -> tuple[Drawing, float]:
        rows = Rows(width, 0, gutter)
        scale = Scale(0, most * 1.02, rows.left, rows.right)
        bottom = rows.bottom(len(shown))
        rows.drawing.axis_below(scale, 2, bottom, say, unit)
        for place, bar in enumerate(shown):
            y = rows.middle(place)
            end = max(scale(bar.value), rows.left + 1)
            rows.drawing.rect(bar.kind, rows.left, y - 8, end - rows.left, 16)
            if bar.low is not None and bar.high is not None:
                left, right = scale(bar.low), scale(bar.high)
                rows.drawing.line("measured", left, y, right, y)
                for edge in (left, right):
                    rows.drawing.line("measured", edge, y - 5, edge, y + 5)
            rows.tell(place, bar.label, bar.text, "" if bar.kind == "mute" else "strong")
        return rows.finish(), bottom + 36

    return Chart(words.title, words.told, draw, words.header, words.rows)


class Axis(NamedTuple):
    """The range of an axis, the format of its values, and their positions."""

    low: float
    high: float
    say: Say
    unit: str = ""
    ticks: Sequence[float] | None = None  # default: round numbers


def curve(
    words: Words,
    points: Sequence[tuple[float, float]],
    across: Axis,
    up: Axis,
    more: Callable[[Drawing, Scale, Scale], None] = lambda drawing, x, y: None,
    height: float = 230.0,
) -> Chart:
    """A line through points. ``more`` draws additional elements, given the two scales."""

    def draw(width: float) -> tuple[Drawing, float]:
        drawing = Drawing(width)
        x = Scale(across.low, across.high, 74, width - 16)
        y = Scale(up.low, up.high, height - 44, 24)
        drawing.axis_left(y, 74, width - 16, up.say)
        ticks = across.ticks or x.ticks(max(2, int(width / 90)))
        for tick in ticks:
            drawing.text(x(tick), height - 26, across.say(tick), "faint mid")
        drawing.text(width - 16, height - 6, across.unit, "faint end")
        drawing.text(0, 11, up.unit, "faint")
        drawing.path("curve", [(x(at), y(value)) for at, value in points])
        more(drawing, x, y)
        return drawing, height

    return Chart(words.title, words.told, draw, words.header, words.rows)
