# SPDX-License-Identifier: Apache-2.0
"""The metrics of a watched loop for monitoring systems: one table for all of them.

Names follow Prometheus, without the prefix: base units, and _total for counters.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from headrace.counters import LOADER, WORK, number
from headrace.insight.live import tap
from headrace.insight.live.window import Moment
from headrace.loader import Loader

Samples = list[tuple[Mapping[str, str], float]]  # further labels, value


class Exported(NamedTuple):
    """One metric. samples: its values at a moment, each with additional labels; empty: unknown."""

    name: str
    text: str
    samples: Callable[[Moment], Samples]

    @property
    def grows(self) -> bool:
        return self.name.endswith("_total")


def _one(name: str, text: str, value: Callable[[Moment], float | None]) -> Exported:
    def samples(moment: Moment) -> Samples:
        found = value(moment)
        return [] if found is None else [({}, found)]

    return Exported(name, text, samples)


def _counter(name: str, entry: Mapping[str, Any]) -> Exported:
    return _one(f"loader_{entry['metric']}", entry["doc"], lambda m: number(m.loader, name))


def _stages(moment: Moment) -> Samples:
    stages = moment.loader.get("stages", {}).items()
    return [({"stage": name}, spent) for name, spent in stages if name in WORK]


EXPORTED = (
    _one("batches_total", "Batches taken by the loop.", lambda m: m.now.figures.batches),
    _one("records_total", "Records taken by the loop.", lambda m: m.now.figures.records),
    _one("epochs_total", "Completed epochs.", lambda m: m.now.figures.epochs),
    _one("waiting_seconds", "Duration of the current wait in seconds.",
         lambda m: m.now.figures.waiting),
    _one("first_batch_seconds", "Seconds until the first batch.",
         lambda m: m.now.figures.first_batch),
    _one("recent_wait_ratio", "Fraction of the loop's recent time spent waiting, 0 to 1.",
         lambda m: m.recent.figures.wait_share),
    _one("stalls_total", "Number of times that the loop began to stall.", lambda m: m.stalls),
    _one("gil_held_ratio", "Fraction of recent time in which Python's GIL was held.",
         lambda m: m.recent.gil_share),
    _one("resident_memory_bytes", "Resident memory of the process.",
         lambda m: m.reading.resident_bytes),
    _one("workers_resident_memory_bytes", "Resident memory of processes it started.",
         lambda m: m.reading.child_bytes),
    _one("cpu_seconds_total", "CPU seconds used by the process since it started.",
         lambda m: m.reading.cpu_seconds),
    *(_counter(name, entry) for name, entry in LOADER.items() if entry["metric"]),
    Exported("loader_stage_seconds_total",
             "Seconds that the loader's threads spent in each stage.", _stages),
    Exported("loader_errors_total", "Bad records by error code, of the first 10,000.",
             lambda m: [({"code": code}, count) for code, count in m.codes.items()]),
)  # fmt: skip


class BadCodes:
    """The bad records of a loader by code; counted again only when there are more."""

    def __init__(self) -> None:
        self._records = 0
        self._codes: Mapping[str, int] = {}

    def of(self, loader: Any, records: int) -> Mapping[str, int]:
        inner = tap.inner_loader(loader)
        if records != self._records and isinstance(inner, Loader):
            lines = inner.assembly.bad_records()
            self._codes = Counter(json.loads(line)["code"] for line in lines)
            self._records = records
        return self._codes
