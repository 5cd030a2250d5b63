# SPDX-License-Identifier: Apache-2.0
"""Whether a thread computed or waited: wall time, CPU time, and how often it gave up its core.

A thread that is pushed off its core by others looks idle by its CPU time alone. It did not wait for
anything, though: it never gave the core up itself, which the system counts apart.
"""

from __future__ import annotations

import time
from resource import RUSAGE_THREAD, getrusage
from typing import NamedTuple


class Moment(NamedTuple):
    """A point in a thread's life; ``since`` of two says what it did in between."""

    wall: float
    cpu: float
    waits: int

    def since(self, begin: Moment) -> Spent:
        wall, cpu = self.wall - begin.wall, self.cpu - begin.cpu
        if self.waits == begin.waits:
            return Spent(wall, cpu, 0.0)
        return Spent(wall, cpu, max(0.0, wall - cpu))


class Spent(NamedTuple):
    """Seconds: of the wall, of a core, and in which the thread waited for something."""

    wall: float
    cpu: float
    waited: float


def now() -> Moment:
    """For the calling thread."""
    waits = getrusage(RUSAGE_THREAD).ru_nvcsw
    return Moment(time.perf_counter(), time.thread_time(), waits)
