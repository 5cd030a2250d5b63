# SPDX-License-Identifier: Apache-2.0
"""The clock in a training loop: two readings and a few additions for each batch.

Each iteration counts in its own lane, which only the thread of its loop writes; readers add up the
lanes. So the loop takes no lock, and a reader is at most one batch behind.
"""

from __future__ import annotations

import contextlib
import dataclasses
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator
from operator import add, sub
from typing import Any

from headrace.batch import field_of_records
from headrace.batch import records_in as batch_records
from headrace.insight.live.histogram import BOUNDS, SIZE
from headrace.insight.measure.loop import records_in

_clock = time.perf_counter


@dataclasses.dataclass(frozen=True)
class Figures:
    """Counts up to a moment; the difference of two is what happened in between. The seconds include
    the wait or step in progress; the sums and counts of the histograms do not.
    """

    at: float = 0.0
    batches: int = 0
    records: int = 0
    epochs: int = 0  # completed epochs
    wait_seconds: float = 0.0
    step_seconds: float = 0.0
    wait_sum: float = 0.0
    step_sum: float = 0.0
    waits: tuple[int, ...] = (0,) * SIZE
    steps: tuple[int, ...] = (0,) * SIZE
    waiting: float = 0.0  # seconds of the longest wait in progress; 0: none
    first_batch: float | None = None  # seconds from the first iter() to the first batch

    def since(self, earlier: Figures) -> Figures:
        return Figures(
            self.at - earlier.at,
            self.batches - earlier.batches,
            self.records - earlier.records,
            self.epochs - earlier.epochs,
            self.wait_seconds - earlier.wait_seconds,
            self.step_seconds - earlier.step_seconds,
            self.wait_sum - earlier.wait_sum,
            self.step_sum - earlier.step_sum,
            tuple(map(sub, self.waits, earlier.waits)),
            tuple(map(sub, self.steps, earlier.steps)),
            self.waiting,
            self.first_batch,
        )

    @property
    def loop_seconds(self) -> float:
        """Time in the loop: waits and steps, without the time between two epochs."""
        return self.wait_seconds + self.step_seconds

    @property
    def wait_share(self) -> float | None:
        """Fraction of the loop's time spent waiting for data; None if there was no loop."""
        return self.wait_seconds / self.loop_seconds if self.loop_seconds > 0 else None

    def rate(self, count: float) -> float:
        """``count`` per second of the loop's time."""
        return count / self.loop_seconds if self.loop_seconds > 0 else 0.0


class Lane:
    """Counts one iteration at a time; its thread writes, others read."""

    __slots__ = (
        "batches",
        "begin",
        "end",
        "epochs",
        "first_batch",
        "records",
        "step_seconds",
        "steps",
        "taken",
        "vain_seconds",
        "wait_seconds",
        "waits",
    )

    def __init__(self) -> None:
        self.begin = 0.0  # start of the wait in progress; 0: none
        self.end = 0.0  # end of the last wait; 0: none in this iteration
        self.batches = self.records = self.epochs = 0
        self.wait_seconds = self.step_seconds = 0.0
        self.vain_seconds = 0.0  # of waits that ended without a batch
        self.waits, self.steps = [0] * SIZE, [0] * SIZE
        self.first_batch: float | None = None
        self.taken = False

    def step_until(self, now: float) -> None:
        """Ends the step on the last batch, if there is one."""
        if self.end:
            took = now - self.end
            self.step_seconds += took
            self.steps[bisect_left(BOUNDS, took)] += 1

    def release(self) -> None:
        self.begin = self.end = 0.0
        self.taken = False


class Meter:
    """The lanes of one watch. ``timed`` may be called from any thread."""

    def __init__(self, clock: Callable[[], float] = _clock) -> None:
        self.clock = clock
        self._lanes: list[Lane] = []
        self._lock = threading.Lock()

    def timed(
        self,
        begin_iteration: Callable[[], Iterator[Any]],
        count: Callable[[Any], int] | None = None,
    ) -> Iterator[Any]:
        """A timed iteration. ``count``: records of a batch, if they cannot be derived."""
        begin = self.clock()
        iterator = begin_iteration()
        lane = self._lane()
        kind = _Sized if hasattr(type(iterator), "__len__") else Timed
        return kind(iterator, lane, begin, self.clock, count)

    def _lane(self) -> Lane:
        with self._lock:
            lane = next((lane for lane in self._lanes if not lane.taken), None)
            if lane is None:
                lane = Lane()
                self._lanes.append(lane)
            lane.taken = True
            return lane

    def figures(self) -> Figures:
        """The sum of all lanes, as of now."""
        now = self.clock()
        found = Figures(now)
        for lane in list(self._lanes):
            found = _added(found, lane, now)
        return found

    def renew_lock(self) -> None:
        """For a forked child, which lacks the thread that held the lock."""
        self._lock = threading.Lock()


def _added(so_far: Figures, lane: Lane, now: float) -> Figures:
    begin, end = lane.begin, lane.end
    waiting = max(0.0, now - begin) if begin else 0.0
    stepping = max(0.0, now - end) if end and not begin else 0.0
    firsts = [first for first in (so_far.first_batch, lane.first_batch) if first is not None]
    return Figures(
        now,
        so_far.batches + lane.batches,
        so_far.records + lane.records,
        so_far.epochs + lane.epochs,
        so_far.wait_seconds + lane.wait_seconds + lane.vain_seconds + waiting,
        so_far.step_seconds + lane.step_seconds + stepping,
        so_far.wait_sum + lane.wait_seconds,
        so_far.step_sum + lane.step_seconds,
        tuple(map(add, so_far.waits, lane.waits)),
        tuple(map(add, so_far.steps, lane.steps)),
        max(so_far.waiting, waiting),
        firsts[0] if firsts else None,
    )


class Timed:
    """Wraps a loader's iterator. It keeps no batch, and forwards unknown attributes."""

    __slots__ = ("__weakref__", "_begun", "_clock", "_count", "_kind", "_lane", "_next", "_path",
                 "_shaped", "inner")  # fmt: skip

    def __init__(
        self,
        inner: Iterator[Any],
        lane: Lane,
        begun: float,
        clock: Callable[[], float],
        count: Callable[[Any], int] | None,
    ) -> None:
        self.inner = inner
        self._next = inner.__next__
        self._lane: Lane | None = lane
        self._clock = clock
        # The time of iter() counts as waiting, too; that of the loop after it does not.
        self._begun: float | None = clock() - begun
        self._count = count
        self._path: tuple[Any, ...] | None = None
        self._shaped = False
        self._kind: type | None = None

    def __iter__(self) -> Timed:
        return self

    def __next__(self) -> Any:
        lane = self._lane
        if lane is None:
            return self._next()
        begin = lane.begin = self._clock()
        end = lane.end
        if end:
            took = begin - end
            lane.step_seconds += took
            lane.steps[bisect_left(BOUNDS, took)] += 1
        try:
            batch = self._next()
        except BaseException as error:
            self._broken_off(lane, begin, error)
            raise
        end = self._clock()
        took = end - begin
        if self._begun is not None:
            took += self._begun
            self._first(lane, took)
        lane.wait_seconds += took
        lane.waits[bisect_left(BOUNDS, took)] += 1
        lane.batches += 1
        lane.end, lane.begin = end, 0.0
        if self._path is not None and type(batch) is self._kind:
            value: Any = batch
            try:
                for key in self._path:
                    value = value[key]
                # len() of a torch tensor takes seven times as long as its shape.
                lane.records += value.shape[0] if self._shaped else len(value)
                return batch
            except Exception:  # it has a different structure from the previous ones
                pass
        lane.records += self._learn(batch)
        return batch

    def _first(self, lane: Lane, took: float) -> None:
        self._begun = None
        if lane.first_batch is None:
            lane.first_batch = took

    def _learn(self, batch: Any) -> int:
        """Records of a batch, and the path to the value that determines it, for later batches."""
        if self._count is not None:
            return self._count(batch)
        try:
            number = records_in(batch)
        except Exception:  # too unusual to be counted, but the loop must not fail
            return 1
        with contextlib.suppress(Exception):
            self._kind = type(batch)
            self._path, self._shaped = _path_to_records(batch, number)
        return number

    def _broken_off(self, lane: Lane, begin: float, error: BaseException) -> None:
        """No batch came: the epoch is over, or an exception was raised, after which a loop may
        continue. The seconds count as waiting, but are in no bucket of the histogram.
        """
        lane.vain_seconds += self._clock() - begin + (self._begun or 0.0)
        self._begun = None
        lane.begin = lane.end = 0.0
        if isinstance(error, StopIteration):
            lane.epochs += 1
            self._leave()

    def _leave(self) -> None:
        lane, self._lane = self._lane, None
        if lane is not None:
            lane.release()

    def __getattr__(self, name: str) -> Any:
        if name == "inner":  # during construction
            raise AttributeError(name)
        return getattr(self.inner, name)

    def __del__(self) -> None:
        """For a loop that was left early: ends its last step."""
        lane = getattr(self, "_lane", None)
        if lane is not None:
            lane.step_until(self._clock())
            lane.release()


class _Sized(Timed):
    __slots__ = ()

    def __len__(self) -> int:
        return len(self.inner)  # type: ignore[arg-type]


def _path_to_records(batch: Any, number: int) -> tuple[tuple[Any, ...] | None, bool]:
    """Keys that lead to an array (True) or a sequence of ``number``; None: not found."""
    path: tuple[Any, ...] = ()
    value: Any = batch
    known = field_of_records(batch)
    if known is not None:
        return (known,), hasattr(batch[known], "shape")
    if batch_records(batch) is not None:
        return None, False
    for _ in range(8):
        if hasattr(value, "shape"):
            fits = len(value.shape) > 0 and value.shape[0] == number
            return (path if fits else None), True
        if not isinstance(value, (tuple, list, dict)) or not value:
            fits = hasattr(value, "__len__") and len(value) == number
            return (path if fits else None), False
        key = next(iter(value)) if isinstance(value, dict) else 0
        below = value[key]
        countable = hasattr(below, "__len__") or hasattr(below, "shape")
        if isinstance(below, (str, bytes)) or not countable or getattr(below, "shape", 0) == ():
            fits = len(value) == number and not isinstance(value, dict)
            return (path if fits else None), False
        value, path = below, (*path, key)
    return None, False
