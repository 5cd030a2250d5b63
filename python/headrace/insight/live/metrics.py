# SPDX-License-Identifier: Apache-2.0
"""What Prometheus is told about a watched loop: names in base units, one label for the loader."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.insight.live.exposition import Family, Sample, histogram
from headrace.insight.live.window import Snapshot
from headrace.insight.measure.process_sampler import Reading


def families(
    name: str,
    now: Snapshot,
    recent: Snapshot,
    reading: Reading,
    stalls: int,
    loader: Mapping[str, Any],
) -> list[Family]:
    """``now``: since the watch began; ``recent``: of the last window; ``loader``: its stats()."""
    label = {"loader": name}
    figures = now.figures

    def one(metric: str, kind: str, text: str, value: float | None) -> Family:
        samples = [] if value is None else [Sample(label, value)]
        return Family(f"headrace_{metric}", kind, text, samples)

    return [
        one("batches_total", "counter", "Batches that the loop took.", figures.batches),
        one("records_total", "counter", "Records in these batches.", figures.records),
        one("epochs_total", "counter", "Epochs that came to their end.", figures.epochs),
        histogram("headrace_wait_seconds", "Seconds that the loop waited for a batch.", label,
                  figures.waits, figures.wait_sum),
        histogram("headrace_step_seconds", "Seconds between a batch and the wish for the next.",
                  label, figures.steps, figures.step_sum),
        one("waiting_seconds", "gauge", "Seconds that the present wait has lasted.",
            figures.waiting),
        one("first_batch_seconds", "gauge", "Seconds until the first batch came.",
            figures.first_batch),
        one("recent_wait_ratio", "gauge", "Share of the recent loop's time spent waiting, 0 to 1.",
            recent.figures.wait_share),
        one("stalls_total", "counter", "How often the input began to stall.", stalls),
        one("gil_held_ratio", "gauge", "Share of recent time in which Python's GIL was held.",
            recent.gil_share),
        one("resident_memory_bytes", "gauge", "Resident memory of the process.",
            reading.resident_bytes),
        one("workers_resident_memory_bytes", "gauge", "Resident memory of processes it started.",
            reading.child_bytes),
        one("cpu_seconds_total", "counter", "CPU seconds of the process since it began.",
            reading.cpu_seconds),
        *_of_loader(label, loader),
    ]  # fmt: skip


def _of_loader(label: Mapping[str, str], stats: Mapping[str, Any]) -> list[Family]:
    """What a Headrace loader counts itself; nothing for others."""
    known = (
        ("bad_records", "loader_bad_records_total", "counter", "Records that were bad."),
        ("copies", "loader_copies_total", "counter", "Batches for which memory had to be made."),
        ("threads", "loader_threads", "gauge", "Threads of the loader."),
        ("memory_used", "loader_memory_bytes", "gauge", "Bytes that the engine holds."),
        ("memory_limit", "loader_memory_limit_bytes", "gauge", "Bytes that it may hold."),
    )
    found = [
        Family(f"headrace_{metric}", kind, text, [Sample(label, float(stats[key]))])
        for key, metric, kind, text in known
        if key in stats
    ]
    stages = [
        Sample({**label, "stage": stage}, float(seconds))
        for stage, seconds in stats.get("stages", {}).items()
        if stage != "wait"
    ]
    text = "Seconds that the loader's threads spent in each stage."
    return [*found, Family("headrace_loader_stage_seconds_total", "counter", text, stages)]
