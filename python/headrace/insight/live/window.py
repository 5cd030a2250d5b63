# SPDX-License-Identifier: Apache-2.0
"""Figures of a period of the run: the loop's times, the loader's counters, the GIL."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Mapping
from operator import sub
from typing import Any, NamedTuple

from headrace.insight.live.meter import Figures
from headrace.insight.measure.process_sampler import Reading, Requests

NONE = Requests(0.0, 0.0, 0.0)


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """All counters at a moment; or, for two moments, their increase."""

    figures: Figures = dataclasses.field(default_factory=Figures)
    counters: Mapping[str, float] = dataclasses.field(default_factory=dict)
    requests: Requests = NONE  # requests for the GIL

    def since(self, earlier: Snapshot) -> Snapshot:
        return Snapshot(
            self.figures.since(earlier.figures),
            # A recreated loader starts at 0.
            {name: max(0.0, value - earlier.counters.get(name, 0.0))
             for name, value in self.counters.items()},
            Requests(*map(sub, self.requests, earlier.requests)),
        )  # fmt: skip

    @property
    def gil_share(self) -> float | None:
        return self.requests.share[0] if self.requests.asked >= 10 else None


class Moment(NamedTuple):
    """Everything known about a watched loop at one moment."""

    name: str
    now: Snapshot  # since the watch began
    recent: Snapshot  # of the last window
    reading: Reading
    stalls: int
    loader: Mapping[str, Any]  # the loader's stats()
    codes: Mapping[str, int]  # the loader's bad records by code


class Recent:
    """Snapshots of the last ``seconds``, and what happened since the oldest."""

    def __init__(self, seconds: float, first: Snapshot) -> None:
        self._seconds = seconds
        self._kept: deque[Snapshot] = deque([first])

    def add(self, snapshot: Snapshot) -> None:
        self._kept.append(snapshot)
        # The oldest snapshot that is old enough, so that the window is never too short.
        while len(self._kept) > 2 and self._age(self._kept[1]) >= self._seconds:
            self._kept.popleft()

    def _age(self, snapshot: Snapshot) -> float:
        return self._kept[-1].figures.at - snapshot.figures.at

    def until(self, now: Snapshot) -> Snapshot:
        """The events from the window's start to ``now``."""
        return now.since(self._kept[0])
