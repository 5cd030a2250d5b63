# SPDX-License-Identifier: Apache-2.0
"""Simulates a loader and its consumer on a virtual clock, without the doctor's formulas.

Workers take records in order and hold, stage after stage, a core, one of the disk's slots or the
GIL. Results wait in a bounded queue; the consumer takes them in order, copies, and runs a step.
"""

from __future__ import annotations

import dataclasses
import heapq
import random
from collections import deque
from collections.abc import Generator
from typing import Any

from headrace.insight.model.case import Case

Process = Generator[tuple[str, Any], None, None]


class Clock:
    """Processes that wait for time, for servers and for each other."""

    def __init__(self, servers: dict[str, int]) -> None:
        self.now = 0.0
        self.free = dict(servers)
        self.waiting: dict[str, deque[Process]] = {name: deque() for name in servers}
        self._events: list[tuple[float, int, Process]] = []
        self._number = 0

    def start(self, process: Process, after: float = 0.0) -> None:
        self._number += 1
        heapq.heappush(self._events, (self.now + after, self._number, process))

    def give(self, server: str) -> None:
        """Frees one unit, or passes it to the process that has waited longest."""
        if self.waiting[server]:
            self.start(self.waiting[server].popleft())
        else:
            self.free[server] += 1

    def run(self) -> None:
        while self._events:
            self.now, _, process = heapq.heappop(self._events)
            self._go_on(process)

    def _go_on(self, process: Process) -> None:
        while True:
            try:
                wish, value = next(process)
            except StopIteration:
                return
            if wish == "sleep":
                return self.start(process, value)
            if not self.free[value]:
                self.waiting[value].append(process)
                return
            self.free[value] -= 1


@dataclasses.dataclass(frozen=True)
class Run:
    """The result of a run of the simulated loop: records per second and the share of time spent
    waiting."""

    rate: float
    stall: float


def simulate(
    case: Case, records: int = 0, queue: int = 16, jitter: float = 0.2, seed: int = 0
) -> Run:
    """The loop over ``records``; the first fifth fills the queue and is not counted.

    0 records: so many that the records in transit at the end do not matter.
    """
    records = records or 400 + 15 * (queue + case.workers)
    draw = random.Random(seed)

    def vary(seconds: float) -> float:
        return seconds * draw.uniform(1 - jitter, 1 + jitter)

    if not case.overlapped:
        work = waited = 0.0
        for _ in range(records):
            made = sum(vary(stage.seconds) for stage in case.stages) + vary(case.copy_seconds)
            waited += made
            work += made + vary(case.step_seconds)
        return Run(records / work, waited / work)

    servers = {
        "cores": case.cores,
        "disk": round(case.disk_depth),
        "gil": case.gils,
        "memory": round(case.memory_places) if case.memory_places < records else records,
        "room": queue + case.workers,
        "copier": 1,
        "slab": 2,
    }
    servers.update({f"made {n}": 0 for n in range(records)})
    servers.update({f"copied {n}": 0 for n in range(records)})
    clock = Clock(servers)
    numbers = iter(range(records))
    taken: list[tuple[float, float]] = []  # the time, and how long it was waited for

    def worker() -> Process:
        for number in numbers:
            yield "take", "room"
            for stage in case.stages:
                for resource in stage.resources:
                    yield "take", resource
                yield "sleep", vary(stage.seconds)
                for resource in stage.resources:
                    clock.give(resource)
            clock.give(f"made {number}")

    def copier() -> Process:
        for number in range(records):
            yield "take", "slab"
            yield "take", f"made {number}"
            yield "sleep", vary(case.copy_seconds)
            clock.give(f"copied {number}")

    def consumer() -> Process:
        for number in range(records):
            begin = clock.now
            yield "take", f"copied {number}" if case.copy_overlapped else f"made {number}"
            clock.give("slab" if case.copy_overlapped else "copier")
            if not case.copy_overlapped:
                yield "sleep", vary(case.copy_seconds)
            waited = clock.now - begin
            if case.step_cores > 0:  # the step computes on one of the loader's cores
                yield "take", "cores"
            yield "sleep", vary(case.step_seconds)
            if case.step_cores > 0:
                clock.give("cores")
            clock.give("room")
            taken.append((clock.now, waited))

    for _ in range(case.workers):
        clock.start(worker())
    if case.copy_overlapped:
        clock.start(copier())
    clock.start(consumer())
    clock.run()
    assert len(taken) == records
    steady = taken[records // 5 :]
    seconds = steady[-1][0] - steady[0][0]
    return Run((len(steady) - 1) / seconds, sum(wait for _, wait in steady[1:]) / seconds)
