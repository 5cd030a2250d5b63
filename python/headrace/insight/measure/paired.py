# SPDX-License-Identifier: Apache-2.0
"""Compares two loaders in alternating turns; disturbances of the machine affect both.

A turn is a whole epoch: after a partial epoch, threads would continue to fill batches while the
other loader is timed. The start and end of a turn reflect queues rather than the rate.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterable
from typing import Any, NamedTuple

from headrace.insight.measure.loop import records_in

_ROUNDS, _MOST = 3, 40
_LEAST = 0.04  # uncertainty of any ratio: two runs of the same loader may differ by this much


class Ratio(NamedTuple):
    """A speed-up, as a range that depends on how well the rounds agree."""

    low: float
    high: float


def compare(before: Iterable[Any], after: Iterable[Any], seconds: float) -> Ratio:
    """The rate of ``after`` divided by that of ``before``, in a loop that does nothing else. Takes
    about ``seconds``, at least three rounds. A loader's exceptions pass through.
    """
    stop = time.perf_counter() + seconds
    epoch_rate(before)  # warm-up: touches memory for the first time
    epoch_rate(after)
    old: list[float] = []
    new: list[float] = []
    while len(old) < _ROUNDS or (time.perf_counter() < stop and len(old) < _MOST):
        if len(old) % 2:  # they alternate in being first
            new.append(epoch_rate(after))
            old.append(epoch_rate(before))
        else:
            old.append(epoch_rate(before))
            new.append(epoch_rate(after))
    return agreed(old, new)


def epoch_rate(batches: Iterable[Any]) -> float:
    """Records per second over an epoch."""
    begin = time.perf_counter()
    records = sum(map(records_in, batches))
    if not records:
        raise ValueError("the loader delivered no batch")
    return records / (time.perf_counter() - begin)


def agreed(old: list[float], new: list[float]) -> Ratio:
    """The ratio of the medians of the faster halves: disturbances make a round slower, never
    faster."""
    before, its_error = _undisturbed(old)
    after, error = _undisturbed(new)
    spread = min(0.9, max(_LEAST, error + its_error))
    return Ratio(after / before * (1 - spread), after / before * (1 + spread))


def _undisturbed(rates: list[float]) -> tuple[float, float]:
    """The median of the faster half of the rates, and its relative uncertainty."""
    better = sorted(rates)[len(rates) // 2 :]
    middle = statistics.median(better)
    return middle, (better[-1] - better[0]) / 2 / middle / len(better) ** 0.5
