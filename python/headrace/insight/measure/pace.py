# SPDX-License-Identifier: Apache-2.0
"""Decides when a part of a loop is over: after a number of seconds or, with several ranks, after
the same step on all of them.

Ranks whose steps communicate must stop after the same step: otherwise some would wait for a rank
that has stopped. The ranks compare their clocks every few steps and follow the slowest.
"""

from __future__ import annotations

import time

from headrace.insight.measure.rendezvous import Gone, Rendezvous

_LATE = 6.0  # times the seconds, after which a single step suffices


class Pace:
    """A stretch of ``seconds``, with at least ``least`` steps unless these are very long."""

    def __init__(
        self, seconds: float, rendezvous: Rendezvous | None = None, least: int = 1
    ) -> None:
        self._seconds, self._least = seconds, least
        self._rendezvous = (
            rendezvous if rendezvous is not None and rendezvous.missing is None else None
        )
        self._next_look = 1
        self.elapsed = 0.0  # on the slowest rank, at the last comparison
        self.steps = 0
        self.compared = 0.0  # seconds of the comparisons, which do not count as the loop's

    def over(self, elapsed: float, steps: int) -> bool:
        """Whether the part is over, ``elapsed`` seconds and ``steps`` steps after its start."""
        if self._rendezvous is None:
            self.elapsed, self.steps = elapsed, steps
            return self._enough()
        if steps < self._next_look:
            return False
        begin = time.perf_counter()
        try:
            elapsed = max(self._rendezvous.exchange(elapsed))
        except Gone:
            self._rendezvous = None
        self.compared += time.perf_counter() - begin
        self.elapsed, self.steps = elapsed, steps
        if self._enough():
            return True
        # Compares again after half of the steps that seem to remain, since the pace may change.
        left = steps * (self._seconds - elapsed) / max(elapsed, 1e-9) / 2
        self._next_look = steps + max(1, int(min(left, 1e6)))
        return False

    def _enough(self) -> bool:
        if self.steps < 1:
            return False
        few = self.steps < self._least and self.elapsed < _LATE * self._seconds
        return self.elapsed >= self._seconds and not few
