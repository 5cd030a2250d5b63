# SPDX-License-Identifier: Apache-2.0
"""Copies a loader's epoch to a device: the engine is some batches ahead of its consumer. During a
run, the engine's loader belongs to the prefetcher's thread. Received batches are counted here; when
the run ends, the engine's loader is set back to that position.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from headrace import _core
from headrace.loader.form import Form


class CopiedBatches:
    """Successive runs of one loader, to one device or divided over several."""

    def __init__(
        self,
        devices: Sequence[_core.Device],
        depth: int,
        patience: float,
        warn: Callable[[str], None],
    ) -> None:
        self._names = [device.name for device in devices]
        self._depth = depth
        self._prefetchers = [_core.Prefetcher(d, depth, patience, 0, warn) for d in devices]
        self._engine: _core.Loader | None = None  # set while the prefetchers use it
        self._resting: _core.Loader | None = None  # set after a batch that did not arrive
        self._received: dict[str, int] = {}
        self._before: dict[str, int] = {}  # the batch received last

    def suits(self, form: Form) -> bool:
        """Whether its batches go to that device, with that depth."""
        return ([device.name for device in form.devices], form.depth) == (self._names, self._depth)

    def begin(self, engine: _core.Loader) -> None:
        """Starts at the loader's position."""
        self.end()
        self._resting = None
        self._received = self._before = engine.state()
        self._engine = engine
        _core.start_loader(engine, self._prefetchers, self._depth)

    def next(self, ended: Callable[[], bool]) -> list[list[Any]] | None:
        """For each device, its part of a batch, on the device; None at the end of the epoch, or if
        ``ended()`` says that the batch is no longer needed.
        """
        if self._resting is not None:
            self.begin(self._resting)
        try:
            taken = _core.next_of_loader(self._prefetchers, ended)
        except BaseException:
            if not ended():
                self._rest()
            raise
        if ended():
            return None
        if taken is None:
            self._stop()
            self._engine = None  # it is at the start of the next epoch
            return None
        parts, state = taken
        self._before, self._received = self._received, state
        return parts

    def take_back(self) -> None:
        """The batch that next() last returned did not arrive: the next call returns it again."""
        self._received = self._before
        self._rest()

    def _rest(self) -> None:
        engine = self._engine
        self.end()
        self._resting = engine

    def end(self) -> None:
        """Gives the engine's loader back, positioned at the consumer's next batch."""
        if self._engine is None:
            return
        engine, self._engine = self._engine, None
        self._stop()
        engine.load_state(self._received)

    def _stop(self) -> None:
        for prefetcher in self._prefetchers:
            while not prefetcher.stop():
                pass  # until then its thread uses the engine's loader; signals are handled

    def received(self) -> dict[str, int] | None:
        """The loader's state after the batches received; None without a run."""
        return None if self._engine is None else self._received

    def stats(self) -> dict[str, Any]:
        """Counters of the copies by device, in seconds and bytes."""
        counted = (prefetcher.stats() for prefetcher in self._prefetchers)
        return dict(zip(self._names, counted, strict=True))

    def close(self) -> None:
        """Ends the run and frees the device's memory; batches that are kept stay valid."""
        self._engine = self._resting = None
        for prefetcher in self._prefetchers:
            prefetcher.close()
