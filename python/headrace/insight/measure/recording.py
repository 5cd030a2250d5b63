# SPDX-License-Identifier: Apache-2.0
"""A timeline of the experiments and of the batches of each loop, on one clock.

Bounded for loops of any length: the first consecutive batches of each window, the slowest ones of
the whole loop, and histograms of waits and steps.
"""

from __future__ import annotations

import dataclasses
import heapq
import math
import time
from collections.abc import Sequence
from typing import NamedTuple

KEPT = 3000  # consecutive batches of a loop that are kept
SLOW = 24  # and the slowest of those that come later
_BINS = 8  # bins of a histogram per power of ten


class Event(NamedTuple):
    """One batch: the wait that starts at ``begin``, then the step. Times in seconds."""

    number: int  # index of the batch, from 0
    window: int  # the window, or -1 before the first one
    begin: float  # of time.perf_counter
    waited: float
    stepped: float
    records: int
    restarted: bool = False  # it is the first of an epoch

    @property
    def seconds(self) -> float:
        return self.waited + self.stepped


class Bin(NamedTuple):
    """Number of values from ``low`` to below ``high`` seconds."""

    low: float
    high: float
    number: int


@dataclasses.dataclass(frozen=True)
class Recording:
    """A loop, batch by batch. ``batches``: their number; there may be fewer events."""

    events: tuple[Event, ...] = ()
    batches: int = 0
    waits: tuple[Bin, ...] = ()
    steps: tuple[Bin, ...] = ()


class Recorder:
    """Records batches as they come, and keeps a bounded number. One thread."""

    def __init__(self, windows: int) -> None:
        self._each = max(1, KEPT // max(1, windows))
        self._kept: list[Event] = []
        self._slow: list[tuple[float, int, Event]] = []
        self._window, self._room = -1, 1
        self._count = 0

    def add(
        self,
        window: int,
        begin: float,
        waited: float,
        stepped: float,
        records: int,
        restarted: bool = False,
    ) -> None:
        event = Event(self._count, window, begin, waited, stepped, records, restarted)
        self._count += 1
        if window != self._window:
            self._window, self._room = window, self._each
        if self._room > 0:
            self._room -= 1
            self._kept.append(event)
        elif len(self._slow) < SLOW:
            heapq.heappush(self._slow, (event.seconds, event.number, event))
        elif event.seconds > self._slow[0][0]:
            heapq.heapreplace(self._slow, (event.seconds, event.number, event))

    def done(self, waits: Sequence[float], steps: Sequence[float]) -> Recording:
        """The recording; ``waits`` and ``steps`` cover all batches."""
        events = sorted(self._kept + [event for _, _, event in self._slow])
        return Recording(tuple(events), self._count, histogram(waits), histogram(steps))


def histogram(values: Sequence[float]) -> tuple[Bin, ...]:
    """Counts in bins of equal width on a logarithmic axis, from the first non-empty one to the
    last. Values of 0 or less count in the lowest.

    >>> [one.number for one in histogram([0.001, 0.0011, 0.1])][::16]
    [2, 1]
    """
    places = [math.floor(_BINS * math.log10(v)) for v in values if v > 0 and math.isfinite(v)]
    if not places:
        return ()
    least, most = min(places), max(places)
    counts = [0] * (most - least + 1)
    for place in places:
        counts[place - least] += 1
    counts[0] += sum(1 for value in values if not value > 0)
    edges = [10 ** ((least + n) / _BINS) for n in range(len(counts) + 1)]
    return tuple(Bin(edges[n], edges[n + 1], count) for n, count in enumerate(counts))


class Span(NamedTuple):
    """An activity: ``begin``, as of time.perf_counter, and its seconds."""

    name: str
    begin: float
    seconds: float


def unix_zero_ns() -> int:
    """The Unix time in nanoseconds at which time.perf_counter() was 0. Takes the closest pair of
    several readings of both clocks.
    """
    readings = [(time.perf_counter_ns(), time.time_ns(), time.perf_counter_ns()) for _ in range(5)]
    before, unix, after = min(readings, key=lambda reading: reading[2] - reading[0])
    return unix - (before + after) // 2


@dataclasses.dataclass
class Timeline:
    """The experiments in order, and the loops that some of them ran, by name."""

    zero_ns: int = dataclasses.field(default_factory=unix_zero_ns)
    experiments: list[Span] = dataclasses.field(default_factory=list)
    loops: dict[str, Recording] = dataclasses.field(default_factory=dict)
