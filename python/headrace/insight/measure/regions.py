# SPDX-License-Identifier: Apache-2.0
"""Named parts of a training step, and the time spent in each.

    >>> import headrace as hr
    >>> def step(batch):
    ...     with hr.region("fusion"):
    ...         return sum(batch)
    >>> step([1, 2])
    3

`region` costs next to nothing unless recorded. The doctor uses `Recorder`, which times nested parts
on one thread, by the host's clock or by events of a GPU.
"""

from __future__ import annotations

import contextlib
import dataclasses
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

from headrace.errors import declare

BAD_REGION = declare(
    "HR0931",
    "config",
    "region needs a name",
    "hr.region takes the name of a part of your training step, as shown in the report.",
)

STEP = "step"  # name of the whole step
FORWARD, LOSS, BACKWARD = "forward", "loss", "backward"

_recorder: Recorder | None = None  # while recording


class region:
    """Names a part of your training step: ``with hr.region("fusion"): ...``.

    ``hr.doctor(loader, step)`` shows the fraction of the step that each one takes. Regions can be
    nested. Outside of an examination it does nothing, in less than a microsecond. Raises
    ConfigError (HR0931) for an invalid name.
    """

    __slots__ = ("_name", "_records")

    def __init__(self, name: str) -> None:
        if not isinstance(name, str) or not name:
            raise BAD_REGION.error(f"got {name!r}", hint='write hr.region("fusion")')
        self._name = name

    def __enter__(self) -> None:
        self._records = _recorder
        if self._records is not None:
            self._records.begin(self._name)

    def __exit__(self, *_: object) -> None:
        if self._records is not None:
            self._records.end(self._name)


class Region(NamedTuple):
    """Average seconds of a part per step. ``share``: fraction of the whole step, 0..1."""

    path: tuple[str, ...]  # the names of its enclosing regions, and its own
    seconds: float
    own_seconds: float  # excluding the regions inside it
    share: float
    calls: float

    @property
    def name(self) -> str:
        return self.path[-1]

    @property
    def is_divided(self) -> bool:
        """Whether it contains other regions."""
        return self.own_seconds < self.seconds


class Clock(Protocol):
    """Marks points in time, and returns the seconds between two of them once the work is
    finished."""

    def mark(self) -> Any: ...

    def seconds(self, begin: Any, end: Any) -> float: ...


class HostClock:
    def mark(self) -> float:
        return time.perf_counter()

    def seconds(self, begin: float, end: float) -> float:
        return end - begin


class CudaClock:
    """Events in the current stream: the GPU's time between them, whenever the work was queued."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch

    def mark(self) -> Any:
        event = self._torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def seconds(self, begin: Any, end: Any) -> float:
        end.synchronize()
        return 1e-3 * float(begin.elapsed_time(end))


def clock_of_steps() -> Clock:
    """Events if torch uses a GPU, otherwise the host's clock."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
        return CudaClock(torch)
    return HostClock()


@dataclasses.dataclass
class _Part:
    path: tuple[str, ...]
    begin: Any
    end: Any = None
    without: tuple[_Part, ...] = ()  # inner parts; their seconds are not this one's


class Recorder:
    """Records the begin and end of a step's parts; parts on other threads are ignored."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._thread = threading.get_ident()
        self._open: list[_Part] = []
        self.forget()

    def forget(self) -> None:
        """Discards all recordings."""
        self._closed: list[_Part] = []
        self._order: dict[tuple[str, ...], None] = {}  # paths in order of appearance
        self._forward_end: tuple[int, Any] | None = (
            None  # number of parts closed by then, and the time
        )

    @property
    def found(self) -> bool:
        """Whether there were any parts in addition to the step itself."""
        return any(len(path) > 1 for path in self._order)

    @property
    def steps(self) -> int:
        """Number of completed steps."""
        return sum(part.path == (STEP,) for part in self._closed)

    @contextlib.contextmanager
    def step(self) -> Iterator[None]:
        """A whole step; failed steps are discarded."""
        count = len(self._closed)
        self.begin(STEP)
        try:
            yield
        except BaseException:
            del self._closed[count:]
            self._open.clear()
            raise
        self.end(STEP)

    def begin(self, name: str) -> None:
        if threading.get_ident() != self._thread:
            return
        path = (*self._open[-1].path, name) if self._open else (name,)
        self._order.setdefault(path)
        self._open.append(_Part(path, self._clock.mark()))

    def end(self, name: str) -> None:
        """Ends the innermost part of this name, and parts inside it that an error left open."""
        if threading.get_ident() != self._thread or not self._is_open(name):
            return
        mark = self._clock.mark()
        while True:
            part = self._open.pop()
            part.end = mark
            self._closed.append(part)
            if part.path[-1] == name:
                return

    def _is_open(self, name: str) -> bool:
        return any(part.path[-1] == name for part in self._open)

    def forward_ends(self) -> None:
        """Called after the model's forward; until backward starts, the loss is computed."""
        if threading.get_ident() == self._thread:
            self._forward_end = len(self._closed), self._clock.mark()

    @contextlib.contextmanager
    def backward(self) -> Iterator[None]:
        """The backward pass, counted once even if torch's functions call each other."""
        if threading.get_ident() != self._thread or self._is_open(BACKWARD):
            yield
            return
        self._close_loss()
        self.begin(BACKWARD)
        try:
            yield
        finally:
            self.end(BACKWARD)

    def _close_loss(self) -> None:
        if self._forward_end is None:
            return
        count, begin = self._forward_end
        self._forward_end = None
        around = self._open[-1].path if self._open else ()
        between = [p for p in self._closed[count:] if p.path[:-1] == around]
        if any(part.path[-1] == LOSS for part in between):
            return  # the user's own region is more precise
        path = (*around, LOSS)
        self._order.setdefault(path)
        self._closed.append(_Part(path, begin, self._clock.mark(), tuple(between)))

    def regions(self) -> list[Region]:
        """Average seconds of the closed parts per step; parents before their children."""
        seconds = dict.fromkeys(self._order, 0.0)
        calls = dict.fromkeys(self._order, 0)
        for part in self._closed:
            took = self._seconds(part) - sum(map(self._seconds, part.without))
            seconds[part.path] += max(0.0, took)
            calls[part.path] += 1
        steps = max(1, self.steps)
        whole = seconds.get((STEP,), 0.0)
        return [
            Region(
                path,
                seconds[path] / steps,
                max(0.0, seconds[path] - self._inner(path, seconds)) / steps,
                seconds[path] / whole if whole > 0 else 0.0,
                calls[path] / steps,
            )
            for path in self._in_tree_order()
            if calls[path]
        ]

    def _seconds(self, part: _Part) -> float:
        return self._clock.seconds(part.begin, part.end)

    @staticmethod
    def _inner(path: tuple[str, ...], seconds: dict[tuple[str, ...], float]) -> float:
        return sum(value for other, value in seconds.items() if other[:-1] == path)

    def _in_tree_order(self, around: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
        for path in self._order:
            if path[:-1] == around:
                yield path
                yield from self._in_tree_order(path)


@contextlib.contextmanager
def recording(recorder: Recorder) -> Iterator[None]:
    """Inside, regions are recorded in this recorder."""
    global _recorder
    before, _recorder = _recorder, recorder
    try:
        yield
    finally:
        _recorder = before
