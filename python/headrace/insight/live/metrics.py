# SPDX-License-Identifier: Apache-2.0
"""Prometheus metrics of a watched loop: names in base units, one label for the loader.

Imported only when the metrics are requested, since it needs prometheus_client, an optional
dependency.
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

from headrace.insight.live.exported import EXPORTED, Exported, Samples
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
        label, figures = {"loader": self._moment.name}, self._moment.now.figures
        for one in EXPORTED:
            samples = one.samples(self._moment)
            if samples:
                yield family(one, [({**label, **more}, value) for more, value in samples])
        yield durations("wait_seconds", "Seconds that the loop waited for a batch.", label,
                        figures.waits, figures.wait_sum)  # fmt: skip
        yield durations("step_seconds", "Seconds between receiving a batch and requesting the "
                                        "next one.", label,
                        figures.steps, figures.step_sum)  # fmt: skip


def family(one: Exported, samples: Samples) -> Metric:
    """All samples have the same labels."""
    kind = CounterMetricFamily if one.grows else GaugeMetricFamily
    found = kind(f"headrace_{one.name}", one.text, labels=list(samples[0][0]))
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
