# SPDX-License-Identifier: Apache-2.0
"""The measured gain of an applied remedy, compared with its prediction."""

from __future__ import annotations

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True)
class Verified:
    """The predicted and the measured gain of a remedy. Rates in records per second.

    reason: why nothing was measured; then ``before`` and ``after`` are 0. measured: the rate on
    which the prediction is based. records: how many records the loops had, if fewer than all,
    ``whole``.
    """

    name: str
    low: float = 0.0
    high: float = 0.0
    measured: float = 0.0
    before: float = 0.0
    after: float = 0.0
    records: int = 0
    whole: int = 0
    disk_bytes: int = 0
    reason: str = ""

    @property
    def predicted_gain(self) -> float:
        """The middle of the range, as a ratio of rates: 1.5 for 50 % faster."""
        return (self.low + self.high) / 2 / self.measured if self.measured else 0.0

    @property
    def measured_gain(self) -> float:
        return self.after / self.before if self.before else 0.0

    @property
    def error(self) -> float:
        """The relative error of the predicted gain."""
        return self.predicted_gain / self.measured_gain - 1 if self.measured_gain else 0.0

    @property
    def in_range(self) -> bool:
        """Whether the measured gain is in the predicted range."""
        return self.low <= self.measured_gain * self.measured <= self.high

    def json(self) -> dict[str, Any]:
        """Plain values, for the report's JSON."""
        if self.reason:
            return {"name": self.name, "applied": False, "reason": self.reason}
        return {
            "name": self.name,
            "applied": True,
            "predicted_low": self.low,
            "predicted_high": self.high,
            "predicted_gain": self.predicted_gain,
            "rate_before": self.before,
            "rate_after": self.after,
            "measured_gain": self.measured_gain,
            "error": self.error,
            "in_range": self.in_range,
            "records": self.records,
            "dataset_records": self.whole,
            "disk_bytes": self.disk_bytes,
        }
