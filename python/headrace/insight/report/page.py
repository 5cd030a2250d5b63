# SPDX-License-Identifier: Apache-2.0
"""The doctor's report as an HTML page."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from headrace.drawing.markup import clean
from headrace.insight.kit import figure
from headrace.insight.kit.figure import Chart
from headrace.insight.kit.page import Page
from headrace.insight.report import charts, pictures, summary, text, time_charts
from headrace.insight.report.wording import (
    HOST,
    RATES,
    STORAGE,
    duration,
    number,
    percent,
    plain,
)

if TYPE_CHECKING:
    from headrace.insight.report.results import Results

_NOTES = 100  # number shown; of the rest, only the number


def of(report: Results) -> Page:
    """The page. Equal reports give identical pages."""
    first, *others = summary.lines(report)
    word, _, sentence = first.partition(": ")
    page = Page(
        f"Headrace doctor: {report.verdict}",
        "Headrace doctor",
        _when(report),
        sentence,
        others,
        _key_figures(report),
        word,
        "bound" if report.input_bound else "" if report.verdict == "unsure" else "fine",
        "Made by Headrace's doctor. This file is self-contained.",
    )
    for title, parts in _SECTIONS:
        page.section(title, [part(report) for part in parts])
    return page


def _when(report: Results) -> str:
    spans = report.timeline.experiments
    if not spans:
        return ""
    begin = report.timeline.zero_ns / 1e9 + spans[0].begin
    try:
        moment = datetime.datetime.fromtimestamp(begin, datetime.timezone.utc)
    except (ValueError, OverflowError, OSError):
        return ""
    return f"{moment:%Y-%m-%d %H:%M} UTC, {duration(report.seconds)}"


def _key_figures(report: Results) -> list[tuple[str, str]]:
    rates, detail = report.rates, report.detail
    found: list[tuple[str, str]] = []
    if report.stall_share is not None:
        found.append((percent(report.stall_share), "of the time waiting for data"))
    for name, told in (("real", "records/s, your loop"), ("ceiling", "records/s, the step alone"),
                       ("loader", "records/s, the loader alone")):  # fmt: skip
        if name in rates:
            found.append((number(rates[name]), told))
    if len(found) < 4 and detail is not None and math.isfinite(detail.noise):
        found.append((percent(detail.noise), "difference between repeated measurements"))
    return found


def _rates(report: Results) -> str | None:
    rows = [(text, number(report.rates[n])) for n, text in RATES.items() if n in report.rates]
    return figure.table(("what ran", "records/s"), rows) if rows else None


def _prices(report: Results) -> str | None:
    rows = [
        (p.name, f"{duration(p.seconds)}", f"± {duration(p.spread / 2)}")
        for p in report.operator_costs
    ]
    if not rows:
        return None
    told = "<p>Time that a record saves without a transform:</p>"
    return told + figure.table(("step", "time per record", "uncertain by"), rows)


def _script(report: Results) -> str | None:
    rows = text.script_lines(report)
    return figure.table(("script", "examined"), rows, (0, 1)) if rows else None


def _ranks(report: Results) -> str | None:
    def said(value: float | None) -> str:
        return "-" if value is None else duration(value)

    rows = [
        (str(row["rank"]), number(row["rate"] or 0.0), said(row["wait_seconds"]),
         said(row["step_seconds"]), said(row["data_seconds"]), str(row["cores"]))
        for row in report.ranks
    ]  # fmt: skip
    if not rows:
        return None
    told = "<p>The same for each rank, per batch:</p>"
    names = ("rank", "records/s", "wait", "step", "loader alone", "cores")
    return told + figure.table(names, rows)


def _vitals(report: Results) -> str | None:
    rows = text.vital_lines(report.vitals)
    return figure.table(("the loop takes", ""), rows, (0, 1)) if rows else None


def _verified(report: Results) -> str | None:
    rows = text.verified_lines(report.verified)
    header = ("a remedy, applied", *[""] * (max(map(len, rows), default=1) - 1))
    words = range(len(header))
    return figure.table(header, rows, words) if rows else None


def _regions(report: Results) -> str | None:
    rows = [
        ("\N{EM SPACE}" * (len(r.path) - 1) + r.name, duration(r.seconds), percent(r.share))
        for r in report.regions
    ]
    if not rows:
        return None
    told = "<p>Where the time of the training step goes:</p>"
    return told + figure.table(("part", "time per batch", "share of the step"), rows)


def _records(report: Results) -> str | None:
    if report.samples:
        return pictures.grid(report.samples)
    if not report.slowest:
        return "Single records were not timed."
    rows = [(str(item["key"]), f"{item['ms']:.1f} ms") for item in report.slowest]
    return "<p>The slowest records:</p>" + figure.table(("record", "took"), rows)


def _storage(report: Results) -> str | None:
    rows = [(STORAGE.get(n, n), plain(n, v)) for n, v in report.storage.items()]
    return figure.table(("storage", ""), rows, (0, 1)) if rows else None


def _copies(report: Results) -> str | None:
    rows = text.copy_lines(report)
    return figure.table(("copying memory", "rate"), rows) if rows else None


def _machine(report: Results) -> str | None:
    rows = [(HOST.get(n, n), plain(n, v)) for n, v in report.host.items() if v is not None]
    return figure.table(("this machine", ""), rows, (0, 1)) if rows else None


def _experiments(report: Results) -> str | None:
    rows = [(span.name, duration(span.seconds)) for span in report.timeline.experiments]
    return figure.table(("experiment", "took"), rows) if rows else None


def _notes(report: Results) -> str | None:
    if not report.notes:
        return None
    items = "".join(f"<li>{clean(note, 2000)}</li>" for note in report.notes[:_NOTES])
    more = len(report.notes) - _NOTES
    rest = f"<p>{more:,} more are not shown.</p>" if more > 0 else ""
    return f'<ul class="notes">{items}</ul>{rest}'


_SECTIONS: list[tuple[str, list[Callable[[Results], Chart | str | None]]]] = [
    ("Where the time goes", [_script, charts.shares, time_charts.waterfall, _ranks, _regions]),
    ("What limits the rate", [charts.resources, _rates]),
    ("What a record costs", [charts.stages, _prices]),
    ("What would help", [charts.predictions, _verified, charts.threads]),
    ("How stable the measurement is", [time_charts.latencies, time_charts.memory, _vitals]),
    ("Records", [_records]),
    ("Machine and storage", [_machine, _storage, _copies]),
    ("How it was measured", [_experiments, _notes]),
]
