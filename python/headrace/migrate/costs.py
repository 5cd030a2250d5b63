# SPDX-License-Identifier: Apache-2.0
"""Cost of Python transforms per record, measured by the comparison of records.

Uses CPU times: of the transform's thread for the median record, of the process for the whole
loader, and of the dataset itself, as in a DataLoader with num_workers=0. All Python transforms
share one thread, so the sum of their times limits the rate.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from headrace import _core
from headrace.migrate.known_dataset import Dataset
from headrace.migrate.pipeline import Parts

_FASTER = 0.8  # fraction of the dataset's time; above it there is no gain


def note_costs(dataset: Dataset, parts: Parts, ours: float, theirs: Sequence[float]) -> None:
    """Stores the costs in the dataset and the parts. ours: seconds per record; theirs: of each
    record of the dataset itself.
    """
    timed = [step for step in parts.all if step.timed is not None and step.timed.times]
    python = [_seconds(step.timed) for step in timed]
    if dataset.timed is not None and dataset.timed.times:
        python.append(_seconds(dataset.timed))
    if not python:
        return
    native = max(ours - sum(python), 0.0)
    whole = sum(python) + native
    verdict = _verdict(whole, statistics.median(theirs)) if theirs else ""
    for step, seconds in zip(timed, python, strict=False):
        rest = _rate(sum(python) - seconds, native)
        step.cost = (
            f"{_milliseconds(seconds)} of {_milliseconds(whole)} of CPU per record: about "
            f"{_rate(sum(python), native)} records/s on one thread, without it {rest}{verdict}"
        )
    if dataset.timed is not None:
        rate = _rate(sum(python), native)
        dataset.cost = (
            f"{_milliseconds(python[-1])} of {_milliseconds(whole)} of CPU per record: at most "
            f"about {rate} records/s on one thread{verdict}"
        )


def _verdict(ours: float, theirs: float) -> str:
    own = f"; the dataset itself takes {_milliseconds(theirs)}"
    if ours <= _FASTER * theirs:
        return own
    return f"{own}: no faster than a DataLoader with num_workers=0, perhaps slower"


def _seconds(timed: Any) -> float:
    return float(statistics.median(timed.times))


def _rate(python: float, native: float) -> str:
    """Records per second, to two digits."""
    seconds = max(python, native / _core.allowed_cores(), 1e-7)
    rate = 1 / seconds
    digits = 10 ** max(len(str(int(rate))) - 2, 0)
    return f"{round(rate / digits) * digits:,}"


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.2g} ms"
