# SPDX-License-Identifier: Apache-2.0
"""Runs torch operations on a side stream, concurrently with the consumer's stream."""

from __future__ import annotations

import sys
from typing import Any, Protocol


class Streams(Protocol):
    """The consumer's stream, and a side stream."""

    def side_waits_for_current(self) -> None: ...
    def current_waits_for(self, event: Any) -> None: ...
    def on_side(self) -> Any: ...
    def record(self) -> Any: ...


class TorchStreams:
    """torch's current stream on a device, looked up at each call, and our own side stream."""

    def __init__(self, device: str) -> None:
        self._cuda = sys.modules["torch"].cuda
        self._device = device
        self._side = self._cuda.Stream(device)

    def side_waits_for_current(self) -> None:
        self._side.wait_stream(self._cuda.current_stream(self._device))

    def current_waits_for(self, event: Any) -> None:
        self._cuda.current_stream(self._device).wait_event(event)

    def on_side(self) -> Any:
        return self._cuda.stream(self._side)

    def record(self) -> Any:
        return self._side.record_event()
