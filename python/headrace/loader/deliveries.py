# SPDX-License-Identifier: Apache-2.0
"""How a loader's batches reach its consumer: one interface, and which delivery suits a form.

A delivery has the engine's loader from ``begin`` to ``end``. It gives one list of values for each
device, which the form makes a batch of.
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
    """Epochs of one loader, one after the other, on their way to the consumer."""

    def suits(self, form: Form) -> bool:
        """Whether its batches come where the form wants them."""

    def begin(self, engine: _core.Loader) -> None:
        """From where the engine's loader stands."""

    def next(self, ended: Callable[[], bool]) -> list[list[Any]] | None:
        """For each device its values; None at the end of the epoch, and when ``ended()``, asked
        every 50 ms, says that they are not wanted any more."""

    def take_back(self) -> None:
        """The batch that next() gave last did not arrive: the next call gives it again."""

    def end(self) -> None:
        """Gives the engine's loader back, at the batch that its consumer receives next."""

    def received(self) -> dict[str, int] | None:
        """The loader's state as its consumer knows it; None where the engine knows it itself."""

    def stats(self) -> dict[str, Any]:
        """Counters of the copies by device."""

    def close(self) -> None:
        """Frees what it holds; batches that are kept stay valid."""


class EngineBatches:
    """As the engine makes them: on the host, or cut on the device where resident data lies."""

    def __init__(self, assembly: Assembly, device: str = "") -> None:
        self._assembly = assembly
        self._names = [device] if device else []

    def suits(self, form: Form) -> bool:
        return [device.name for device in form.devices] == self._names

    def begin(self, engine: _core.Loader) -> None:
        pass  # between two calls no thread has the engine's loader

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
    """The delivery that suits a form, after one that did not and is closed."""
    if not form.devices:
        if isinstance(before, EngineBatches) or assembly.engine().leaves_unfinished:
            assembly.renew()  # the data lay on a device, or batches were finished there
        return EngineBatches(assembly)
    # Data can lie on one device; batches for several are divided on the host.
    device, alone = form.devices[0], len(form.devices) == 1
    if assembly.renew(device=device, resident_on_device=alone).load_resident():
        return EngineBatches(assembly, device.name)
    patience = seconds("patience", assembly.given["patience"])
    return CopiedBatches(form.devices, form.depth, patience, warn)
