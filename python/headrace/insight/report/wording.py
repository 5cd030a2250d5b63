# SPDX-License-Identifier: Apache-2.0
"""Numbers and names in readable form: rates, durations, bytes, resources."""

from __future__ import annotations

import math
from typing import Any

RATES = {
    "ceiling": "step alone, one batch",
    "cached": "step, batches from memory",
    "loader": "loader alone",
    "real": "both, as trained",
    "cold": "both, files not in memory",
    "one_thread": "loader, one thread",
    "headrace": "Headrace instead, alone",
}
RESOURCES = {
    "cores": "processor cores",
    "workers": "loader's threads",
    "disk": "storage",
    "gil": "Python's GIL",
    "copy": "copy to the device",
    "device": "training step",
}
HOST = {
    "cores": "processor cores",
    "cpu_limit": "limit of cores",
    "memory_bytes": "memory",
    "memory_available_bytes": "memory, free",
    "memory_limit_bytes": "memory, limit",
    "shm_bytes": "shared memory, free",
    "shm_size_bytes": "shared memory",
    "instructions": "instructions",
    "governor": "clock governor",
    "numa_nodes": "NUMA nodes",
    "numa_nodes_used": "NUMA nodes, used",
    "gpu_link": "GPU's link",
    "disk": "disk",
    "gpu": "GPU",
}
STORAGE = {
    "record bytes": "record size",
    "random reads per second": "random reads per second",
    "sequential bytes per second": "sequential reads",
    "from": "measured on",
}
COPIES = {
    "host": "memory to memory",
    "pageable": "to the device, from pageable memory",
    "pinned": "to the device, from pinned memory",
}


def number(value: float) -> str:
    """A rate or a count: 5,812 or 3.4."""
    if math.isnan(value):
        return "unknown"
    if math.isinf(value):
        return "unlimited"
    return f"{value:,.0f}" if abs(value) >= 10 else f"{value:.2g}"


def duration(seconds: float) -> str:
    """Seconds, in a suitable unit, with three digits."""
    if not math.isfinite(seconds):
        return "unknown"
    if abs(seconds) >= 1:
        return f"{seconds:.2f} s"
    return f"{1e3 * seconds:.2f} ms" if abs(seconds) >= 1e-3 else f"{1e6 * seconds:.0f} µs"


def duration_tick(seconds: float) -> str:
    """A round number of seconds on an axis: 30 ms."""
    if seconds >= 1:
        return f"{seconds:g} s"
    return f"{1e3 * seconds:g} ms" if seconds >= 1e-3 else f"{1e6 * seconds:g} µs"


def size(count: float) -> str:
    """Bytes: 1.4 MB."""
    if not math.isfinite(count):
        return "unknown"
    if count == 0:
        return "0"
    for unit, least in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if abs(count) >= least:
            return f"{count / least:.1f} {unit}"
    return f"{count / 1e3:.1f} kB"


def swept(point: dict[str, Any]) -> str:
    """The setting of a point of a sweep: "2", "2 prefetch_factor=4"."""
    return " ".join([f"{point['workers']:g}", point.get("setting", "")]).rstrip()


def percent(share: float) -> str:
    """A fraction as a percentage: 39%."""
    return f"{share:.0%}" if math.isfinite(share) else "unknown"


def plain(name: str, value: Any) -> str:
    """A fact about the machine or its storage, formatted by its name."""
    if "bytes" in name and isinstance(value, (int, float)):
        return size(value) + ("/s" if "per second" in name else "")
    if isinstance(value, dict):
        return ", ".join(f"{number(v)} at depth {k}" for k, v in value.items())
    return f"{value:,.3g}" if isinstance(value, float) else str(value)
