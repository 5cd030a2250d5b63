# SPDX-License-Identifier: Apache-2.0
"""Whether other programs used the cores during a measurement, from the files under /proc.

    contention = Contention()
    with contention.watched():
        ...
    contention.share  # 0.3: others took 30 % of the time for which our threads wanted a core

A busy machine alone does not invalidate a measurement: what counts is the time that our threads
could have run but did not. If they outnumber the cores they also wait for each other, so at most
the CPU time of other programs is attributed to them. Time taken by a hypervisor is added.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from typing import NamedTuple

from headrace.insight.measure.machine import core_numbers
from headrace.insight.measure.processes import Processes

_TICK = 1 / os.sysconf("SC_CLK_TCK")
_FULL = 0.9  # fraction of busy cores above which threads wait, if the system does not report it
ROOT = "/"


class Seen(NamedTuple):
    """Seconds so far, summed over the cores that this process may use."""

    wall: float
    own: float  # CPU time of this process and those that it started
    all: float  # computed by all processes
    stolen: float  # by the hypervisor
    queued: float | None  # while our threads could run but had no core; None: unknown


class Contention:
    """Accumulates over the watched periods."""

    def __init__(self, root: str | None = None) -> None:
        root = ROOT if root is None else root
        self._proc = os.path.join(root, "proc")
        self._processes = Processes(root)
        self._queues: dict[str, float] = {}  # by thread
        self._queued = 0.0
        self.own = self.lost = 0.0

    @property
    def share(self) -> float:
        """Fraction of the core time requested by this process that others took."""
        wanted = self.own + self.lost
        return self.lost / wanted if wanted > 0 else 0.0

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        before = self._look()
        try:
            yield
        finally:
            self._add(before, self._look())

    def _add(self, before: Seen | None, after: Seen | None) -> None:
        if before is None or after is None:
            return
        own = max(0.0, after.own - before.own)
        others = max(0.0, after.all - before.all - own)
        stolen = max(0.0, after.stolen - before.stolen)
        self.own += own
        self.lost += stolen + lost_to(others, own, before, after)

    def _look(self) -> Seen | None:
        cores = self._cores()
        if cores is None:
            return None
        child_seconds, _ = self._processes.children()
        own = time.process_time() + child_seconds
        return Seen(time.monotonic(), own, *cores, self._queue())

    def _cores(self) -> tuple[float, float] | None:
        """Computed and stolen seconds of the cores that this process may use."""
        allowed = {f"cpu{number}" for number in core_numbers()}
        computed = stolen = 0
        try:
            with open(f"{self._proc}/stat") as file:
                for line in file:
                    name, *fields = line.split()
                    if name in allowed:
                        user, nice, system, _, _, interrupts, soft, steal, *_ = map(int, fields)
                        computed += user + nice + system + interrupts + soft
                        stolen += steal
        except (OSError, ValueError):
            return None
        return computed * _TICK, stolen * _TICK

    def _queue(self) -> float | None:
        """Seconds spent waiting for a core so far, by our threads and processes that we started;
        those that have ended still count, as far as they were observed."""
        now: dict[str, float] = {}
        try:
            threads = [f"self/task/{thread}" for thread in os.listdir(f"{self._proc}/self/task")]
            for name in (*threads, *self._processes.descendants()):
                with contextlib.suppress(OSError), open(f"{self._proc}/{name}/schedstat") as file:
                    now[name] = 1e-9 * int(file.read().split()[1])
        except (OSError, ValueError, IndexError):
            return None
        if not now:
            return None
        for thread, seconds in now.items():
            known = self._queues.get(thread, 0.0)
            self._queued += seconds - known if seconds >= known else seconds
        self._queues = now
        return self._queued


def lost_to(others: float, own: float, before: Seen, after: Seen) -> float:
    """The part of other programs' CPU seconds that this process would have used itself."""
    if before.queued is not None and after.queued is not None:
        return min(others, after.queued - before.queued)
    room = len(core_numbers()) * (after.wall - before.wall)
    return others if own + others >= _FULL * room else 0.0
