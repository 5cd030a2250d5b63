# SPDX-License-Identifier: Apache-2.0
"""A step that simulates a GPU with a given step time and copy rate.

    >>> from headrace.insight.stand_in import StandIn
    >>> step = StandIn(step_seconds=0.002, copy_bytes_per_second=12e9)
    >>> step
    StandIn(2 ms per batch, copies 12 GB/s)

It leaves the cores to the loader, like a GPU, and knows the time of a batch that is already on the
device. So ``hr.doctor(loader, step)`` distinguishes copies from steps by the same experiments as
with a GPU.
"""

from __future__ import annotations

import math
import re
import time
from typing import Any, NamedTuple

from headrace.delivery.nested import take_apart
from headrace.errors import declare
from headrace.insight.measure import copying
from headrace.insight.measure.loop import records_in

BAD_STAND_IN = declare(
    "HR0930",
    "config",
    "invalid simulated device",
    "A simulated device has a step duration of 0 seconds or more, and a copy rate above 0 bytes "
    'per second. As text: "2ms", "40us/record", "1.5s"; "12GB/s", "800MB/s".',
)

# A sleep may end this much too late, so the last part is spent in short sleeps, which release the
# GIL and the core.
_LATE = 1.5e-4
_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6}
_BYTES = {"B": 1.0, "KB": 1e3, "MB": 1e6, "GB": 1e9, "KIB": 2.0**10, "MIB": 2.0**20, "GIB": 2.0**30}
_TIME = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*(us|µs|ms|s)(/batch|/record)?", re.IGNORECASE)
_RATE = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*([KMG]?i?B)/s", re.IGNORECASE)


class There(NamedTuple):
    """A batch on the simulated device: a step on it copies nothing."""

    batch: Any


class StandIn:
    """A step with given times, called with each batch like your own step.

    Args:
        step_seconds: time per batch.
        record_seconds: additional time per record.
        copy_bytes_per_second: from pageable host memory; by default copies take no time.
        pinned_bytes_per_second: from pinned host memory; default: ``copy_bytes_per_second``.
        overlapped: a batch is copied during the previous step, as by a prefetcher.

    Raises ConfigError (HR0930) for times below 0 and rates that are not above 0.
    """

    def __init__(
        self,
        step_seconds: float = 0.0,
        *,
        record_seconds: float = 0.0,
        copy_bytes_per_second: float = math.inf,
        pinned_bytes_per_second: float | None = None,
        overlapped: bool = False,
    ) -> None:
        if pinned_bytes_per_second is None:
            pinned_bytes_per_second = copy_bytes_per_second
        self._pageable = float(copy_bytes_per_second)
        self._pinned = float(pinned_bytes_per_second)
        self._seconds, self._each = float(step_seconds), float(record_seconds)
        self.overlapped = overlapped
        for name, value in (("step_seconds", self._seconds), ("record_seconds", self._each)):
            if not 0 <= value < math.inf:
                raise BAD_STAND_IN.error(f"{name}={value!r}")
        for name, value in (
            ("copy_bytes_per_second", self._pageable),
            ("pinned_bytes_per_second", self._pinned),
        ):
            if not value > 0:
                raise BAD_STAND_IN.error(f"{name}={value!r}")
        self._copied_at = 0.0  # end of the previous batch's copy

    def __call__(self, batch: Any) -> None:
        now = time.perf_counter()
        if self.overlapped:
            # The previous batch's step: it begins when that batch's copy has ended.
            begin = max(now, self._copied_at)
            self._copied_at = begin + self.copy_seconds(batch)
        else:
            begin = now + self.copy_seconds(batch)
        wait_until(begin + self.step_seconds(batch))

    def step_seconds(self, batch: Any) -> float:
        """Seconds of the step alone, for this batch."""
        return self._seconds + self._each * (records_in(batch) if self._each else 0)

    def copy_seconds(self, batch: Any) -> float:
        """Seconds to copy its arrays; 0 for a batch that is already on the device."""
        if isinstance(batch, There):
            return 0.0
        arrays = take_apart(batch, lambda value: hasattr(value, "nbytes")).leaves
        return sum(
            int(a.nbytes) / (self._pinned if is_pinned(a) else self._pageable) for a in arrays
        )

    def on_device(self, batch: Any) -> There:
        """The batch as if it had been copied."""
        return batch if isinstance(batch, There) else There(batch)

    def copies(self) -> dict[str, float]:
        """Bytes per second by path, as given; empty if copies take no time."""
        rates = {"pageable": self._pageable, "pinned": self._pinned}
        return {name: rate for name, rate in rates.items() if rate < math.inf}

    def __repr__(self) -> str:
        times = [f"{1e3 * self._seconds:g} ms per batch"] if self._seconds or not self._each else []
        times += [f"{1e6 * self._each:g} µs per record"] if self._each else []
        rates = [f"copies {rate / 1e9:g} GB/s" for rate in {*self.copies().values()}]
        return f"StandIn({', '.join([*times, *sorted(rates)])})"


def on_device(batch: Any, step: Any) -> Any:
    """The batch on the step's device: on the simulated device, on torch's GPU, or unchanged."""
    return step.on_device(batch) if isinstance(step, StandIn) else copying.on_device(batch)


def wait_until(moment: float) -> None:
    """Sleeps until ``time.perf_counter()`` reaches that time, with little delay."""
    left = moment - time.perf_counter()
    if left > _LATE:
        time.sleep(left - _LATE)
    while time.perf_counter() < moment:
        time.sleep(0)


def is_stand_in(text: str) -> bool:
    """Whether the value of ``--step`` is a duration instead of a file."""
    return _TIME.fullmatch(text.strip()) is not None


def stand_in_from(step: str, copy: str | None = None) -> StandIn:
    """From the command line: "2ms" or "40us/record", and "12GB/s"."""
    found = _TIME.fullmatch(step.strip())
    if found is None:
        raise BAD_STAND_IN.error(f"{step!r} is not a duration", hint='write "2ms" or "40us/record"')
    seconds = float(found[1]) * _SECONDS[found[2].lower()]
    rate = math.inf if copy is None else _rate_from(copy)
    if (found[3] or "").lower() == "/record":
        return StandIn(record_seconds=seconds, copy_bytes_per_second=rate)
    return StandIn(seconds, copy_bytes_per_second=rate)


def _rate_from(text: str) -> float:
    found = _RATE.fullmatch(text.strip())
    if found is None:
        raise BAD_STAND_IN.error(f"{text!r} is not a copy rate", hint='write "12GB/s"')
    return float(found[1]) * _BYTES[found[2].upper()]


def is_pinned(array: Any) -> bool:
    """Whether its memory is pinned, so that a GPU copies it directly."""
    asked = getattr(array, "is_pinned", None)
    return bool(asked()) if callable(asked) else False
