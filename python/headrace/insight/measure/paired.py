# SPDX-License-Identifier: Apache-2.0
"""Two loaders in turns: how much faster is one? Disturbances of the machine affect both.

A turn is a whole epoch: after a part of one, threads would go on to fill batches while the other
loader is timed, and what comes first and last of it says more of queues than of a rate.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterable
from typing import Any, NamedTuple

from headrace.insight.measure.loop import records_in

_ROUNDS, _MOST = 3, 40
_LEAST = 0.04  # of any ratio: by so much two runs of the same loader may differ


class Ratio(NamedTuple):
    """How many times as fast: between which it lies, as far as the turns agree."""

    low: float
    high: float


def compare(before: Iterable[Any], after: Iterable[Any], seconds: float) -> Ratio:
    """The rate of ``after`` over that of ``before``, for a loop that does nothing else.

    Takes about ``seconds``, at least three rounds. Raises what a loader raises.
    """
    stop = time.perf_counter() + seconds
    epoch_rate(before)  # touches memory for the first time
    epoch_rate(after)
    old: list[float] = []
    new: list[float] = []
    while len(old) < _ROUNDS or (time.perf_counter() < stop and len(old) < _MOST):
        if len(old) % 2:  # each is first as often as the other
            new.append(epoch_rate(after))
            old.append(epoch_rate(before))
        else:
            old.append(epoch_rate(before))
            new.append(epoch_rate(after))
    return agreed(old, new)


def epoch_rate(batches: Iterable[Any]) -> float:
    """Records a second over an epoch."""
    begin = time.perf_counter()
    records = sum(map(records_in, batches))
    if not records:
        raise ValueError("the loader gave no batch")
    return records / (time.perf_counter() - begin)


def agreed(old: list[float], new: list[float]) -> Ratio:
    """Ratio of the better halves: disturbances make a turn slower, never faster."""
    before, its_error = _undisturbed(old)
    after, error = _undisturbed(new)
    spread = min(0.9, max(_LEAST, error + its_error))
    return Ratio(after / before * (1 - spread), after / before * (1 + spread))


def _undisturbed(rates: list[float]) -> tuple[float, float]:
    """The middle of the better half of them, and what share of it that is uncertain by."""
    better = sorted(rates)[len(rates) // 2 :]
    middle = statistics.median(better)
    return middle, (better[-1] - better[0]) / 2 / middle / len(better) ** 0.5
