# SPDX-License-Identifier: Apache-2.0
"""Prometheus metrics of a watched loop: names in base units, one label for the loader.

Imported only where the figures are asked for: the text is that of prometheus_client, an extra.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from headrace.counters import LOADER, WORK, number
from headrace.insight.live.histogram import BOUNDS, ROUND
from headrace.insight.live.window import Moment

# Bounds exported to Prometheus: 10, 20 and 50 us, and so on to 100 s.
_TOLD = [i for i, bound in enumerate(BOUNDS) if i in ROUND and 1e-5 <= bound <= 100]


def text_of(moment: Moment) -> str:
    """The metrics in text format 0.0.4."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(moment))
    return generate_latest(registry).decode()


class _Collector:
    def __init__(self, moment: Moment) -> None:
        self._moment = moment

    def collect(self) -> Iterator[Metric]:
        moment = self._moment
        label, figures, recent = {"loader": moment.name}, moment.now.figures, moment.recent
        reading, stats = moment.reading, moment.loader
        plain: list[tuple[str, str, float | None]] = [
            ("batches_total", "Batches that the loop took.", figures.batches),
            ("records_total", "Records in these batches.", figures.records),
            ("epochs_total", "Completed epochs.", figures.epochs),
            ("waiting_seconds", "Seconds that the current wait has lasted.", figures.waiting),
            ("first_batch_seconds", "Seconds until the first batch.", figures.first_batch),
            ("recent_wait_ratio", "Share of the recent loop's time spent waiting, 0 to 1.",
             recent.figures.wait_share),
            ("stalls_total", "Number of times that the loop began to stall.", moment.stalls),
            ("gil_held_ratio", "Share of recent time in which Python's GIL was held.",
             recent.gil_share),
            ("resident_memory_bytes", "Resident memory of the process.", reading.resident_bytes),
            ("workers_resident_memory_bytes", "Resident memory of processes it started.",
             reading.child_bytes),
            ("cpu_seconds_total", "CPU seconds used by the process since it started.",
             reading.cpu_seconds),
            *((f"loader_{entry['metric']}", entry["doc"], number(stats, name))
              for name, entry in LOADER.items() if entry["metric"]),
        ]  # fmt: skip
        for name, text, value in plain:
            if value is not None:
                yield family(name, text, [(label, value)])
        yield durations("wait_seconds", "Seconds that the loop waited for a batch.", label,
                        figures.waits, figures.wait_sum)  # fmt: skip
        yield durations("step_seconds", "Seconds between receiving a batch and requesting the "
                                        "next one.", label,
                        figures.steps, figures.step_sum)  # fmt: skip
        stages = stats.get("stages", {}).items()
        parts = [({**label, "stage": name}, spent) for name, spent in stages if name in WORK]
        if parts:
            text = "Seconds that the loader's threads spent in each stage."
            yield family("loader_stage_seconds_total", text, parts)


def family(name: str, text: str, samples: Sequence[tuple[Mapping[str, str], float]]) -> Metric:
    """A counter if the name ends in _total, otherwise a gauge; all samples have the same labels."""
    kind = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
    found = kind(f"headrace_{name}", text, labels=list(samples[0][0]))
    for labels, value in samples:
        found.add_metric(list(labels.values()), float(value))
    return found


def durations(
    name: str, text: str, label: Mapping[str, str], counts: Sequence[int], total: float
) -> HistogramMetricFamily:
    """The watch's histogram, in the buckets exported to Prometheus."""
    buckets, done = [], 0
    for bound in _TOLD:
        done = bound + 1
        buckets.append((f"{BOUNDS[bound]:g}", float(sum(counts[:done]))))
    buckets.append(("+Inf", float(sum(counts))))
    found = HistogramMetricFamily(f"headrace_{name}", text, labels=list(label))
    found.add_metric(list(label.values()), buckets, total)
    return found
