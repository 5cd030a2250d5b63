# SPDX-License-Identifier: Apache-2.0
"""Compares the loops of a process group's ranks: each rank writes its figures to the group's store
every few seconds, and the first rank reads all of them. Uses no collective operation, and nothing
in the loop.
"""

from __future__ import annotations

import json
from typing import Any

from headrace.insight.live.meter import Figures
from headrace.process_group import shared_store

_EVERY = 5.0  # seconds
_APART = 0.05  # a rank is named in the status line if it exceeds the median by this much


class Ranks:
    """REQUIRES: one thread calls at a time."""

    def __init__(self) -> None:
        self._store: Any = None
        self._rank, self._count = 0, 1
        self._due = 0.0
        self._failed = False
        self.compared: dict[str, Any] | None = None  # of the first rank; see compare()

    def exchange(self, now: float, recent: Figures) -> None:
        """If there is a process group, and it is time: publishes this rank's figures, and on the
        first rank compares all known ones."""
        if self._failed or now < self._due:
            return
        self._due = now + _EVERY
        try:
            if self._store is None and not self._join():
                return
            self._store.set(str(self._rank), json.dumps(_told(recent)))
            if self._rank == 0:
                self.compared = compare(self._heard(), self._count)
        except Exception:  # the group has been destroyed, with its store
            self._failed = True

    def _join(self) -> bool:
        group = shared_store("watch")
        if group is None:
            return False
        self._rank, self._count, self._store = group
        return True

    def _heard(self) -> dict[int, dict[str, float]]:
        names = [str(rank) for rank in range(self._count)]
        found = [name for name in names if self._store.check([name])]
        return {int(name): json.loads(self._store.get(name)) for name in found}


def _told(recent: Figures) -> dict[str, float]:
    batches = max(1, recent.batches)
    return {
        "wait_share": recent.wait_share or 0.0,
        "wait_seconds": recent.wait_sum / batches,
        "step_seconds": recent.step_sum / batches,
        "batches": recent.batches,
    }


def compare(heard: dict[int, dict[str, float]], count: int) -> dict[str, Any] | None:
    """Among the ranks that recently took batches: their number, out of ``count``; the spread of
    their waiting; and the rank that waits longest for a batch, for which all others wait.
    """
    running = {rank: told for rank, told in heard.items() if told["batches"]}
    if not running:
        return None
    slowest = max(running, key=lambda rank: (running[rank]["wait_seconds"], -rank))
    shares = sorted(told["wait_share"] for told in running.values())
    return {
        "ranks": count,
        "heard": len(running),
        "slowest": slowest,
        "wait_seconds": running[slowest]["wait_seconds"],
        "wait_share": {
            "p50": _percentile(shares, 0.50),
            "p90": _percentile(shares, 0.90),
            "max": shares[-1],
            "slowest": running[slowest]["wait_share"],
        },
    }


def _percentile(values: list[float], share: float) -> float:
    return values[int(share * (len(values) - 1))]


def words(compared: dict[str, Any] | None) -> str:
    """Text for the status line; empty if no rank stands out."""
    if compared is None:
        return ""
    shares = compared["wait_share"]
    if shares["slowest"] < shares["p50"] + _APART:
        return ""
    return f"rank {compared['slowest']} waits {100 * shares['slowest']:.1f} %"
