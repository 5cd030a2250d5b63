# SPDX-License-Identifier: Apache-2.0
"""The fraction of a training loop's time spent waiting for batches, for a trainer's own log."""

from __future__ import annotations

from typing import Any

from headrace.insight.live.meter import Meter
from headrace.insight.live.tap import attach, detach


class WaitShare:
    """Times the iteration of ``loader``, a Loader or a view, until ``close``."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader
        self._meter = Meter()
        attach(loader, self._meter)
        self._last = self._meter.figures()

    def since_last(self) -> float | None:
        """The fraction since the previous call, from 0 to 1; None if no batch was taken since
        then."""
        now = self._meter.figures()
        recent, self._last = now.since(self._last), now
        return recent.wait_share if recent.batches else None

    def close(self) -> None:
        detach(self._loader, self._meter)
