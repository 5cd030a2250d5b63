# SPDX-License-Identifier: Apache-2.0
"""The operational law: n units of a resource, each busy s seconds per record, serve n / s records.

A record passes stages; each keeps one unit of its resources busy (a core, a place in the disk's
queue, the GIL) and all the while the worker that it is on. The least of these rates is what the
input can sustain. The consumer, which copies a batch and steps, is one more server.

>>> decode = Stage("decode", "decode", 0.004)
>>> sustained(Case((decode,), workers=2, cores=2, step_seconds=0.001))
{'cores': 500.0, 'workers': 500.0, 'device': 1000.0}
"""

from __future__ import annotations

import dataclasses
import math

# How sharply servers that are about equally busy hinder each other: the lower bound of a rate is
# their power mean of this order. The virtual clock of the tests says that it is one.
_SHARPNESS = 4.0

RESOURCES = ("cores", "disk", "gil", "memory")  # that stages keep busy


@dataclasses.dataclass(frozen=True)
class Stage:
    """A stage of a record's work; ``seconds`` of one unit of each of ``resources``."""

    name: str
    kind: str  # of a verdict: "storage", "decode", "operator", "python", "collate"
    seconds: float
    resources: tuple[str, ...] = ("cores",)  # of "cores", "disk", "gil", "memory"


@dataclasses.dataclass(frozen=True)
class Case:
    """A loader and its consumer, in numbers. All seconds are those of one record."""

    stages: tuple[Stage, ...]
    workers: int  # threads or processes that make records
    cores: int  # that these may use
    step_seconds: float = 0.0  # of the consumer; 0 where there is none
    copy_seconds: float = 0.0  # to the device, before the step
    disk_depth: float = 1.0  # requests that the storage serves side by side
    gils: int = 1  # interpreters that run steps in Python
    overlapped: bool = True  # False: records are made while the consumer waits for them
    copy_overlapped: bool = False
    small_files: bool = False  # opening files costs more than their bytes
    memory_places: float = math.inf  # records that the memory limit lets be made side by side
    step_alone: float = 0.0  # of the step that nothing disturbs; 0 where unknown
    step_cores: float = 0.0  # of cores that it keeps busy
    epoch: float = math.inf  # batches; nothing is made ahead across its end
    as_run: bool = False  # what comes in was run as a whole: how stages hinder each other is in it

    def capacity(self, resource: str) -> float:
        """How many units of a resource there are."""
        units = {
            "cores": float(self.cores),
            "disk": self.disk_depth,
            "gil": float(self.gils),
            "memory": self.memory_places,
        }
        return units[resource]

    def demand(self, resource: str) -> float:
        """Seconds of the resource that a record takes."""
        return sum(stage.seconds for stage in self.stages if resource in stage.resources)


def sustained(case: Case) -> dict[str, float]:
    """Records a second that each resource could serve, were it the only limit."""
    rates = {}
    for resource in RESOURCES:
        demand = case.demand(resource)
        if demand > 0 and math.isfinite(case.capacity(resource)):
            rates[resource] = case.capacity(resource) / demand
    total = sum(stage.seconds for stage in case.stages)
    if total > 0:
        rates["workers"] = (case.workers if case.overlapped else 1) / total
    if case.copy_seconds > 0:
        rates["copy"] = 1 / case.copy_seconds
    if case.step_seconds > 0:
        rates["device"] = 1 / case.step_seconds
    return rates


def input_rate(case: Case) -> float:
    """Records a second that come in, whatever the consumer does; infinite where that is free."""
    rates = sustained(case)
    inputs = [rates[name] for name in (*RESOURCES, "workers") if name in rates]
    return min(inputs, default=math.inf)


def consumer_rate(case: Case) -> float:
    """Records a second that copy and step can take; infinite without them."""
    times = (case.copy_seconds, case.step_seconds)
    busy = max(times) if case.copy_overlapped else sum(times)
    return 1 / busy if busy > 0 else math.inf


def loop_bounds(case: Case) -> tuple[float, float]:
    """Between which rates the whole loop runs, records per second.

    At best the slowest server is always busy; at worst those that are nearly as slow hinder it.
    """
    if not case.overlapped:
        seconds = 1 / input_rate(case) + 1 / consumer_rate(case)
        return (1 / seconds, 1 / seconds) if seconds > 0 else (math.inf, math.inf)
    rates = sustained(case)
    inputs = [rates[name] for name in (*RESOURCES, "workers") if name in rates]
    if case.step_cores > 0:  # cores that both use
        inputs.append(case.cores / (case.demand("cores") + case.step_cores))
    comes_in = min(inputs, default=math.inf)
    undisturbed, disturbed = _consumer_bounds(case, comes_in)
    high = min(comes_in, undisturbed)
    if not math.isfinite(high):
        return high, high
    servers = [comes_in, disturbed] if case.as_run else [*inputs, disturbed]
    low = min(servers)
    low *= sum((low / rate) ** _SHARPNESS for rate in servers) ** (-1 / _SHARPNESS)
    # An epoch's first batch is made while there is none to step on, and its last one stepped on
    # while none is made.
    ends = 1 / max(comes_in, undisturbed) / case.epoch
    return 1 / (1 / low + ends), 1 / (1 / high + ends)


def _consumer_bounds(case: Case, input_rate: float) -> tuple[float, float]:
    """The consumer's rate by itself, and as it is held up by a loader on the same cores.

    A step that was timed in a loop that waits for data was held up by threads that never rest.
    Where it is the limit they rest, and all the more the faster they are.
    """
    alone = min(case.step_alone or case.step_seconds, case.step_seconds)
    undisturbed = consumer_rate(dataclasses.replace(case, step_seconds=alone))
    busy = min(1.0, undisturbed / input_rate) ** _SHARPNESS
    held_up = alone + (case.step_seconds - alone) * busy
    return undisturbed, consumer_rate(dataclasses.replace(case, step_seconds=held_up))
