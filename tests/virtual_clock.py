# SPDX-License-Identifier: Apache-2.0
"""Time that passes only on sleep and on reads of the clock, which take a microsecond."""

from __future__ import annotations

import time
from typing import Any

from headrace.insight.measure import contention, thread_clock


class VirtualClock:
    """Replaces ``time.perf_counter`` and ``time.sleep`` during a test; pass it to monkeypatch."""

    def __init__(self, monkeypatch: Any) -> None:
        self.now = 0.0
        monkeypatch.setattr(time, "perf_counter", self.look)
        monkeypatch.setattr(time, "sleep", self.sleep)
        # Simulates an idle machine, whatever else runs where the test runs.
        monkeypatch.setattr(contention, "ROOT", "/nowhere")
        monkeypatch.setattr(thread_clock, "_queued", lambda: 0.0)

    def look(self) -> float:
        self.now += 1e-6
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += max(0.0, seconds)
