# SPDX-License-Identifier: Apache-2.0
"""A time limit that interrupts longer waits. Importing modules does not count as waiting, however
long it takes on a busy machine: the timer checks periodically, and time in which modules were
imported since the last check does not count.

On the main thread it uses the system's timer, whose signal also interrupts waiting for a lock or a
queue, like Ctrl-C. If the program uses that signal itself, or on another thread, there is no limit.
"""

from __future__ import annotations

import importlib
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

_EXPIRIES = 5
_AGAIN = 10.0  # seconds
_LOOKS = 8  # within the limit
_IMPORT: Any = importlib._bootstrap._find_and_load.__code__  # type: ignore[attr-defined]


class Stuck(BaseException):
    """Raised when a phase takes too long. Not an Exception, so that loops that catch those do not
    swallow it."""

    def __init__(self, what: str, seconds: float) -> None:
        super().__init__(f"{what} for {seconds:g} seconds")


class TimeLimit:
    """``with TimeLimit(60) as limit``, and ``limit.begin("...")`` at the start of each phase."""

    def __init__(self, seconds: float, leave: Callable[[], object] = lambda: None) -> None:
        """``leave`` is called if repeated interruptions do not help."""
        self.seconds = seconds
        self.expired = 0  # number of attempts: a program may swallow the interruption
        self.what = ""
        self._leave = leave
        self._looked = self._waited = 0.0
        self._imports = 0  # imports that were in progress when the phase began: a script may be one
        self._working = False
        self._before: Any = None

    def __enter__(self) -> TimeLimit:
        on_main = threading.current_thread() is threading.main_thread()
        if on_main and self.seconds > 0:
            free = signal.getsignal(signal.SIGALRM) in (signal.SIG_DFL, signal.SIG_IGN, None)
            self._working = free and signal.getitimer(signal.ITIMER_REAL)[0] == 0
        if self._working:
            self._before = signal.signal(signal.SIGALRM, self._expire)
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        if self._still_ours():
            signal.signal(signal.SIGALRM, self._before)
        self._working = False

    def begin(self, what: str) -> None:
        """Starts a phase of this many seconds, and ends the previous one."""
        if self._still_ours() and not self.expired:
            self.what = what
            self._looked, self._waited = time.monotonic(), 0.0
            self._imports = _imports_in(sys._getframe())
            signal.setitimer(signal.ITIMER_REAL, self.seconds / _LOOKS, self.seconds / _LOOKS)

    def end(self) -> None:
        """Lifts the limit until the next phase begins."""
        if self._still_ours():
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _still_ours(self) -> bool:
        """Whether our timer is still installed; a program may replace it at any time."""
        self._working = self._working and signal.getsignal(signal.SIGALRM) == self._expire
        return self._working

    def _expire(self, number: int, frame: FrameType | None) -> None:
        before, self._looked = self._looked, time.monotonic()
        if not self.expired:
            if _imports_in(frame) <= self._imports:
                self._waited += self._looked - before
            if self._waited < 0.99 * self.seconds:
                return
        self.expired += 1
        if self.expired > _EXPIRIES:
            self._leave()
        # Interrupts again soon, for code that catches the interruption or starts another wait.
        signal.setitimer(signal.ITIMER_REAL, min(self.seconds, _AGAIN))
        raise Stuck(self.what, self.seconds)


def _imports_in(frame: FrameType | None) -> int:
    """How many nested module imports are in progress."""
    count = 0
    while frame is not None:
        count += frame.f_code is _IMPORT
        frame = frame.f_back
    return count
