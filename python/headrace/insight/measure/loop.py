# SPDX-License-Identifier: Apache-2.0
"""Times a training loop: how long it waits for a batch, how long a step takes."""

from __future__ import annotations

import dataclasses
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from headrace.batch import records_in as records_in_batch
from headrace.delivery.nested import take_apart
from headrace.insight.measure import thread_clock
from headrace.insight.measure.pace import Pace
from headrace.insight.measure.recording import Recorder, Recording
from headrace.insight.measure.rendezvous import Rendezvous
from headrace.insight.measure.time_limit import Stuck
from headrace.insight.measure.whereabouts import told

WINDOWS = 3  # number of repetitions: their differences are the noise
KEPT_BYTES = 256 << 20  # bytes of batches that are kept to be replayed

Step = Callable[[Any], Any]
_END: Any = object()  # end of an iterator, whose batches may be None


@dataclasses.dataclass(frozen=True)
class Window:
    """A period of the real loop: records per second, and the share of it spent waiting for data."""

    rate: float
    stall: float


class Spread(NamedTuple):
    """Seconds of one kind of event: their mean and percentiles."""

    mean: float
    p50: float
    p95: float
    p99: float

    @staticmethod
    def of(values: list[float]) -> Spread:
        ordered = sorted(values) or [0.0]

        def at(share: float) -> float:
            return ordered[min(len(ordered) - 1, int(share * len(ordered)))]

        return Spread(statistics.fmean(ordered), at(0.5), at(0.95), at(0.99))


@dataclasses.dataclass(frozen=True)
class Timed:
    """A loop's times. ``first``: seconds until its first batch, which do not count as waiting;
    those of later epochs do.
    """

    windows: list[Window]
    wait: Spread
    step: Spread
    batches: int
    records: int
    first: float
    wait_cpu: float  # fraction of the waiting in which this thread computed the batches itself
    failure: str = ""
    recording: Recording = dataclasses.field(default_factory=Recording)
    gave_up: bool = False  # because something hung

    @property
    def rate(self) -> float:
        """Records per second: the median of the windows."""
        return statistics.median(window.rate for window in self.windows)

    def without_waits(self) -> Timed:
        """The rate if all batches had come without waiting."""
        windows = [Window(w.rate / max(1e-9, 1 - w.stall), 0.0) for w in self.windows]
        return dataclasses.replace(self, windows=windows)

    @property
    def stall(self) -> float:
        """The fraction of the time spent waiting: the median of the windows."""
        return statistics.median(window.stall for window in self.windows)


def records_in(batch: Any) -> int:
    """How many records a batch has: the length of its first element that has one."""
    known = records_in_batch(batch)
    if known is not None:
        return known
    value = batch
    while True:
        if isinstance(value, Mapping) and value:
            value = next(iter(value.values()))
        elif isinstance(value, (tuple, list)) and value and not _is_number(value[0]):
            countable = hasattr(value[0], "__len__") or hasattr(value[0], "shape")
            if isinstance(value[0], (str, bytes)) or not countable:
                return len(value)
            if _is_scalar(value[0]):
                return len(value)
            value = value[0]
        else:
            break
    shape = getattr(value, "shape", None)
    if shape is not None:
        return int(shape[0]) if len(shape) else 1
    return len(value) if hasattr(value, "__len__") else 1


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float))


def _is_scalar(value: Any) -> bool:
    return getattr(value, "shape", None) == ()


def bytes_in(batch: Any) -> int:
    """Bytes of all arrays of a batch."""
    return sum(int(a.nbytes) for a in take_apart(batch, lambda v: hasattr(v, "nbytes")).leaves)


def settle() -> None:
    """Waits until a GPU has finished, since steps are only queued there."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.synchronize()


def time_loop(
    batches: Iterable[Any],
    step: Step | None,
    seconds: float,
    windows: int = WINDOWS,
    rendezvous: Rendezvous | None = None,
) -> Timed:
    """Runs the loop for about ``seconds``, epoch after epoch, at least one batch per window. With a
    ``rendezvous``, all ranks do the same number of steps. An exception of ``batches`` or ``step``
    ends it; the failure is returned with the times so far. Ctrl-C propagates.
    """
    watch = _Watch(batches, step, seconds / windows, windows, rendezvous)
    try:
        watch.run()
    except Stuck as stuck:
        watch.failure, watch.gave_up = told(stuck), True
    except Exception as error:
        watch.failure = watch.failure or told_of(error)
    return watch.timed()


def told_of(error: Exception) -> str:
    """A failure of a loader or a step in one sentence."""
    text = str(error)
    if isinstance(error, (EOFError, ConnectionError)):
        # An error that comes from a worker process dying while it passed a batch.
        text = f"{text + '; ' if text else ''}a worker process has died"
    return f"{type(error).__name__}: {text}"


class Ledger:
    """Times of a loop, accumulated batch by batch, for loops of any code."""

    def __init__(self, windows: int = WINDOWS, has_step: bool = True) -> None:
        self.windows: list[Window] = []
        self.first = 0.0
        self._has_step = has_step
        self._waits: list[float] = []
        self._steps: list[float] = []
        self._recorder = Recorder(windows)
        self._records = 0
        self._computed = self._waited = 0.0

    def add(
        self,
        begin: float,
        waited: float,
        computed: float,
        stepped: float,
        records: int,
        restarted: bool = False,
        warming: bool = False,
    ) -> None:
        """Adds a batch: the seconds waited for it, how many of them this thread computed, and the
        seconds of its step. Batches of the warm-up are recorded, but not counted.
        """
        window = -1 if warming else len(self.windows)
        self._recorder.add(window, begin, waited, stepped, records, restarted)
        if warming:
            return
        self._waits.append(waited)
        if self._has_step:
            self._steps.append(stepped)
        self._waited += waited
        self._computed += computed
        self._records += records

    def close(self, records: int, seconds: float, waited: float) -> None:
        """Ends a window with this number of records, duration and waiting time."""
        self.windows.append(Window(records / seconds, min(1.0, waited / seconds)))

    def timed(self, failure: str = "", gave_up: bool = False) -> Timed:
        return Timed(
            self.windows,
            Spread.of(self._waits),
            Spread.of(self._steps),
            len(self._waits),
            self._records,
            self.first,
            self._computed / self._waited if self._waited else 0.0,
            failure,
            self._recorder.done(self._waits, self._steps),
            gave_up,
        )


class _Watch:
    def __init__(
        self,
        batches: Iterable[Any],
        step: Step | None,
        seconds: float,
        windows: int,
        rendezvous: Rendezvous | None,
    ) -> None:
        self._batches, self._step, self._rendezvous = batches, step, rendezvous
        self._seconds, self._count = seconds, windows
        self._ledger = Ledger(windows, step is not None)
        self.failure = ""
        self.gave_up = False

    def run(self) -> None:
        begin, iterator = time.perf_counter(), iter(self._batches)
        batch = next(iterator, _END)
        first = self._ledger.first = time.perf_counter() - begin
        if batch is _END:
            self.failure = "the loader delivered no batch"
            return
        stepped = self._do(batch)
        records = records_in(batch)
        self._ledger.add(begin, first, 0.0, stepped, records, restarted=True, warming=True)
        del batch  # whose memory the loader may need
        while len(self._ledger.windows) < self._count:
            iterator = self._window(iterator)
            if self.failure:
                return

    def _window(self, iterator: Iterator[Any]) -> Iterator[Any]:
        """A period of the loop; a window that an error ends is counted if it has a batch."""
        pace = Pace(self._seconds, self._rendezvous)
        start = time.perf_counter()
        waited = 0.0
        records = steps = 0
        try:
            while not pace.over(time.perf_counter() - start - pace.compared, steps):
                steps += 1
                begin = thread_clock.now()
                batch = next(iterator, _END)
                restarted = batch is _END
                if restarted:
                    iterator = iter(self._batches)
                    batch = next(iterator, _END)
                spent = thread_clock.now().since(begin)
                took = spent.wall
                if batch is _END:
                    self.failure = "the loader can be iterated only once, and is used up"
                    break
                stepped = self._do(batch)
                count = records_in(batch)
                waited += took
                records += count
                computed = took - spent.waited
                self._ledger.add(begin.wall, took, computed, stepped, count, restarted)
        except Exception as error:
            self.failure = told_of(error)
        settle()
        total = time.perf_counter() - start - pace.compared
        if records and total > 0:
            self._ledger.close(records, total, waited)
        elif not self.failure:
            self.failure = "its batches are empty"
        return iterator

    def _do(self, batch: Any) -> float:
        if self._step is None:
            return 0.0
        begin = time.perf_counter()
        self._step(batch)
        return time.perf_counter() - begin

    def timed(self) -> Timed:
        return self._ledger.timed(self.failure, self.gave_up)


def keep_some(batches: Iterable[Any], count: int = 8) -> list[Any]:
    """Copies the first batches, up to 256 MiB, so that they can be replayed from memory."""
    kept: list[Any] = []
    size = 0
    for batch in batches:
        kept.append(copied(batch))
        size += bytes_in(batch)
        if len(kept) >= count or size > KEPT_BYTES:
            break
    return kept


def copied(batch: Any) -> Any:
    """A copy of the batch, so that the loader's memory is released."""
    parts = take_apart(batch, lambda value: hasattr(value, "clone") or hasattr(value, "shape"))
    return parts.put_together([_copy_of(array) for array in parts.leaves])


def _copy_of(array: Any) -> Any:
    if hasattr(array, "clone"):
        return array.clone()
    return array.copy() if hasattr(array, "copy") else array


def once_more(batch: Any, copies: bool) -> Any:
    """An earlier batch, in new lists and dictionaries; ``copies``: with new arrays, too."""
    if copies:
        return copied(batch)
    parts = take_apart(batch, lambda value: hasattr(value, "shape"))
    return parts.put_together(parts.leaves)


class Replay:
    """Repeats batches from memory, endlessly; ``copies``: for steps that modify them."""

    def __init__(self, batches: list[Any], copies: bool = False) -> None:
        self._batches, self._copies = batches, copies

    def __iter__(self) -> Iterator[Any]:
        while True:
            for batch in self._batches:
                yield once_more(batch, self._copies)
