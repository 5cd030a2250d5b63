# SPDX-License-Identifier: Apache-2.0
"""Compares the ranks of a training run: which of them makes the others wait, and why."""

from __future__ import annotations

import itertools
import statistics
from typing import Any

from headrace import _core
from headrace.insight.examination.findings import Findings
from headrace.insight.measure.loop import Window
from headrace.insight.measure.rendezvous import SEVERAL_MACHINES, Gone, Place, Rendezvous
from headrace.insight.model.verdict import RankTimes, judge_ranks

_MUCH = 1.2  # differences by less than this factor are not reported

_numbers = itertools.count()


def meet(place: Place | None, found: Findings, patience: float) -> Rendezvous | None:
    """Waits for the other ranks on this machine, if any; a missing rank becomes a note."""
    if place is None:
        return None
    if not place.one_machine and found.step is not None:
        raise SEVERAL_MACHINES.error(
            f"{place.count} ranks, {place.local_count} of them on this machine",
            hint="ranks=False examines only this rank",
        )
    if place.local_count < 2:
        found.note(f"Rank {place.rank} is alone on this machine, so no ranks were compared.")
        return None
    rendezvous = Rendezvous(place, patience, next(_numbers))
    try:
        rendezvous.arrive()
    except Gone as gone:
        found.note(f"Ranks were not compared: {gone}.")
        rendezvous.leave("continued alone")
        return None
    except OSError as error:
        found.note(f"Ranks were not compared: {error}.")
        return None
    return rendezvous


def compare(found: Findings, rendezvous: Rendezvous, patience: float, failure: str = "") -> None:
    """The table of ranks, and the verdict "rank" if one of them delays all others. ``failure``: how
    this rank's script failed. ``patience``: seconds to wait for the others.
    """
    own = {**_row(found, rendezvous.place.rank), "failure": failure}
    rows, missing = rendezvous.gather(own, patience)
    for row in rows:
        if row["failure"] and row["rank"] != own["rank"]:
            found.note(f"Rank {row['rank']}: {row['failure']}")
    for gone in missing:
        found.note(
            f"{str(gone)[:1].upper()}{str(gone)[1:]}; it is missing from the table of ranks."
        )
    report = found.report
    report.ranks = rows
    timed = [row for row in rows if row["windows"]]
    times = [
        RankTimes(
            row["rank"],
            tuple(Window(rate, stall) for rate, stall in row["windows"]),
            1 / row["loader_rate"] if row["loader_rate"] else 0.0,
        )
        for row in timed
    ]
    verdict = judge_ranks(times)
    if verdict is not None:
        slow = next(row for row in timed if verdict.cause == f"the data of rank {row['rank']}")
        report.verdict, report.detail = verdict.word, verdict
        found.note(f"Rank {slow['rank']} is the slowest: {why(slow, timed)}.")


def _row(found: Findings, rank: int) -> dict[str, Any]:
    """Facts about this rank; seconds are per batch."""
    timed, alone = found.real or found.alone, found.alone
    batch = timed.records / timed.batches if timed is not None and timed.batches else 0.0
    stages = found.anatomy.stages if found.anatomy is not None else ()
    return {
        "rank": rank,
        "rate": timed.rate if timed is not None and timed.windows else None,
        "loader_rate": alone.rate if alone is not None and alone.windows else None,
        "wait_seconds": timed.wait.mean if timed is not None and timed.batches else None,
        "step_seconds": found.real.step.mean if found.real is not None else None,
        "cores": _core.allowed_cores(),
        "data_seconds": batch / alone.rate if alone is not None and alone.windows else None,
        "stages": {stage.name: batch * stage.seconds for stage in stages},
        "windows": [[window.rate, window.stall] for window in timed.windows] if timed else [],
    }


def why(slow: dict[str, Any], rows: list[dict[str, Any]]) -> str:
    """How a rank differs from the others."""
    others = [row for row in rows if row is not slow]
    cores = statistics.median(row["cores"] for row in others)
    if slow["cores"] < cores:
        return f"it may use {slow['cores']} cores, the others {cores:g}"
    known = [row["data_seconds"] for row in others if row["data_seconds"]]
    own = slow["data_seconds"]
    if not own or not known or own < _MUCH * statistics.median(known):
        return "its loader alone is as fast as the others', so something else slows it down"
    text = (
        f"its loader alone takes {1000 * own:.1f} ms for a batch, the others' "
        f"{1000 * statistics.median(known):.1f} ms"
    )
    more = {
        name: seconds - statistics.median(row["stages"].get(name, 0.0) for row in others)
        for name, seconds in slow["stages"].items()
    }
    name = max(more, key=lambda name: more[name], default="")
    if name and more[name] > 0.5 * (own - statistics.median(known)):
        text += f", mostly because of {name}"
    return text
