# SPDX-License-Identifier: Apache-2.0
"""Times a script's loop: collects the times of each batch, and divides them into windows."""

from __future__ import annotations

import time

from headrace.insight.measure.loop import WINDOWS, Ledger, Timed, settle
from headrace.insight.measure.pace import Pace
from headrace.insight.measure.rendezvous import Rendezvous

_WARM = 0.15  # fraction of a measurement's seconds, during which nothing is counted
_LATE = 2.0  # times the seconds, after which fewer windows suffice


class Tally:
    """One measurement of about ``seconds``: a warm-up, then windows. One thread."""

    def __init__(
        self, seconds: float, least: int, warm: int, rendezvous: Rendezvous | None
    ) -> None:
        """``least``: minimum number of windows. ``warm``: number of batches before the first
        window."""
        self._seconds, self._least, self._warm = seconds, least, warm
        self._rendezvous = rendezvous
        self._ledger = Ledger()
        self._elapsed = 0.0
        self._begin(_WARM * seconds if warm else seconds / WINDOWS, warm)

    def _begin(self, seconds: float, least: int = 1) -> None:
        self._pace = Pace(seconds, self._rendezvous, least)
        self._active = self._waited = 0.0
        self._count = self._batches = 0

    @property
    def first(self) -> float:
        """Seconds until the loop's first batch."""
        return self._ledger.first

    @first.setter
    def first(self, seconds: float) -> None:
        self._ledger.first = seconds

    @property
    def warming(self) -> bool:
        return self._warm > 0

    @property
    def over(self) -> bool:
        """Whether it has measured enough; with ranks, decided for all at once."""
        count = len(self._ledger.windows)
        return count >= WINDOWS or (count >= self._least and self._elapsed > _LATE * self._seconds)

    @property
    def step_seconds(self) -> float:
        """Seconds of one step, including the wait before it, over all ranks."""
        return self._pace.elapsed / max(1, self._pace.steps)

    def add(
        self,
        begin: float,
        waited: float,
        computed: float,
        stepped: float,
        records: int,
        restarted: bool = False,
    ) -> None:
        """Adds a batch: the seconds waited for it, how many of them this thread computed, and the
        seconds of its step.
        """
        self._ledger.add(begin, waited, computed, stepped, records, restarted, self.warming)
        self._batches += 1
        self._count += records
        self._waited += waited
        self._active += waited + stepped
        if self._pace.over(self._active, self._batches):
            self._close()

    def _close(self) -> None:
        begin = time.perf_counter()
        settle()
        self._active += time.perf_counter() - begin
        if self._warm:
            self._warm = 0
        elif self._count and self._active > 0:
            self._elapsed += self._pace.elapsed
            self._ledger.close(self._count, self._active, self._waited)
        if not self.over:
            self._begin(self._seconds / WINDOWS)

    def timed(self, failure: str = "") -> Timed:
        """The result so far; an unfinished window counts if it is not much shorter."""
        if not self._warm and self._count and not self.over:
            least = self._seconds / WINDOWS / 2
            if self._active > least or (not self._ledger.windows and self._active > 0):
                self._close()
        return self._ledger.timed(failure)
