# SPDX-License-Identifier: Apache-2.0
"""A report as plain text, for a terminal: five lines, then tables."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from headrace.insight.report import summary
from headrace.insight.report.wording import (
    COPIES,
    HOST,
    RATES,
    RESOURCES,
    STORAGE,
    duration,
    number,
    percent,
    plain,
    size,
    swept,
)

if TYPE_CHECKING:
    from headrace.insight.measure.process_sampler import Vitals
    from headrace.insight.model.verified import Verified
    from headrace.insight.report.results import Results

_WIDTH = 80  # maximum width of tables
_LEAST = 24  # minimum width of a table's last column
_NOTES = 100  # number shown; of the rest, only the number
_BLOCKS = " ▏▎▍▌▋▊▉█"  # eighths of a character's width
_SMALL = 0.005  # regions below this fraction of a step are not shown


def of(report: Results, columns: int = 0, bars: bool = False) -> str:
    """The whole text; equal reports give identical texts.

    columns: the terminal's width, at which sentences are wrapped; 0: no wrapping. bars: draw the
    parts of a record's time with block characters.
    """
    lines = []
    for line in map(_printable, summary.lines(report)):
        lines += _broken(line, columns) if columns else [line]
    lines.append("")
    for title, rows, right in _tables(report, bars):
        lines += _table(title, rows, right, min(columns or _WIDTH, _WIDTH))
    for note in report.notes[:_NOTES]:
        told = f"Note: {_printable(note)}"
        lines += _broken(told, columns, "      ") if columns else [told]
    if len(report.notes) > _NOTES:
        lines.append(f"{len(report.notes) - _NOTES:,} more notes are not shown.")
    return "\n".join(lines).rstrip() + "\n"


def _tables(
    report: Results, bars: bool
) -> list[tuple[str, list[tuple[str, ...]], tuple[int, ...]]]:
    """Title, rows, and the numeric columns of each table; empty ones are dropped later."""
    resources = sorted(report.resources.items(), key=lambda item: item[1])
    known = [(name, value) for name, value in report.host.items() if value is not None]
    return [
        ("The script", [*script_lines(report)], ()),
        ("Ranks", [*_rank_lines(report)], ()),
        ("Rates (records/s)", _rate_lines(report), (1,)),
        ("What each resource could sustain (records/s)",
         [(RESOURCES.get(name, name), number(rate)) for name, rate in resources], (1,)),
        ("A record's path, one thread (with the resources it uses)",
         _stage_lines(report, bars), (1, 2)),
        ("Time saved per record without a transform",
         [(p.name, duration(p.seconds), f"± {duration(p.spread / 2)}")
          for p in report.operator_costs],
         (1, 2)),
        ("Waits and steps per batch (p95: 95 of 100 take less)", _spread_lines(report),
         (1, 2, 3, 4)),
        ("Where the step's time goes", [*_region_lines(report)], ()),
        ("The loop's use of the machine", [*vital_lines(report.vitals)], ()),
        ("What would help (records/s, predicted)", _prediction_lines(report), ()),
        ("A remedy applied", verified_lines(report.verified), ()),
        ("Slowest records",
         [(f"{item['ms']:.1f} ms", str(item["key"])) for item in report.slowest], (0,)),
        ("Storage", [(STORAGE.get(n, n), plain(n, v)) for n, v in report.storage.items()], ()),
        ("Copies", copy_lines(report), ()),
        ("Threads or workers of the loader alone", _sweep_lines(report), (0, 1, 2)),
        ("This machine", [(HOST.get(name, name), plain(name, v)) for name, v in known], ()),
    ]  # fmt: skip


def verified_lines(made: Verified | None) -> list[tuple[str, ...]]:
    """Name and result of a remedy that was applied."""
    if made is None:
        return []
    if made.reason:
        return [(made.name, f"not applied: {made.reason}")]
    where = "inside" if made.in_range else "outside"
    found = [
        ("predicted", f"{made.predicted_gain:.2f}x ({made.low / made.measured:.2f} to "
         f"{made.high / made.measured:.2f}), {made.low:,.0f} to {made.high:,.0f} records/s"),
        ("found", f"{made.measured_gain:.2f}x, {made.after:,.0f} records/s, and {made.before:,.0f} "
         f"without it: {where} the range, the gain is off by {made.error:+.0%}"),
    ]  # fmt: skip
    if made.records < made.whole:
        found.append(("over", f"{made.records:,} of {made.whole:,} records"))
    if made.disk_bytes:
        found.append(("wrote", f"{made.disk_bytes / 1e6:,.1f} MB, since removed"))
    return [("remedy", made.name), *found]


def script_lines(report: Results) -> list[tuple[str, str]]:
    found = report.script
    if not found:
        return []
    chosen = f"{found['loop']}, over {found['loader']}"
    others = [
        (f"not {other['loop']}", f"over {other['loader']}, {other['batches']} batches")
        for other in found["other_loops"]
    ]
    return [(found["name"], f"the examined loop is at {chosen}"), *others]


def _rank_lines(report: Results) -> list[tuple[str, str]]:
    def said(value: float | None) -> str:
        return "-" if value is None else duration(value)

    return [
        (str(row["rank"]), f"{number(row['rate'] or 0.0)} records/s; a batch: wait "
         f"{said(row['wait_seconds'])}, step {said(row['step_seconds'])}, loader alone "
         f"{said(row['data_seconds'])}; {row['cores']} cores")
        for row in report.ranks
    ]  # fmt: skip


def _rate_lines(report: Results) -> list[tuple[str, ...]]:
    return [(text, number(report.rates[n])) for n, text in RATES.items() if n in report.rates]


def _stage_lines(report: Results, bars: bool) -> list[tuple[str, ...]]:
    stages = report.case.stages if report.case else ()
    total = sum(stage.seconds for stage in stages) or 1.0
    return [
        (stage.name, duration(stage.seconds), percent(stage.seconds / total),
         *([_bar(stage.seconds / total)] if bars else []), f"({', '.join(stage.resources)})")
        for stage in stages
    ]  # fmt: skip


def _bar(share: float) -> str:
    """A bar of at most 20 characters, in eighths of a block."""
    eighths = round(160 * min(1.0, max(0.0, share))) if math.isfinite(share) else 0
    return (_BLOCKS[-1] * (eighths // 8) + _BLOCKS[eighths % 8]).strip().ljust(20)


def _spread_lines(report: Results) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    for name, spread in (("wait", report.waits), ("step", report.steps)):
        if spread is not None and spread.mean > 0:
            values = (spread.mean, spread.p50, spread.p95, spread.p99)
            found.append((name, *map(duration, values)))
    if found:
        found.insert(0, ("", "mean", "p50", "p95", "p99"))
    if report.start_seconds is not None:
        found.append(("first batch", duration(report.start_seconds)))
    return found


def _prediction_lines(report: Results) -> list[tuple[str, ...]]:
    ranges = [(number(p.low), number(p.high)) for p in report.predictions]
    low, high = (max((len(range_[n]) for range_ in ranges), default=0) for n in (0, 1))
    return [
        (f"{least:>{low}} to {most:>{high}}", f"{p.name} ({p.what})")
        for (least, most), p in zip(ranges, report.predictions, strict=True)
    ]


def copy_lines(report: Results) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [
        (COPIES.get(name, name), f"{size(rate)}/s") for name, rate in report.copies.items()
    ]
    if report.copy_hidden is not None:
        rows.append(("overlapped with steps", f"{report.copy_hidden:.0%}"))
    return rows


def _sweep_lines(report: Results) -> list[tuple[str, ...]]:
    rows = [
        (
            swept(w),
            number(w["rate"]),
            duration(w.get("start_s", math.nan)),
        )
        for w in report.sweep
    ]
    return [("number", "records/s", "first batch after"), *rows] if rows else []


def _region_lines(report: Results) -> list[tuple[str, str]]:
    """Regions, indented below their parents; those that take almost no time are omitted."""
    return [
        (
            "  " * (len(region.path) - 1) + region.name,
            f"{duration(region.seconds)}  {region.share:4.0%}"
            + (f"  outside these {duration(region.own_seconds)}" if region.is_divided else ""),
        )
        for region in report.regions
        if region.share >= _SMALL
    ]


def vital_lines(vitals: Vitals) -> list[tuple[str, str]]:
    found = []
    if vitals.gil_share is not None:
        error = 2 * (vitals.gil_error or 0.0)
        found.append(("Python's GIL", f"held {vitals.gil_share:.0%} of the time (± {error:.0%})"))
    if vitals.cpu_seconds_per_1000 is not None:
        found.append(("CPU", f"{vitals.cpu_seconds_per_1000:.2f} s per 1,000 records"))
    if vitals.memory:
        text = size(max(held for _, held in vitals.memory)) + " at most"
        if vitals.memory_growth is not None:
            change = "shrinking" if vitals.memory_growth < 0 else "growing"
            text += f", {change} by {size(abs(vitals.memory_growth))} per step"
        found.append(("memory", text))
    return found


def _table(
    title: str, rows: Sequence[tuple[str, ...]], right: tuple[int, ...], most: int
) -> list[str]:
    """Aligned columns; long text in the last one is wrapped between words."""
    if not rows:
        return []
    cells = [[_printable(cell) for cell in row] for row in rows]
    widths = [
        max(len(row[n]) for row in cells if n < len(row)) for n in range(max(map(len, cells)))
    ]
    lines = [title]
    for row in cells:
        padded = [
            cell.rjust(widths[n]) if n in right else cell.ljust(widths[n])
            for n, cell in enumerate(row)
        ]
        before = "  " + "".join(cell + "  " for cell in padded[:-1])
        last = padded[-1].rstrip()
        room = max(_LEAST, most - len(before))
        for part in _broken(last, room) if len(row) == len(widths) else [last]:
            lines.append((before + part).rstrip())
            before = " " * len(before)
    return [*lines, ""]


def _broken(text: str, columns: int, indent: str = "") -> list[str]:
    """Lines of at most this many characters, unless a word is longer: paths are not broken."""
    wrapper = textwrap.TextWrapper(
        columns, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return wrapper.wrap(text) or [""]


def _printable(text: str) -> str:
    """Removes terminal control characters: file names may contain anything."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
