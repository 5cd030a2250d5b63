# SPDX-License-Identifier: Apache-2.0
"""Runs a DataLoader with different numbers of workers, then the best number with other settings."""

from __future__ import annotations

from typing import Any

from headrace.insight.measure.loop import time_loop
from headrace.insight.probes.thread_sweep import counts, point
from headrace.insight.probes.torch_dataloader import rebuilt


def sweep(loader: Any, cores: int, seconds: float, pinning: bool = False) -> list[dict[str, Any]]:
    """Points like those of thread_sweep; another setting is given as "setting". pinning: whether to
    try pin_memory, which only matters with a GPU."""
    tried = [0, *counts(cores)]
    settings: list[dict[str, Any]] = [{"prefetch_factor": 4}, {"persistent_workers": True}]
    if pinning:
        settings.append({"pin_memory": not loader.pin_memory})
    share = seconds / (len(tried) + len(settings))
    found = []
    for workers in tried:
        found += _tried(loader, workers, {}, share)
    with_workers = [entry for entry in found if entry["workers"] > 0]
    if not with_workers:
        return found
    best = int(max(with_workers, key=lambda entry: entry["rate"])["workers"])
    for changes in settings:
        if all(getattr(loader, name) != value for name, value in changes.items()):
            found += _tried(loader, best, changes, share)
    return found


def _tried(
    loader: Any, workers: int, changes: dict[str, Any], seconds: float
) -> list[dict[str, Any]]:
    """One point, or none if no batch arrived."""
    timed = time_loop(rebuilt(loader, num_workers=workers, **changes), None, seconds)
    if not timed.windows:
        return []
    named = ", ".join(f"{name}={value}" for name, value in changes.items())
    return [point(timed, workers) | ({"setting": named} if named else {})]
