# SPDX-License-Identifier: Apache-2.0
"""What steps in Python cost per record, as the comparison of records measured it.

The CPU time of the step's own thread, of the median record; beside it the engine's stages of the
same records. All steps in Python have one thread, so the sum of their times bounds the rate.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import Any

from headrace import _core
from headrace.migrate.known_dataset import Dataset
from headrace.migrate.pipeline import Parts

_NATIVE = ("read", "entropy", "resample", "store")  # stages that are the engine's own
# Measured by CPU time: 0.7 to 1.1 times its rate. Results are checked and copied.
_NO_FASTER = (
    "; as long as its __getitem__ runs, hardly faster than a DataLoader with num_workers=0, "
    "perhaps slower"
)


def note_costs(dataset: Dataset, parts: Parts, stages: Mapping[str, float], records: int) -> None:
    """Writes it into the dataset and the parts. stages: seconds over so many records."""
    timed = [step for step in parts.all if step.timed is not None and step.timed.times]
    python = [_seconds(step.timed) for step in timed]
    if dataset.timed is not None and dataset.timed.times:
        python.append(_seconds(dataset.timed))
    native = sum(stages.get(stage, 0.0) for stage in _NATIVE) / records
    whole = sum(python) + native
    for step, seconds in zip(timed, python, strict=False):
        rest = _rate(sum(python) - seconds, native)
        step.cost = (
            f"{_milliseconds(seconds)} of {_milliseconds(whole)} of CPU per record: some "
            f"{_rate(sum(python), native)} records/s on one thread, without it {rest}"
        )
    if dataset.timed is not None and python:
        rate = _rate(sum(python), native)
        dataset.cost = (
            f"{_milliseconds(python[-1])} of CPU per record: at most some {rate} records/s on one "
            "thread" + ("" if dataset.timed.defers else _NO_FASTER)
        )


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
