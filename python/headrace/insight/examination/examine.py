# SPDX-License-Identifier: Apache-2.0
"""Runs one examination: the experiments in order, each for a part of the time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

from headrace.errors import declare, did_you_mean
from headrace.insight.examination.conclusion import conclude
from headrace.insight.examination.experiments import EXPERIMENTS
from headrace.insight.examination.findings import Findings
from headrace.insight.examination.state import kept
from headrace.insight.examination.worker_deaths import told_by_loaders_only
from headrace.insight.measure.recording import Span
from headrace.insight.measure.time_limit import Stuck, TimeLimit
from headrace.insight.measure.whereabouts import place_of, told
from headrace.insight.report.report import Report
from headrace.insight.stand_in import StandIn

BAD_SKIP = declare(
    "HR0900",
    "config",
    "unknown experiment",
    "skip= names experiments that the doctor should skip. The message lists them.",
)
NOT_ITERABLE = declare(
    "HR0901",
    "config",
    "not a loader",
    "hr.doctor takes a loader: a headrace.Loader, a torch DataLoader, or anything that a for loop "
    "accepts.",
)
BAD_SECONDS = declare(
    "HR0902",
    "config",
    "invalid duration",
    "seconds= is the approximate duration of an examination; it must be positive.",
)

Tell = Callable[[str, int], object]


def chosen(skip: Iterable[str], also: Iterable[str] = ()) -> list[str]:
    """The names of the experiments to run: the regular ones, minus ``skip``, plus ``also``."""
    left_out = {skip} if isinstance(skip, str) else set(skip)
    added = {also} if isinstance(also, str) else set(also)
    for name in sorted((left_out | added) - set(EXPERIMENTS)):
        raise BAD_SKIP.error(repr(name), hint=did_you_mean(name, EXPERIMENTS))
    return [
        name
        for name, experiment in EXPERIMENTS.items()
        if name not in left_out and (not experiment.extra or name in added)
    ]


def examine(
    found: Findings,
    names: list[str],
    seconds: float,
    tell: Tell,
    model: Any = None,
    optimizer: Any = None,
    patience: float = 60.0,
) -> Report:
    """Runs these experiments on the findings so far, and draws conclusions.

    If interrupted, ends early with partial results. An exception in one of them becomes a note.
    """
    begin = time.perf_counter()
    found.model, found.optimizer = model, optimizer
    if not hasattr(found.loader, "__iter__"):
        raise NOT_ITERABLE.error(f"{type(found.loader).__name__} cannot be iterated")
    if not seconds > 0:
        raise BAD_SECONDS.error(f"seconds={seconds!r}")
    if found.step is not None and model is None and not isinstance(found.step, StandIn):
        found.note(
            "The step actually ran: hr.doctor(..., model=, optimizer=) restores their state "
            "afterwards."
        )
    try:
        with (
            told_by_loaders_only(),
            kept(found.ours, model, optimizer, found.report.notes, lambda: found.stuck),
        ):
            for number, name in enumerate(names):
                tell(name, number)
                _try(found, name, EXPERIMENTS[name].share * seconds, patience)
                if found.stuck:
                    if found.ours is not None and (place := place_of(found.ours)):
                        found.note(place)
                    break
    except KeyboardInterrupt:
        found.report.interrupted = True
    conclude(found)
    if "real" in names and found.report.detail is None and not found.report.interrupted:
        found.report.failed = True
    found.report.seconds += time.perf_counter() - begin
    return found.report


def _try(found: Findings, name: str, seconds: float, patience: float) -> None:
    begin = time.perf_counter()
    try:
        with TimeLimit(patience + 3 * seconds) as waiting:
            waiting.begin(f"The experiment {name!r} has made no progress")
            try:
                with found.contention.watched():
                    EXPERIMENTS[name].run(found, seconds)
            finally:
                found.stuck = waiting.expired > 0
    except Stuck as stuck:
        found.note(f"{told(stuck)}, so it was abandoned.")
    except Exception as error:
        text = str(error).splitlines()[0] if str(error) else type(error).__name__
        found.note(f"The experiment {name!r} ended early: {text}")
    finally:
        span = Span(name, begin, time.perf_counter() - begin)
        found.report.timeline.experiments.append(span)
