# SPDX-License-Identifier: Apache-2.0
"""Runs our loader with one thread, two, and so on up to all cores, to find the number above which
more threads do not help.
"""

from __future__ import annotations

from typing import Any

from headrace.insight.measure.loop import Timed, time_loop
from headrace.insight.probes.ours import like
from headrace.loader import Loader

_MOST = 8  # number of counts to try


def counts(cores: int) -> list[int]:
    """1 to ``cores``; for many cores, powers of two and all of them.

    >>> counts(4), counts(12)
    ([1, 2, 3, 4], [1, 2, 4, 8, 12])
    """
    if cores <= _MOST:
        return list(range(1, cores + 1))
    return [*(2**n for n in range(20) if 2**n < cores), cores]


def sweep(loader: Loader, cores: int, seconds: float) -> list[dict[str, Any]]:
    """One point per number of threads."""
    found = []
    tried = counts(cores)
    for threads in tried:
        with like(loader, threads=threads) as other:
            timed = time_loop(other, None, seconds / len(tried))
        if timed.windows:
            found.append(point(timed, threads))
    return found


def point(timed: Timed, workers: int) -> dict[str, Any]:
    """Rates (records/s), the lowest and highest of the windows, and seconds to the first batch."""
    rates = [window.rate for window in timed.windows]
    return {
        "workers": workers,
        "rate": round(timed.rate, 2),
        "start_s": round(timed.first, 3),
        "rate_low": round(min(rates), 2),
        "rate_high": round(max(rates), 2),
    }
