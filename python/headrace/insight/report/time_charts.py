# SPDX-License-Identifier: Apache-2.0
"""Charts with a clock on an axis: a waterfall of steps, the durations of waits and steps, memory.
Each function returns a chart, or a sentence that says why it cannot be drawn.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING

from headrace.insight.kit.charts import Axis, Words, curve
from headrace.insight.kit.figure import Chart
from headrace.insight.kit.svg import Drawing, Scale, finite
from headrace.insight.measure.recording import Bin, Event, Recording
from headrace.insight.report.wording import duration, duration_tick, percent, size

if TYPE_CHECKING:
    from headrace.insight.report.results import Results

_STRETCH = 8  # number of batches in a waterfall
_KEYS = (("data", "waiting for data"), ("step", "in the training step"))


def loop_of(report: Results) -> Recording | None:
    """The loop as in training, otherwise the loader alone, if it was recorded."""
    for name in ("real", "loader"):
        loop = report.timeline.loops.get(name)
        if loop is not None and any(event.window >= 0 for event in loop.events):
            return loop
    return None


def stretches(loop: Recording) -> tuple[list[Event], list[Event]]:
    """Consecutive batches: a typical series, and one around the slowest batch."""
    events = [e for e in loop.events if e.window >= 0 and finite(e.seconds)]
    runs: list[list[Event]] = []
    for event in events:
        follows = runs and event.number == runs[-1][-1].number + 1
        if follows and event.window == runs[-1][-1].window:
            runs[-1].append(event)
        else:
            runs.append([event])
    parts = [run[n : n + _STRETCH] for run in runs for n in range(max(1, len(run) - _STRETCH + 1))]
    longest = max((len(part) for part in parts), default=0)
    whole = [part for part in parts if len(part) == longest]
    if not whole:
        return [], []
    middle = statistics.median_low([_seconds(part) for part in whole])
    typical = next(part for part in whole if _seconds(part) == middle)
    slowest = max(events, key=lambda event: event.seconds)
    run = next(run for run in runs if slowest in run)
    place = max(0, min(run.index(slowest) - _STRETCH // 2, len(run) - _STRETCH))
    return typical, run[place : place + _STRETCH]


def _seconds(part: Sequence[Event]) -> float:
    return sum(event.seconds for event in part)


def waterfall(report: Results) -> Chart | str:
    """One row per batch: when it was waited for, and when the step ran."""
    loop = loop_of(report)
    if loop is None:
        return "No batches were recorded, so there are no steps to draw."
    typical, slow = stretches(loop)
    worst = max(slow, key=lambda event: event.seconds, default=None)
    if worst is None:
        return "No batches were recorded, so there are no steps to draw."

    def draw(width: float) -> tuple[Drawing, float]:
        drawing = Drawing(width)
        y = _panel(drawing, 0, "Typical batches", typical, None)
        return drawing, _panel(drawing, y + 26, "Around the slowest batch", slow, worst)

    told = (
        f"The slowest of {loop.batches:,} batches took {duration(worst.waited)} of waiting and "
        f"{duration(worst.stepped)} in the step"
    )
    told += "; it was the first of an epoch." if worst.restarted else "."
    table = [("typical", event) for event in typical] + [("slowest", event) for event in slow]
    return Chart(
        "The loop, batch by batch",
        told,
        draw,
        ("stretch", "batch", "records", "begins after", "wait", "step"),
        [
            (name, f"{e.number:,}", f"{e.records:,}",
             duration(e.begin - (typical if name == "typical" else slow)[0].begin),
             duration(e.waited), duration(e.stepped))
            for name, e in table
        ],
        _KEYS,
    )  # fmt: skip


def _panel(
    drawing: Drawing, top: float, title: str, part: Sequence[Event], marked: Event | None
) -> float:
    """Draws one series; returns its lower edge."""
    left, right, row = 74.0, drawing.width - 10, 19
    begin = part[0].begin
    end = max(event.begin + event.seconds for event in part) - begin
    scale = Scale(0, end or 1e-9, left, right)
    first, bottom = top + 22, top + 22 + row * len(part) + 4
    drawing.text(0, top + 12, title, "strong")
    unit, factor = _unit_of(end)
    drawing.axis_below(scale, first - 2, bottom, lambda v: f"{v * factor:.6g}", unit)
    for place, event in enumerate(part):
        y = first + place * row
        start, ready = scale(event.begin - begin), scale(event.begin + event.waited - begin)
        kind = "strong end" if event is marked else "faint end"
        drawing.text(left - 10, y + 13, f"{event.number:,}", kind)
        drawing.rect("data", start, y + 2, max(0.8, ready - start), row - 5)
        if event.stepped > 0:
            stop = scale(event.begin + event.seconds - begin)
            drawing.rect("step", ready, y + 2, max(0.8, stop - ready), row - 5)
    return bottom + 36


def latencies(report: Results) -> Chart | str:
    """A histogram of the durations of waits and steps, on a logarithmic axis."""
    loop = loop_of(report)
    if loop is None or not loop.waits:
        return "No waits were timed, so there is no histogram of them."
    panels = [("waits", "data", loop.waits, report.waits)]
    if loop.steps:
        panels.append(("steps", "step", loop.steps, report.steps))
    low = min(one.low for _, _, bins, _ in panels for one in bins)
    high = max(one.high for _, _, bins, _ in panels for one in bins)

    def draw(width: float) -> tuple[Drawing, float]:
        drawing, y = Drawing(width), 0.0
        scale = Scale(low, high, 46, width - 10, log=True)
        end = len(panels) * 144.0
        drawing.axis_below(scale, 34, end - 14, duration_tick, "time per batch, logarithmic")
        for title, kind, bins, spread in panels:
            drawing.text(0, y + 12, title, "strong")
            marks = [(k, getattr(spread, k)) for k in ("p50", "p99")] if spread else []
            _bars(drawing, scale, y + 34, kind, bins, marks)
            y += 144
        return drawing, end + 22

    total = sum(one.number for one in loop.waits)
    told = f"{total:,} batches."
    for title, spread in (("waits", report.waits), ("steps", report.steps)):
        if spread is not None and finite(spread.p99) and spread.p99 > 0:
            told += (
                f" Half of the {title} took less than {duration(spread.p50)} (p50), one in a "
                f"hundred more than {duration(spread.p99)} (p99)."
            )
    return Chart(
        "How long waits and steps take",
        told,
        draw,
        ("", "from", "below", "batches"),
        [
            (title, duration(one.low), duration(one.high), f"{one.number:,}")
            for title, _, bins, _ in panels
            for one in bins
            if one.number
        ],
    )


def _bars(
    drawing: Drawing,
    scale: Scale,
    top: float,
    kind: str,
    bins: Sequence[Bin],
    marks: Sequence[tuple[str, float]],
) -> None:
    total = sum(one.number for one in bins) or 1
    most = max(one.number for one in bins) / total
    height = Scale(0, most * 1.05, top + 96, top)
    drawing.axis_left(height, scale.begin, scale.end, percent, 3)
    for one in bins:
        x, share = scale(one.low), one.number / total
        if share:
            y = min(height(share), top + 95)
            drawing.rect(kind, x + 0.5, y, scale(one.high) - x - 1, top + 96 - y)
    before = -1e9
    for name, value in marks:
        if finite(value) and value > 0:
            x = scale(value)
            drawing.line("measured", x, top - 4, x, top + 96)
            if x - before > 30:
                drawing.text(x, top - 8, name, "faint mid")
            before = x


def memory(report: Results) -> Chart | str:
    """Resident bytes while the loop ran, with worker processes."""
    found = [(at, float(n)) for at, n in report.vitals.memory if finite(at) and finite(n)]
    if len(found) < 2:
        return "Memory was not measured, or the loop was too short."
    limit = report.host.get("memory_limit_bytes")
    most = max(value for _, value in found)
    bound = float(limit) if isinstance(limit, (int, float)) and limit < 3 * most else None
    last = max(at for at, _ in found)

    def limit_line(drawing: Drawing, x: Scale, y: Scale) -> None:
        if bound is not None:
            drawing.line("limit", x.begin, y(bound), x.end, y(bound))
            drawing.text(x.end - 2, y(bound) - 5, f"limit {size(bound)}", "end")

    told = f"At most {size(most)}, worker processes included."
    grown = report.vitals.memory_growth
    if grown is not None and finite(grown):
        told += f" After the warm-up, it grew by {size(grown)} per step."
    words = Words(
        "Memory while the loop ran",
        told,
        ("seconds", "resident"),
        [(f"{at:.1f}", size(value)) for at, value in found],
    )
    across = Axis(0, last or 1, "{:g}".format, "seconds of the loop")
    return curve(words, found, across, Axis(0, 1.12 * max(most, bound or 0), size), limit_line)


def _unit_of(seconds: float) -> tuple[str, float]:
    if seconds < 2e-3:
        return "µs since the first of these batches", 1e6
    if seconds < 2:
        return "ms since the first of these batches", 1e3
    return "seconds since the first of these batches", 1.0
