# SPDX-License-Identifier: Apache-2.0
"""A process over time: memory, CPU seconds and the GIL's share, sampled by a thread.

    with ProcessSampler() as sampler:
        begin = sampler.now()
        ...
        lived = sampler.between(begin, sampler.now())

The thread sleeps in the engine, without the GIL, and requests the GIL at random moments to see
whether another thread holds it. The list of readings has a fixed length: when it is full, every
second one is dropped and the interval doubles.
"""

from __future__ import annotations

import bisect
import dataclasses
import os
import statistics
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

from headrace import _core
from headrace.insight.measure.processes import Processes
from headrace.readable import is_readable

_ASK_EVERY = 0.02  # seconds, on average, between requests for the GIL
_MOST = 512  # readings that are kept

_Value = TypeVar("_Value")


class Reading(NamedTuple):
    """One measurement of the process. All values except memory are cumulative."""

    at: float  # time.perf_counter()
    cpu_seconds: float  # of this process, all threads
    child_seconds: float  # of processes that it started, and their descendants
    resident_bytes: int
    child_bytes: int  # of its child processes; shared memory is counted in each
    asked: float  # requests for the GIL
    held: float  # requests that found it held
    late: float = 0.0  # requests that were late, because no core was free


class Requests(NamedTuple):
    """Requests for the GIL, at random moments. A late one was only made once a core became free, so
    it says little.
    """

    asked: float
    held: float
    late: float

    @property
    def share(self) -> tuple[float | None, float | None]:
        """Fraction of time that the GIL was held, and its standard error; None if most are late."""
        doubt = self.late / max(1.0, self.asked + self.late)
        if self.asked < 1 or doubt > 0.5:
            return None, None
        share = self.held / self.asked
        chance = max(share * (1 - share), 1 / self.asked) / self.asked
        return share, float((chance + (doubt / 2) ** 2) ** 0.5)


class Lived(NamedTuple):
    """A period of a process's life; None for unknown values."""

    seconds: float
    cpu_seconds: float  # including processes that it started
    gil_share: float | None  # of the time, 0 to 1
    gil_error: float | None  # its standard error


class Loop(Protocol):
    """A timed loop; ``first``: seconds until its first batch, which do not count."""

    @property
    def first(self) -> float: ...
    @property
    def batches(self) -> int: ...
    @property
    def records(self) -> int: ...


@dataclasses.dataclass(frozen=True)
class Vitals:
    """The resources used by a loop; None for unknown values. gil_share: the fraction of the time
    that a thread held the GIL, 0 to 1, within about twice gil_error.
    cpu_seconds_per_1000: of all threads and worker processes, per 1,000 records.
    memory: (seconds since the loop began, resident bytes with those of worker processes).
    memory_growth: bytes per step after the warm-up.
    """

    gil_share: float | None = None
    gil_error: float | None = None
    cpu_seconds_per_1000: float | None = None
    memory: tuple[tuple[float, int], ...] = ()
    memory_growth: float | None = None


class ProcessSampler:
    """Takes a reading every ``every`` seconds while the context is open, then calls ``tell``.
    ask_every: seconds between requests for the GIL, on average; None: no requests.
    """

    def __init__(
        self,
        every: float = 0.1,
        ask_every: float | None = _ASK_EVERY,
        tell: Callable[[], object] = lambda: None,
        root: str | os.PathLike[str] = "/",
    ) -> None:
        self.every = every
        self._ask_every = ask_every if has_gil() else None
        self._tell = tell
        self._processes = Processes(root)
        self._asked = self._held = self._late = 0.0
        self._readings: Thinned[Reading] = Thinned(_MOST)
        self._stop: tuple[int, int] | None = None  # a pipe; writing to it wakes the thread
        self._thread: threading.Thread | None = None

    @property
    def readings(self) -> list[Reading]:
        """The readings that are kept, oldest first."""
        return self._readings.all()

    @property
    def requests(self) -> Requests:
        """The requests for the GIL so far."""
        return Requests(self._asked, self._held, self._late)

    def __enter__(self) -> ProcessSampler:
        self._readings.add(self._look())
        self._stop = os.pipe()
        self._thread = threading.Thread(target=self._run, name="headrace-sampler", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        thread, self._thread = self._thread, None
        if thread is None or self._stop is None:
            return
        os.write(self._stop[1], b"x")
        thread.join()
        for file in self._stop:
            os.close(file)
        self._readings.add(self._look())

    def now(self) -> float:
        return time.perf_counter()

    def between(self, begin: float, end: float) -> Lived:
        """The events between two moments, from the readings around them."""
        readings = self.readings
        first, last = at(readings, begin), at(readings, end)
        requests = Requests(
            last.asked - first.asked, last.held - first.held, last.late - first.late
        )
        share, error = requests.share
        cpu = last.cpu_seconds - first.cpu_seconds + last.child_seconds - first.child_seconds
        return Lived(end - begin, max(0.0, cpu), share, error)

    def _run(self) -> None:
        assert self._stop is not None
        stop = self._stop[0]
        # Without requests for the GIL: an interval longer than any reading.
        gap = self._ask_every or 1e6 * self.every
        while True:
            asked, held, late = _core.ask_for_gil(self.every, gap, stop)
            if is_readable(stop):
                return
            if self._ask_every:
                self._asked += asked
                self._held += held
                self._late += late
            self._readings.add(self._look())
            self._tell()

    def _look(self) -> Reading:
        memory, (child_seconds, child_bytes) = self._processes.memory(), self._processes.children()
        cpu = time.process_time()
        return Reading(self.now(), cpu, child_seconds, memory, child_bytes, *self.requests)


class Thinned(Generic[_Value]):
    """Keeps at most ``most`` elements: at the limit every second one is dropped, and later ones are
    thinned equally. The last one is always kept. One thread adds, any may read.
    """

    def __init__(self, most: int) -> None:
        self._most, self._stride, self._count = most, 1, 0
        self._kept: list[_Value] = []
        self._last: list[_Value] = []

    def add(self, value: _Value) -> None:
        if self._count % self._stride == 0:
            if len(self._kept) >= self._most:
                self._kept = self._kept[::2]
                self._stride *= 2
            if self._count % self._stride == 0:
                self._kept.append(value)
        self._count += 1
        self._last = [value]

    def all(self) -> list[_Value]:
        kept, last = self._kept, self._last
        return [*kept] if kept[-1:] == last else [*kept, *last]


def at(readings: Sequence[Reading], moment: float) -> Reading:
    """The reading at a moment, interpolated between its neighbors. REQUIRES: at least one."""
    after = bisect.bisect_left(readings, moment, key=lambda reading: reading.at)
    if after == 0 or after == len(readings):
        return readings[min(after, len(readings) - 1)]
    left, right = readings[after - 1], readings[after]
    part = (moment - left.at) / (right.at - left.at)
    values = [a + part * (b - a) for a, b in zip(left, right, strict=True)]
    moment, cpu, child, memory, child_memory, *requests = values
    return Reading(moment, cpu, child, int(memory), int(child_memory), *requests)


def growth(counts: Sequence[float], sizes: Sequence[float]) -> float | None:
    """The growth of memory per unit, for example in bytes per step. From the median of the second
    quarter of the samples to the median of the last: buffers filled at the start do not count, and
    a single peak has no influence. None for fewer than 8 samples.
    """
    if len(sizes) < 8:
        return None
    quarter = len(sizes) // 4
    early, late = slice(quarter, 2 * quarter), slice(len(sizes) - quarter, len(sizes))
    steps = statistics.median(counts[late]) - statistics.median(counts[early])
    if steps <= 0:
        return None
    return (statistics.median(sizes[late]) - statistics.median(sizes[early])) / steps


def vitals(sampler: ProcessSampler, begin: float, loop: Loop) -> Vitals:
    """The resources of a loop that began at a moment and has just ended."""
    begin, end = begin + loop.first, sampler.now()
    lived = sampler.between(begin, end)
    seen = [reading for reading in sampler.readings if begin <= reading.at <= end]
    sizes = [reading.resident_bytes + reading.child_bytes for reading in seen]
    steps = [loop.batches * (reading.at - begin) / (end - begin) for reading in seen]
    return Vitals(
        lived.gil_share,
        lived.gil_error,
        1000 * lived.cpu_seconds / loop.records if loop.records else None,
        tuple((reading.at - begin, size) for reading, size in zip(seen, sizes, strict=True)),
        growth(steps, sizes),
    )


def has_gil() -> bool:
    """Whether this interpreter has a GIL."""
    enabled = getattr(sys, "_is_gil_enabled", None)
    return True if enabled is None else bool(enabled())
