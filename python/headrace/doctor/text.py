# SPDX-License-Identifier: Apache-2.0
"""A report as plain text, for a terminal: five lines, then tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.doctor import summary
from headrace.doctor.wording import duration, number, plain

if TYPE_CHECKING:
    from headrace.doctor.pulse import Vitals
    from headrace.doctor.report import Report

_SMALL = 0.005  # regions with less of a step than this are not shown


def of(report: Report) -> str:
    """The whole text; equal reports give equal texts."""
    lines = [*summary.lines(report), ""]
    lines += _table("The script", _script_lines(report))
    lines += _table("Ranks", _rank_lines(report))
    lines += _table("Rates (records/s)", _rate_lines(report))
    lines += _table("What each resource could sustain (records/s)", [
        (name, number(rate)) for name, rate in sorted(report.resources.items(),
                                                      key=lambda item: item[1])
    ])  # fmt: skip
    lines += _table("A record's way, one thread", _stage_lines(report))
    lines += _table("Left out, a step saves", [
        (p.name, f"{duration(p.seconds)} a record (± {duration(p.spread / 2)})")
        for p in report.prices
    ])  # fmt: skip
    lines += _table("Waits and steps", _spread_lines(report))
    lines += _table("Where the step's time goes", _region_lines(report))
    lines += _table("What the loop takes of the machine", _vital_lines(report.vitals))
    lines += _table("What would help (records/s, predicted)", [
        (p.name, f"{number(p.low)} to {number(p.high)}   {p.what}") for p in report.predictions
    ])  # fmt: skip
    lines += _table("Slowest records", [
        (f"{item['ms']:.1f} ms", item["key"]) for item in report.slowest
    ])  # fmt: skip
    lines += _table("Storage", [(n, plain(n, v)) for n, v in report.storage.items()])
    lines += _table("Copies", [(n, f"{v / 1e9:.1f} GB/s") for n, v in report.copies.items()])
    lines += _table("Workers", [
        (str(int(w["workers"])), f"{number(w['rate'])} records/s, first batch after "
         f"{w['start_s']:.2f} s") for w in report.sweep
    ])  # fmt: skip
    known = [(name, value) for name, value in report.host.items() if value is not None]
    lines += _table("This machine", [(name, plain(name, v)) for name, v in known])
    lines += [f"Note: {note}" for note in report.notes]
    return "\n".join(lines).rstrip() + "\n"


def _script_lines(report: Report) -> list[tuple[str, str]]:
    found = report.script
    if not found:
        return []
    chosen = f"{found['loop']}, over {found['loader']}"
    others = [
        (f"not {other['loop']}", f"over {other['loader']}, {other['batches']} batches")
        for other in found["other_loops"]
    ]
    return [(found["name"], f"examined was the loop at {chosen}"), *others]


def _rank_lines(report: Report) -> list[tuple[str, str]]:
    def said(value: float | None) -> str:
        return "-" if value is None else duration(value)

    return [
        (str(row["rank"]), f"{number(row['rate'] or 0.0)} records/s; a batch: wait "
         f"{said(row['wait_seconds'])}, step {said(row['step_seconds'])}, loader alone "
         f"{said(row['data_seconds'])}; {row['cores']} cores")
        for row in report.ranks
    ]  # fmt: skip


def _rate_lines(report: Report) -> list[tuple[str, str]]:
    names = {
        "ceiling": "step alone, one batch",
        "cached": "step, batches from memory",
        "loader": "loader alone",
        "real": "both, as trained",
        "cold": "both, files not in memory",
        "one_thread": "loader, one thread",
        "headrace": "Headrace in its place, alone",
    }
    return [(text, number(report.rates[n])) for n, text in names.items() if n in report.rates]


def _stage_lines(report: Report) -> list[tuple[str, str]]:
    if report.case is None:
        return []
    total = sum(stage.seconds for stage in report.case.stages) or 1.0
    return [
        (stage.name, f"{duration(stage.seconds)}  {stage.seconds / total:4.0%}  "
         f"({', '.join(stage.resources)})")
        for stage in report.case.stages
    ]  # fmt: skip


def _spread_lines(report: Report) -> list[tuple[str, str]]:
    found = []
    for name, spread in (("wait", report.waits), ("step", report.steps)):
        if spread is not None and spread.mean > 0:
            text = ", ".join(
                f"{key} {duration(getattr(spread, key))}" for key in ("mean", "p50", "p95", "p99")
            )
            found.append((f"{name} for a batch", text))
    if report.start_seconds is not None:
        found.append(("first batch", f"after {duration(report.start_seconds)}"))
    return found


def _region_lines(report: Report) -> list[tuple[str, str]]:
    """Parts, indented in those that they lie in; what hardly takes any time is left out."""
    return [
        (
            "  " * (len(region.path) - 1) + region.name,
            f"{duration(region.seconds)}  {region.share:4.0%}"
            + (f"  of its own {duration(region.own_seconds)}" if region.is_divided else ""),
        )
        for region in report.regions
        if region.share >= _SMALL
    ]


def _vital_lines(vitals: Vitals) -> list[tuple[str, str]]:
    found = []
    if vitals.gil_share is not None:
        error = 2 * (vitals.gil_error or 0.0)
        found.append(("Python's GIL", f"held {vitals.gil_share:.0%} of the time (± {error:.0%})"))
    if vitals.cpu_seconds_per_1000 is not None:
        found.append(("CPU", f"{vitals.cpu_seconds_per_1000:.2f} s for 1,000 records"))
    if vitals.memory:
        text = plain("bytes", max(size for _, size in vitals.memory)) + " at most"
        if vitals.memory_growth is not None:
            text += f", growing by {vitals.memory_growth / 1e3:+,.1f} kB a step"
        found.append(("memory", text))
    return found


def _table(title: str, rows: list[tuple[str, str]]) -> list[str]:
    if not rows:
        return []
    width = max(len(name) for name, _ in rows)
    return [title, *(f"  {name:{width}}  {text}" for name, text in rows), ""]
