# SPDX-License-Identifier: Apache-2.0
"""How a loader's batches reach its consumer: one interface, and the choice of the delivery for a
form. A delivery owns the engine's loader from ``begin`` to ``end``. It returns one list of values
per device, from which the form makes a batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from headrace import _core
from headrace.arguments import seconds
from headrace.errors import warn
from headrace.loader.assembly import Assembly
from headrace.loader.copied_batches import CopiedBatches
from headrace.loader.form import Form


class Delivery(Protocol):
    """Delivers the epochs of one loader to the consumer, one after another."""

    def suits(self, form: Form) -> bool:
        """Whether its batches arrive where the form requires them."""

    def begin(self, engine: _core.Loader) -> None:
        """Starts at the position of the engine's loader."""

    def next(self, ended: Callable[[], bool]) -> list[list[Any]] | None:
        """For each device, its values; None at the end of the epoch, or if ``ended()``, called
        every 50 ms, says that they are no longer wanted.
        """

    def take_back(self) -> None:
        """The batch that next() last returned did not arrive: the next call returns it again."""

    def end(self) -> None:
        """Gives the engine's loader back, positioned at the consumer's next batch."""

    def received(self) -> dict[str, int] | None:
        """The loader's state after the batches received; None if the engine keeps it."""

    def stats(self) -> dict[str, Any]:
        """Counters of the copies by device."""

    def close(self) -> None:
        """Frees what it holds; batches that are kept stay valid."""


class EngineBatches:
    """Batches as the engine makes them: on the host, or on the device that holds resident data."""

    def __init__(self, assembly: Assembly, device: str = "") -> None:
        self._assembly = assembly
        self._names = [device] if device else []

    def suits(self, form: Form) -> bool:
        return [device.name for device in form.devices] == self._names

    def begin(self, engine: _core.Loader) -> None:
        pass  # between two calls no thread uses the engine's loader

    def next(self, ended: Callable[[], bool]) -> list[list[Any]] | None:
        taken = self._assembly.engine().next(ended)
        return None if taken is None else [taken[2]]

    def take_back(self) -> None:
        self._assembly.engine().take_back()

    def end(self) -> None:
        pass

    def received(self) -> dict[str, int] | None:
        return None

    def stats(self) -> dict[str, Any]:
        return {}

    def close(self) -> None:
        pass


def delivery_for(form: Form, assembly: Assembly, before: Delivery) -> Delivery:
    """The delivery for a form, after closing an unsuitable one."""
    if not form.devices:
        if isinstance(before, EngineBatches) or assembly.engine().leaves_unfinished:
            assembly.renew()  # the resident data was on a device, or batches were finished there
        return EngineBatches(assembly)
    # Resident data can be on one device only; batches for several are divided on the host.
    device, alone = form.devices[0], len(form.devices) == 1
    if assembly.renew(device=device, resident_on_device=alone).load_resident():
        return EngineBatches(assembly, device.name)
    patience = seconds("patience", assembly.given["patience"])
    return CopiedBatches(form.devices, form.depth, patience, warn)
