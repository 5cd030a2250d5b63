# SPDX-License-Identifier: Apache-2.0
"""Durations in buckets of equal ratio: memory of a fixed size, percentiles within 6 %.

>>> counts = [0] * SIZE
>>> for seconds in (0.001, 0.002, 0.004):
...     counts[bucket_of(seconds)] += 1
>>> round(percentile(counts, 0.5), 4)
0.0019
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence

from headrace.insight.measure.loop import Spread

# Upper bounds in seconds, from a microsecond to a thousand seconds: 1, 2 and 5 of each power of
# ten, which are exported to Prometheus, with 6, 8 and 6 steps of about 12 % in between.
_FIRST, _LAST = -6, 3
_PARTS = ((1, 2, 6), (2, 5, 8), (5, 10, 6))


def _bounds() -> tuple[float, ...]:
    found = []
    for power in range(_FIRST, _LAST):
        for low, high, steps in _PARTS:
            found.append(float(f"{low}e{power}"))  # 2e-05, not 2 * 1e-05
            found += [
                float(f"{low}e{power}") * (high / low) ** (step / steps) for step in range(1, steps)
            ]
    return (*found, float(f"1e{_LAST}"))


BOUNDS = _bounds()
_EACH = sum(steps for *_, steps in _PARTS)
ROUND = frozenset(i for i in range(len(BOUNDS)) if i % _EACH in (0, 6, 14))  # those of 1, 2 and 5
SIZE = len(BOUNDS) + 1  # the last bucket has no upper bound


def bucket_of(seconds: float) -> int:
    """The first bucket whose bound is at least the value: Prometheus's ``le``."""
    return bisect.bisect_left(BOUNDS, seconds)


def percentile(counts: Sequence[int], share: float) -> float:
    """The value below which a fraction of the durations lies; 0 if there are none."""
    left = share * sum(counts)
    if not left:
        return 0.0
    for bucket, count in enumerate(counts):
        left -= count
        if left <= 0 and count:
            return _middle(bucket)
    return BOUNDS[-1]


def _middle(bucket: int) -> float:
    if bucket == 0:
        return BOUNDS[0]
    if bucket == len(BOUNDS):
        return BOUNDS[-1]
    return float((BOUNDS[bucket - 1] * BOUNDS[bucket]) ** 0.5)


def spread(counts: Sequence[int], seconds: float) -> Spread:
    """The mean and percentiles of these counts, whose durations sum to ``seconds``."""
    number = sum(counts)
    mean = seconds / number if number else 0.0
    return Spread(mean, *(percentile(counts, share) for share in (0.5, 0.95, 0.99)))
