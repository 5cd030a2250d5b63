# SPDX-License-Identifier: Apache-2.0
"""A loader's epoch on its way to a device: the engine is some batches ahead of its consumer.

While it runs, the engine's loader belongs to the prefetcher's thread. What was received is counted
here; when the run ends, the engine's loader is set back to there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace import _core


class DeviceRun:
    """Runs of one loader, one after the other, to one device."""

    def __init__(
        self, device: _core.Device, depth: int, patience: float, warn: Callable[[str], None]
    ) -> None:
        self._device = device
        self._depth = depth
        self._prefetcher = _core.Prefetcher(device, depth, patience, 0, warn)
        self._engine: _core.Loader | None = None
        self._received: dict[str, int] = {}

    def is_to(self, device: _core.Device | None, depth: int) -> bool:
        """Whether its batches go there, so many ahead."""
        return device is not None and (device.name, depth) == (self._device.name, self._depth)

    def begin(self, engine: _core.Loader) -> None:
        """From where the loader stands."""
        self.end()
        self._received = engine.state()
        self._engine = engine
        self._prefetcher.start_loader(engine)

    def next(self) -> list[Any] | None:
        """A batch's values, arrays on the device; None at the end of the epoch."""
        try:
            taken = self._prefetcher.next_of_loader()
        except BaseException:
            self.end()  # the batch was not received
            raise
        if taken is None:
            self._prefetcher.stop()
            self._engine = None  # it stands at the next epoch's begin
            return None
        values, self._received = taken
        return values

    def end(self) -> None:
        """Gives the engine's loader back, at the batch that its consumer receives next."""
        if self._engine is None:
            return
        engine, self._engine = self._engine, None
        self._prefetcher.stop()
        engine.load_state(self._received)

    def received(self) -> dict[str, int] | None:
        """The loader's state as its consumer knows it; None where no run is under way."""
        return None if self._engine is None else self._received

    def stats(self) -> dict[str, Any]:
        """Counters of the copies; seconds and bytes."""
        return self._prefetcher.stats()

    def close(self) -> None:
        """Ends the run and frees the device's memory; batches that are kept stay valid."""
        self._engine = None
        self._prefetcher.close()
