# SPDX-License-Identifier: Apache-2.0
"""The global generators of torch, NumPy and Python, used by both training loops and transforms. A
Python transform that draws from them runs on a thread of the engine: the generators are seeded for
the record before the transform runs, and restored afterwards. A training loop that draws in the
meantime would get the record's numbers, and the transform the loop's. So they take turns: while
such a loop is outside its loader, these transforms wait, as with DataLoader(num_workers=0), except
when another thread waits for a batch. During a loop's first batches, and the first batches of each
epoch, transforms wait in any case, to find out whether the loop draws; afterwards this is checked
periodically.
"""

from __future__ import annotations

import functools
import operator
import os
import random
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from headrace import _core, finalizers, twisters
from headrace.errors import warn

_FIRST = 16  # number of first batches, between which transforms always wait
_AGAIN = 2  # number of such batches in later epochs
_LOOK = 16  # one batch out of this many is checked afterwards
_SLICE = 0.05  # seconds between two checks for waiting threads
_PACKAGE = os.path.dirname(__file__) + os.sep
_Place: TypeAlias = tuple[int, int]


class _Global(NamedTuple):
    """A generator that all threads share. take: returns its state."""

    take: Callable[[], Any]
    put: Callable[[Any], None]
    seed: Callable[[int], Any]
    equal: Callable[[Any, Any], bool]


@functools.lru_cache(2)
def _globals(torch: Any) -> dict[str, _Global]:
    """torch: the module, if the process has imported it."""
    python: Any = random.random
    numpy: Any = np.random.random_sample
    out = {
        "random": _Global(*twisters.of_python(python.__self__), random.seed, operator.eq),
        "numpy.random": _Global(
            *twisters.of_numpy(numpy.__self__),
            lambda seed: np.random.seed(seed & 0xFFFFFFFF),
            operator.eq,
        ),
    }
    if torch:
        out["torch"] = _Global(
            torch.random.get_rng_state,
            torch.random.set_rng_state,
            torch.random.default_generator.manual_seed,
            torch.equal,
        )
    return out


def _present() -> dict[str, _Global]:
    return _globals(sys.modules.get("torch"))


class _Turns:
    """Whether the generators belong to a running transform or to training loops. Their user holds
    the condition's lock.
    """

    def __init__(self) -> None:
        self.loops: dict[int, int] = {}  # loops outside their loaders, with their threads
        self.inside: set[int] = set()  # threads that wait for batches, which may need transforms
        self.leaving: dict[int, _Place] = {}  # threads that free a loader, and where
        self.drawing: set[str] = set()  # generators from which a loop has drawn
        self.are_used = False  # by steps
        self.renew()

    def renew(self) -> None:
        """In a forked child, where no other thread exists."""
        self.condition = threading.Condition(threading.RLock())
        for threads in (self.loops, self.inside, self.leaving):
            threads.clear()

    def are_loops(self) -> bool:
        """Whether a loop may draw now, and no thread waits for a batch."""
        return bool(self.loops) and not self.inside and not self._are_leaving()

    def _are_leaving(self) -> bool:
        """Whether a thread is still freeing a loader, which waits for its transforms."""
        if self.leaving:
            frames = _frames_beside()
            for thread, place in list(self.leaving.items()):
                if place not in map(_place, _outwards(frames.get(thread))):
                    self.leaving.pop(thread, None)
        return bool(self.leaving)

    def come_in(self) -> None:
        """Marks this thread as inside a loader."""
        self.inside.add(threading.get_ident())
        if self.loops and self.are_used:
            with self.condition:
                self.condition.notify_all()

    def await_loops(self) -> None:
        """Returns when no loop is outside its loader, or when a thread of the program waits for
        Headrace, maybe for this transform. REQUIRES: the lock is held.
        """
        self.are_used = True
        waiting: set[_Place] = set()
        while self.are_loops():
            alive = set(sys._current_frames())
            for loop, thread in list(self.loops.items()):
                if thread not in alive:  # the thread has ended
                    self.loops.pop(loop, None)
            before, waiting = waiting, _inside_headrace()
            if waiting & before or not self.are_loops():
                return
            self.condition.wait(_SLICE)

    def forget(self, loop: int) -> None:
        """Called when the loop's loader is freed; in the middle of an epoch, that waits for its
        transforms.
        """
        if self.loops.pop(loop, None) is not None:
            for frame in _outwards(sys._getframe()):
                if frame.f_code.co_filename not in _FINALIZING:
                    self.leaving[threading.get_ident()] = _place(frame)
                    break


_FINALIZING = (__file__, weakref.__file__, finalizers.__file__)
_turns = _Turns()
os.register_at_fork(after_in_child=_turns.renew)


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _frames_beside() -> dict[int, FrameType]:
    """The frames of the other threads. Do not hold them while waiting: a frame keeps the objects of
    its function alive, for instance a loader. This thread's own frame is omitted: it would be a
    cycle.
    """
    frames = sys._current_frames()
    frames.pop(threading.get_ident(), None)
    return frames


def _place(frame: FrameType) -> _Place:
    """While it is unchanged, the frame's thread is in the same call, or has returned to it."""
    return id(frame), frame.f_lasti


def _inside_headrace() -> set[_Place]:
    """The calls of Headrace that the program's other threads are in. Not the engine's threads,
    which begin in such a function, nor those of insight/, which never wait for a transform.
    """
    found = set()
    insight = {each.ident for each in threading.enumerate() if each.name.startswith("headrace-")}
    for thread, innermost in _frames_beside().items():
        if thread in insight:
            continue
        own, is_ours = None, False
        for frame in _outwards(innermost):
            if is_ours := frame.f_code.co_filename.startswith(_PACKAGE):
                own = own or _place(frame)
        if own and not is_ours:
            found.add(own)
    return found


@contextmanager
def turn() -> Iterator[None]:
    """Inside, the global generators belong to the caller, and loops that draw wait. On an engine
    thread, entering waits until these loops are inside their loaders.
    """
    with _turns.condition:
        if _core.on_engine_thread():
            _turns.await_loops()
        yield


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Inside, the global generators are seeded from ``seed``; afterwards they are restored. One
    thread at a time.
    """
    with turn():
        own = _present()
        before = {name: each.take() for name, each in own.items()}
        for each in own.values():
            each.seed(seed)
        try:
            yield
        finally:
            for name, each in own.items():
                each.put(before[name])


class LoopTurn:
    """The training loop over one loader; between two batches it is outside the loader."""

    def __init__(self, loader: object) -> None:
        self._left: dict[str, Any] = {}  # the generators' states when the loop left
        self._waited = False  # transforms have waited since then
        self._batches = 0
        finalizers.on_drop(loader, _turns.forget, id(self))

    def begin(self) -> None:
        """Called when the loop gets an iterator."""
        self._left = {}
        self._batches = min(self._batches, _FIRST - _AGAIN)
        if self._waits:
            _turns.loops[id(self)] = threading.get_ident()

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """The context in which the loader itself ends the loop."""
        _turns.loops.pop(id(self), None)
        self._left = {}
        _turns.come_in()
        try:
            yield
        finally:
            _turns.inside.discard(threading.get_ident())

    def come_in(self) -> None:
        """Called when the loop requests a batch."""
        if self._left:
            own, left = _present(), self._left
            with _turns.condition:  # otherwise they may belong to a running transform
                drawn = [n for n in left if not own[n].equal(left[n], own[n].take())]
            if not self._waited and not _turns.drawing.issuperset(drawn):
                warn(_BOTH.format(" and ".join(drawn)))
            _turns.drawing.update(drawn)
            self._left = {}
        _turns.come_in()

    def go_out(self, goes_on: bool) -> None:
        """Called when the loop has its batch, or there are no more; waits for the running
        transform.
        """
        own = threading.get_ident()
        self._batches += 1
        self._waited = self._waits
        if goes_on and self._waited:
            _turns.loops[id(self)] = own
        else:
            _turns.loops.pop(id(self), None)
        _turns.inside.discard(own)
        looks = goes_on and (self._waited or self._batches % _LOOK == 0)
        if _turns.are_used and (looks or _turns.are_loops()):
            with _turns.condition:
                if looks:
                    self._left = {name: each.take() for name, each in _present().items()}

    @property
    def _waits(self) -> bool:
        return self._batches <= _FIRST or bool(_turns.drawing)


_BOTH = (
    "the training loop draws from {0}, and Python transforms ran on another thread: each may have "
    "received the other's numbers. These transforms now wait while the loop runs; python_workers=1 "
    "runs them in parallel"
)
