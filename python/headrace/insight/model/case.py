# SPDX-License-Identifier: Apache-2.0
"""The utilization law of operational analysis: n units of a resource, each busy for s seconds per
record, serve n / s records per second. A record passes through stages; each occupies its worker and
one unit of each of its resources (a core, a slot in the disk's queue, the GIL). The input can
sustain the lowest of these rates. The consumer, which copies a batch and runs the step, is one more
server.

>>> decode = Stage("decode", "decode", 0.004)
>>> sustained(Case((decode,), workers=2, cores=2, step_seconds=0.001))
{'cores': 500.0, 'workers': 500.0, 'device': 1000.0}
"""

from __future__ import annotations

import dataclasses
import math

# How strongly resources of similar load slow each other down: the lower bound of a rate is their
# power mean of this order. The virtual clock in the tests confirms that it is a bound.
_SHARPNESS = 4.0

RESOURCES = ("cores", "disk", "gil", "memory")  # used by stages


@dataclasses.dataclass(frozen=True)
class Stage:
    """A stage of a record's work; ``seconds`` on one unit of each of ``resources``."""

    name: str
    kind: str  # for a verdict: "storage", "decode", "operator", "python", "collate"
    seconds: float
    resources: tuple[str, ...] = ("cores",)  # some of "cores", "disk", "gil", "memory"


@dataclasses.dataclass(frozen=True)
class Case:
    """A loader and its consumer, described by numbers. All seconds are per record."""

    stages: tuple[Stage, ...]
    workers: int  # threads or processes that make records
    cores: int  # cores that these may use
    step_seconds: float = 0.0  # seconds of the training step; 0 without one
    copy_seconds: float = 0.0  # to the device, before the step
    disk_depth: float = 1.0  # requests that the storage serves concurrently
    gils: int = 1  # interpreters that run Python steps
    overlapped: bool = True  # False: records are made only while the consumer waits for them
    copy_overlapped: bool = False
    small_files: bool = False  # opening files costs more than their bytes
    memory_places: float = math.inf  # records that fit into the memory limit at the same time
    step_alone: float = 0.0  # seconds of the undisturbed step; 0 if unknown
    step_cores: float = 0.0  # cores that it keeps busy
    epoch: float = math.inf  # batches per epoch; nothing is made ahead across its end
    as_run: bool = (
        False  # the input was measured as a whole, including how its stages hinder each other
    )

    def capacity(self, resource: str) -> float:
        """How many units of a resource exist."""
        units = {
            "cores": float(self.cores),
            "disk": self.disk_depth,
            "gil": float(self.gils),
            "memory": self.memory_places,
        }
        return units[resource]

    def demand(self, resource: str) -> float:
        """Seconds of the resource per record."""
        return sum(stage.seconds for stage in self.stages if resource in stage.resources)


def sustained(case: Case) -> dict[str, float]:
    """Records per second that each resource could sustain if it were the only limit."""
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
    """Records per second that arrive regardless of the consumer; infinite if that costs nothing."""
    rates = sustained(case)
    inputs = [rates[name] for name in (*RESOURCES, "workers") if name in rates]
    return min(inputs, default=math.inf)


def consumer_rate(case: Case) -> float:
    """Records per second that copy and step can process; infinite without them."""
    times = (case.copy_seconds, case.step_seconds)
    busy = max(times) if case.copy_overlapped else sum(times)
    return 1 / busy if busy > 0 else math.inf


def loop_bounds(case: Case) -> tuple[float, float]:
    """The range of the whole loop's rate in records per second. At best the slowest resource is
    always busy; at worst others that are nearly as slow delay it.
    """
    if not case.overlapped:
        seconds = 1 / input_rate(case) + 1 / consumer_rate(case)
        return (1 / seconds, 1 / seconds) if seconds > 0 else (math.inf, math.inf)
    rates = sustained(case)
    inputs = [rates[name] for name in (*RESOURCES, "workers") if name in rates]
    if case.step_cores > 0:  # cores shared by both
        inputs.append(case.cores / (case.demand("cores") + case.step_cores))
    comes_in = min(inputs, default=math.inf)
    undisturbed, disturbed = _consumer_bounds(case, comes_in)
    high = min(comes_in, undisturbed)
    if not math.isfinite(high):
        return high, high
    servers = [comes_in, disturbed] if case.as_run else [*inputs, disturbed]
    low = min(servers)
    low *= sum((low / rate) ** _SHARPNESS for rate in servers) ** (-1 / _SHARPNESS)
    # Seconds per record without overlap: an epoch's first batch is made before any step, and during
    # its last step none is made.
    ends = 1 / max(comes_in, undisturbed) / case.epoch
    return 1 / (1 / low + ends), 1 / (1 / high + ends)


def _consumer_bounds(case: Case, input_rate: float) -> tuple[float, float]:
    """The consumer's rate alone, and when slowed down by a loader on the same cores.

    A step timed in a loop that waits for data competes with threads that never idle. If the step is
    the bottleneck, threads idle, and the faster they are the more.
    """
    alone = min(case.step_alone or case.step_seconds, case.step_seconds)
    undisturbed = consumer_rate(dataclasses.replace(case, step_seconds=alone))
    busy = min(1.0, undisturbed / input_rate) ** _SHARPNESS
    held_up = alone + (case.step_seconds - alone) * busy
    return undisturbed, consumer_rate(dataclasses.replace(case, step_seconds=held_up))
