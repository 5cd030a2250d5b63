# SPDX-License-Identifier: Apache-2.0
"""Determines whether a thread computed or waited, from wall time, CPU time and its voluntary
switches.

A preempted thread looks idle by its CPU time alone, although it did not wait for anything but a
core. The system counts voluntary switches and the wait for a core separately.
"""

from __future__ import annotations

import os
import threading
import time
from resource import RUSAGE_THREAD, getrusage
from typing import NamedTuple


class Moment(NamedTuple):
    """A thread's clocks at one moment; ``since`` gives the difference of two."""

    wall: float
    cpu: float
    waits: int
    queued: float = 0.0  # waiting for a core

    def since(self, begin: Moment) -> Spent:
        wall, cpu = self.wall - begin.wall, self.cpu - begin.cpu
        if self.waits == begin.waits:
            return Spent(wall, cpu, 0.0)
        return Spent(wall, cpu, max(0.0, wall - cpu - (self.queued - begin.queued)))


class Spent(NamedTuple):
    """Seconds of wall time, of CPU time, and spent waiting."""

    wall: float
    cpu: float
    waited: float


def now() -> Moment:
    """The clocks of the calling thread, now."""
    waits = getrusage(RUSAGE_THREAD).ru_nvcsw
    return Moment(time.perf_counter(), time.thread_time(), waits, _queued())


class _Line:
    """A thread's own file with the time it waited for a core; closed when the thread has ended."""

    def __init__(self) -> None:
        try:
            self._file = os.open("/proc/thread-self/schedstat", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._file = -1

    def seconds(self) -> float:
        try:
            return 1e-9 * int(os.pread(self._file, 80, 0).split()[1]) if self._file >= 0 else 0.0
        except (OSError, ValueError, IndexError):
            return 0.0

    def __del__(self) -> None:
        if self._file >= 0:
            os.close(self._file)


_lines = threading.local()


def _queued() -> float:
    line = getattr(_lines, "own", None)
    if line is None:
        line = _lines.own = _Line()
    seconds: float = line.seconds()
    return seconds
