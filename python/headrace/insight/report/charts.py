# SPDX-License-Identifier: Apache-2.0
"""Charts of rates and shares: the loop's limit, a record's path, remedies, threads.

Each function returns a chart, or a sentence that says why it cannot be drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from headrace.insight.kit.charts import Axis, Bar, Words, bars, curve
from headrace.insight.kit.figure import Chart, Rows
from headrace.insight.kit.svg import Drawing, Scale, finite
from headrace.insight.report.wording import RESOURCES, duration, number, percent, swept

if TYPE_CHECKING:
    from headrace.insight.report.results import Results

_APART = 0.1  # if the two fractions of waiting differ by more, both are reported
_MOST = 14  # rows of a chart; a table has all
_NO_STAGES = (
    "A record's time was not measured: that needs the experiment decode, and a loader that can be "
    "inspected."
)


def loop_rate(report: Results) -> tuple[str, float] | None:
    """The measured rate of the loop, or of the loader alone."""
    for name, text in (("real", "your loop"), ("loader", "loader alone")):
        rate = report.rates.get(name)
        if rate is not None and finite(rate) and rate > 0:
            return text, rate
    return None


def shares(report: Results) -> Chart | str:
    """The loop's time: waiting, and the rest."""
    stall = report.stall_share
    if stall is None or not finite(stall):
        return "Without a training step, it is unknown what share of its time the loop would wait."
    stall = min(1.0, max(0.0, stall))
    parts = (("data", "waiting for data", stall), ("step", "in the training step", 1 - stall))

    def draw(width: float) -> tuple[Drawing, float]:
        drawing, x = Drawing(width), 0.0
        for kind, _, share in parts:
            drawing.rect(kind, x, 0, width * share, 34)
            if width * share > 48:
                drawing.text(x + 10, 22, percent(share), "inside strong")
            x += width * share
        return drawing, 34

    told = f"The loop spends {percent(stall)} of its time waiting for data."
    waits, steps = report.waits, report.steps
    seen = waits.mean / (waits.mean + steps.mean) if waits and steps and steps.mean > 0 else stall
    if finite(seen) and stall - seen > _APART:  # a device works asynchronously, which hides waits
        told += (
            " This is how far the loop is below the rate of the step alone; the process itself "
            f"waited {percent(seen)}."
        )
    return Chart(
        "Shares of the loop's time",
        told,
        draw,
        ("part", "share of the time"),
        [(text, percent(share)) for _, text, share in parts],
        [(kind, text) for kind, text, _ in parts],
    )


def resources(report: Results) -> Chart | str:
    """The rate that each resource could sustain, on a logarithmic axis, and the loop's rate as a
    line."""
    found = sorted((r, n) for n, r in report.resources.items() if finite(r) and r > 0)
    if not found:
        return "The limit of each resource is unknown: too little was measured."
    measured = loop_rate(report)
    values = [rate for rate, _ in found] + ([measured[1]] if measured else [])
    shown = found[:_MOST]

    def draw(width: float) -> tuple[Drawing, float]:
        rows = Rows(width, 26 if measured else 6)
        scale = Scale(min(values) / 1.6, max(values) * 1.6, rows.left, rows.right, log=True)
        bottom = rows.bottom(len(shown))
        rows.drawing.axis_below(scale, 22, bottom, _short, "records/s, logarithmic")
        for place, (rate, name) in enumerate(shown):
            kind = "data" if place == 0 else "mute"
            y = rows.middle(place)
            rows.drawing.line(f"stem {kind}-line", rows.left, y, scale(rate), y)
            rows.drawing.dot(kind, scale(rate), y, 6)
            rows.tell(place, RESOURCES.get(name, name), number(rate), "strong" if not place else "")
        if measured:
            rows.mark_line(scale(measured[1]), len(shown), f"{measured[0]} {number(measured[1])}")
        return rows.finish(), bottom + 36

    least, slowest = found[0]
    told = f"The lowest rate: {RESOURCES.get(slowest, slowest)}, {number(least)} records/s."
    if measured:
        told += f" Measured, {measured[0]}: {number(measured[1])}."
    return Chart(
        "The rate that each resource could sustain if it were the only limit",
        told,
        draw,
        ("resource", "records/s"),
        [(RESOURCES.get(name, name), number(rate)) for rate, name in found],
    )


def stages(report: Results) -> Chart | str:
    """One thread's time per record, stage by stage."""
    case = report.case
    found = [s for s in case.stages if finite(s.seconds) and s.seconds > 0] if case else []
    if not found:
        return _NO_STAGES
    total = sum(stage.seconds for stage in found)
    heaviest = max(found, key=lambda stage: stage.seconds)
    longest = heaviest.seconds
    shown = found if len(found) <= _MOST else sorted(found, key=lambda s: -s.seconds)[:_MOST]

    def bar(name: str, seconds: float) -> Bar:
        text = f"{duration(seconds)}, {percent(seconds / total)}"
        return Bar(name, seconds, text, "data" if seconds == longest else "mute")

    words = Words(
        "A record's path through the loader, on one thread",
        f"A record takes {duration(total)}; {heaviest.name} takes most of it, "
        f"{percent(longest / total)}.",
        ("stage", "time per record", "share", "keeps busy"),
        [
            (s.name, duration(s.seconds), percent(s.seconds / total),
             ", ".join(RESOURCES.get(r, r) for r in s.resources))
            for s in found
        ],
    )  # fmt: skip
    drawn = [bar(stage.name, stage.seconds) for stage in shown]
    return bars(words, drawn, _milliseconds(longest), _unit(longest))


def predictions(report: Results) -> Chart | str:
    """The range of rates with each remedy, compared with the measured rate."""
    found = [p for p in report.predictions if finite(p.low) and finite(p.high)]
    measured = loop_rate(report)
    if not found or measured is None:
        return (
            "Data is not the limit, so no remedies were considered."
            if report.verdict in ("fed", "consumer")
            else "None of the remedies tried is expected to help."
        )
    shown = found[:_MOST]

    def draw(width: float) -> tuple[Drawing, float]:
        rows = Rows(width, 26)
        most = max([p.high for p in shown] + [measured[1]]) * 1.05
        scale = Scale(0, most, rows.left, rows.right)
        bottom = rows.bottom(len(shown))
        rows.drawing.axis_below(scale, 22, bottom, _short, "records/s")
        for place, p in enumerate(shown):
            low, high, y = scale(p.low), scale(p.high), rows.middle(place)
            rows.drawing.rect("good", low, y - 5, max(3.0, high - low), 10)
            for end in (low, max(low + 3, high)):
                rows.drawing.line("good-line", end, y - 9, end, y + 9)
            rows.tell(place, p.name, f"{number(p.low)} to {number(p.high)}")
        rows.mark_line(scale(measured[1]), len(shown), f"now {number(measured[1])}")
        return rows.finish(), bottom + 36

    best = found[0]
    return Chart(
        "Predicted rate with each remedy",
        f"Each bar is a range. Best first: {best.name}, {number(best.low)} to {number(best.high)} "
        f"records per second, {_times(best.low / measured[1])} to "
        f"{_times(best.high / measured[1])} the measured rate.",
        draw,
        ("remedy", "what to do", "at least", "at most"),
        [(p.name, p.what, number(p.low), number(p.high)) for p in found],
    )


def threads(report: Results) -> Chart | str:
    """The loader's rate by its number of threads or workers."""
    measured = [p for p in report.sweep if finite(p.get("rate")) and finite(p.get("workers"))]
    found = [p for p in measured if "setting" not in p]
    if not found:
        return (
            "Other numbers of threads or workers were not tried. "
            "hr.doctor(loader, sweep=True), or --sweep, does that, and takes 50% longer."
        )
    found.sort(key=lambda point: point["workers"])
    counts = [point["workers"] for point in found]
    most = max(point.get("rate_high", point["rate"]) for point in found)
    best = max(found, key=lambda point: point["rate"])
    words = Words(
        "The loader alone, with different numbers of threads or workers",
        f"The fastest was {best['workers']:g}: {number(best['rate'])} records per second. "
        "Vertical lines: from the slowest to the fastest of repeated measurements.",
        ("threads or workers", "records/s", "first batch after"),
        [(swept(p), number(p["rate"]), duration(p.get("start_s", float("nan")))) for p in measured],
    )

    def spreads(drawing: Drawing, x: Scale, y: Scale) -> None:
        for point in found:
            place = x(point["workers"])
            if "rate_low" in point and "rate_high" in point:
                drawing.line("step-line", place, y(point["rate_low"]), place, y(point["rate_high"]))
            drawing.dot("step", place, y(point["rate"]), 4.5)

    across = Axis(
        min(0, *counts), max(counts) * 1.02 or 1, "{:g}".format, "threads or workers", counts
    )
    points = [(p["workers"], p["rate"]) for p in found]
    return curve(words, points, across, Axis(0, most * 1.12 or 1, _short, "records/s"), spreads)


def _times(factor: float) -> str:
    return f"{factor:.2f} times"


def _short(value: float) -> str:
    """A rate on an axis: 20k."""
    for unit, least in (("M", 1e6), ("k", 1e3)):
        if value >= least:
            return f"{value / least:g}{unit}"
    return f"{value:.6g}"


def _unit(longest: float) -> str:
    return "µs per record" if longest < 2e-3 else "ms per record" if longest < 2 else "s per record"


def _milliseconds(longest: float) -> Callable[[float], str]:
    factor = 1e6 if longest < 2e-3 else 1e3 if longest < 2 else 1.0
    return lambda value: f"{value * factor:,.6g}"
