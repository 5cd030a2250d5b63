# SPDX-License-Identifier: Apache-2.0
"""The form of batches for a consumer: the framework of arrays, tuple or dict, and devices."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from headrace import _core
from headrace.arguments import integer, one_of
from headrace.batch import batch_class
from headrace.loader.own_device import open_device
from headrace.per_record import Layout

Devices = _core.Device | Sequence[_core.Device]


def devices_named(device: Any) -> Devices:
    """The engine's devices for a name or a list of names; none for the host."""
    if device is None or isinstance(device, _core.Device):
        return device or ()
    if isinstance(device, (list, tuple)):
        return [d if isinstance(d, _core.Device) else open_device(str(d)) for d in device]
    found = open_device(str(device))
    return () if found.is_host else found


class Cast(NamedTuple):
    """plane: (..., 1, H, W) becomes (..., H, W)."""

    dtype: str
    plane: bool = False


class Form:
    """How the engine's values become a batch: arrays by ``convert``, in a namedtuple or a dict.

    casts: fields converted to another dtype afterwards, such as masks to int64 for a loss.
    """

    casts: Mapping[str, Cast] = {}

    def __init__(
        self,
        convert: Callable[[_core.Array], Any],
        batch: str = "tuple",
        devices: Devices = (),
        depth: int = 2,
    ) -> None:
        self.convert = convert
        # The devices to which arrays are copied before conversion. A list divides batches over
        # them.
        self.devices = [devices] if isinstance(devices, _core.Device) else list(devices)
        self.is_divided = not isinstance(devices, _core.Device)
        self.depth = integer("depth", depth, 1)  # number of batches copied ahead
        self.as_dict = one_of("batch", batch, ("tuple", "dict")) == "dict"
        self._class: tuple[Layout | None, Any] = None, None  # class of batches of the last layout

    def batch(self, layout: Layout, values: list[Any]) -> Any:
        if self.casts:
            return self.structure(layout, self.converted(layout, values).values())
        return self.structure(layout, [each(self.convert, value) for value in values])

    def converted(self, layout: Layout, values: Iterable[Any]) -> dict[str, Any]:
        """Each field's value, converted, by name."""
        fields = zip(layout.fields, values, strict=True)
        return {name: self.value(name, value) for name, value in fields}

    def value(self, name: str, value: Any) -> Any:
        """One field's value, converted."""
        out = each(self.convert, value)
        return out if name not in self.casts else cast(out, self.casts[name])

    def batch_of(self, layout: Layout, parts: list[list[Any]]) -> Any:
        """The batch; for a list of devices, a tuple of their parts."""
        if not self.devices or not self.is_divided:
            return self.batch(layout, parts[0])
        return tuple(self.batch(layout, values) for values in parts)

    def structure(self, layout: Layout, values: Iterable[Any]) -> Any:
        """A batch of these values, unconverted."""
        if self.as_dict:
            return dict(zip(layout.fields, values, strict=True))
        known, made = self._class
        if known is not layout:  # compared by identity, since a lookup needs its hash
            made = batch_class(layout)
            self._class = layout, made
        return made._make(values)

    def inspected(
        self, layout: Layout, values: Mapping[str, Any], place: tuple[int, int] = (0, 0)
    ) -> Any:
        """A namedtuple of the fields, with the other values as attributes. place: epoch and number
        of the batch.
        """
        converted = {name: self.value(name, value) for name, value in values.items()}
        batch = batch_class(layout, inspected=True)._make(
            converted.pop(name) for name in layout.fields
        )
        batch.__dict__.update(converted)
        return batch


def cast(value: Any, to: Cast) -> Any:
    """A framework's array, or a list of them, in another dtype."""
    if isinstance(value, list):
        return [cast(item, to) for item in value]
    if to.plane:
        value = value[..., 0, :, :]
    if hasattr(value, "detach"):
        return value.to(getattr(sys.modules["torch"], to.dtype))
    return value.astype(to.dtype)


def each(convert: Callable[[_core.Array], Any], value: Any) -> Any:
    """Converts the arrays of one field; lists (text, bytes, ragged fields) keep their form."""
    if isinstance(value, _core.Array):
        return convert(value)
    return [convert(item) if isinstance(item, _core.Array) else item for item in value]
