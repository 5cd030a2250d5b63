# SPDX-License-Identifier: Apache-2.0
"""OpenTelemetry: metrics of watched loops as observable instruments, stalls as spans.

Imported only on request, because it needs the package opentelemetry-api. Names and units follow
from those for Prometheus, so that OpenTelemetry's exporter for Prometheus gives the same metrics.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import Any

from opentelemetry import metrics, trace
from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation
from opentelemetry.trace import TracerProvider

from headrace import _core
from headrace.insight.live.exported import EXPORTED, Exported
from headrace.insight.live.window import Moment

_UNITS = {"seconds": "s", "bytes": "By", "ratio": "1"}
_SUMS = (  # Prometheus has histograms of them; an observable instrument has none
    Exported("wait_seconds_total", "Seconds that the loop waited for batches.",
             lambda moment: [({}, moment.now.figures.wait_sum)]),
    Exported("step_seconds_total", "Seconds between receiving a batch and requesting the next one.",
             lambda moment: [({}, moment.now.figures.step_sum)]),
)  # fmt: skip

# A weak reference to a watch's function; returns None once the watch no longer exists.
Look = Callable[[], Callable[[], Moment] | None]


def named(name: str) -> tuple[str, str]:
    """OpenTelemetry's name and unit of a figure: ("headrace.resident_memory", "By")."""
    base = name.removesuffix("_total")
    stem, _, last = base.rpartition("_")
    own, unit = (stem, _UNITS[last]) if last in _UNITS else (base, "")
    part, _, rest = own.partition("_")
    return f"headrace.loader.{rest}" if part == "loader" else f"headrace.{own}", unit


class _Instruments:
    """The instruments of one provider. A second instrument of the same name would not be read, so
    each one reports all loops, labeled with the loader's name."""

    def __init__(self, provider: MeterProvider) -> None:
        self.loops: dict[str, Look] = {}
        meter = provider.get_meter("headrace", _core.__version__)
        for one in (*EXPORTED, *_SUMS):
            make = meter.create_observable_counter if one.grows else meter.create_observable_gauge
            name, unit = named(one.name)
            make(name, [self._reader(one)], unit, one.text)

    def _reader(self, one: Exported) -> Callable[[CallbackOptions], Iterable[Observation]]:
        def read(_: CallbackOptions) -> Iterable[Observation]:
            for name, look in list(self.loops.items()):
                if (moment_of := look()) is None:
                    self.loops.pop(name, None)
                    continue
                for labels, value in one.samples(moment_of()):
                    yield Observation(value, {"headrace.loader": name, **labels})

        return read


_instruments: weakref.WeakKeyDictionary[MeterProvider, _Instruments] = weakref.WeakKeyDictionary()


class Telemetry:
    """The export of one watch."""

    def __init__(
        self,
        name: str,
        look: Look,
        meters: MeterProvider | None,
        tracers: TracerProvider | None,
    ) -> None:
        provider = metrics.get_meter_provider() if meters is None else meters
        if provider not in _instruments:
            _instruments[provider] = _Instruments(provider)
        self._name, self._loops = name, _instruments[provider].loops
        self._loops[name] = look
        self._tracer = trace.get_tracer("headrace", _core.__version__, tracers)
        self._span: Any = None

    def judged(self, is_stalled: bool, message: str = "") -> None:
        """After each window: a span begins or ends with the stall."""
        if is_stalled and self._span is None:
            attributes = {"headrace.loader": self._name, "headrace.message": message}
            self._span = self._tracer.start_span("headrace.stall", attributes=attributes)
        elif not is_stalled and self._span is not None:
            self._span.end()
            self._span = None

    def close(self, last: Moment) -> None:
        """The last figures remain, for the next export."""
        self.judged(False)
        self._loops[self._name] = lambda: lambda: last
