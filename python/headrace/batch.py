# SPDX-License-Identifier: Apache-2.0
"""Batches: a namedtuple class for each set of fields.

The class's base is exactly ``tuple`` and it has ``_fields``, which is what frameworks look for when
they walk nested batches; a plain ``collections.namedtuple`` cannot index by name.

    >>> cls = batch_class(Layout(("image", "label")))
    >>> b = cls._make([1, 2])
    >>> b["label"], b.image, tuple(b)
    (2, 1, (1, 2))

``per_record`` of a batch gives a list of dictionaries, one per record; ``detection`` and
``segmentation`` give what torchvision's models take.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import Any

from headrace.errors import did_you_mean
from headrace.per_record import Layout, per_record
from headrace.torchvision_batches import detection, segmentation


def field_of_records(batch: Any) -> int | None:
    """The index of a field with one entry per record; None if no field has, or if it is not a
    loader's batch.
    """
    layout = getattr(type(batch), "_layout", None)
    if not isinstance(layout, Layout):
        return None
    ways = [rows.how for rows in layout.by_name().values()]
    return next(
        (number for number, how in enumerate(ways) if how not in ("packed", "nested")), None
    )


def records_in(batch: Any) -> int | None:
    """Number of records in a loader's batch, or in a dictionary of packed rows; None for others."""
    if isinstance(batch, Mapping):
        return _records_of_packed(batch) or _records_of_lists(batch)
    number = field_of_records(batch)
    if number is not None:
        return _length(batch[number])
    layout = getattr(type(batch), "_layout", None)
    if not isinstance(layout, Layout) or not layout.rows:
        return None
    first = layout.rows[0]
    return _length(batch[0 if first.is_companion else first.companion]) - 1


def _records_of_lists(batch: Mapping[Any, Any]) -> int | None:
    """If the first value is a list: arrays that differ in length are one per record; arrays of
    equal length may be views of one record, so the first plain array gives the number of records.
    """
    first = next(iter(batch.values()), None)
    if not isinstance(first, list) or not all(getattr(each, "shape", ()) for each in first):
        return None
    if len({int(each.shape[0]) for each in first}) > 1:
        return len(first)
    arrays = (value for value in batch.values() if getattr(value, "shape", ()))
    return next((int(array.shape[0]) for array in arrays), None)


def _records_of_packed(batch: Mapping[Any, Any]) -> int | None:
    """From the row offsets of packed fields, one more than records: "boxes_offsets" for "boxes"."""
    for name, rows in batch.items():
        offsets: Any = batch.get(f"{name}_offsets") if isinstance(name, str) else None
        if not hasattr(rows, "shape") or not str(getattr(offsets, "dtype", "")).endswith("int64"):
            continue
        if len(offsets.shape) != 1 or offsets.shape[0] == 0 or len(rows.shape) == 0:
            continue
        # Not read from a device, since that would wait for all queued work.
        on_host = str(getattr(offsets, "device", "cpu")) == "cpu"
        if not on_host or int(offsets[-1]) in rows.shape:
            return int(offsets.shape[0]) - 1
    return None


def _length(value: Any) -> int:
    shape = getattr(value, "shape", None)  # the engine's arrays have no len()
    return int(shape[0]) if shape is not None else len(value)


def _new(cls: type, values: Iterable[Any]) -> Any:
    values = tuple(values)
    if len(values) != len(cls._fields):  # type: ignore[attr-defined]
        raise TypeError(f"expected {len(cls._fields)} values, got {len(values)}")  # type: ignore[attr-defined]
    return tuple.__new__(cls, values)


def _construct(cls: type, *values: Any, **named: Any) -> Any:
    rest = [named.pop(name) for name in cls._fields[len(values) :]]  # type: ignore[attr-defined]
    if named:
        raise TypeError(f"unexpected fields {sorted(named)}")
    return _new(cls, (*values, *rest))


def _getitem(self: Any, key: Any) -> Any:
    if not isinstance(key, str):
        return tuple.__getitem__(self, key)
    try:
        return tuple.__getitem__(self, self._fields.index(key))
    except ValueError:
        raise KeyError(f"no field {key!r}; {did_you_mean(key, self._fields)}") from None


def _repr(self: Any) -> str:
    def one(value: Any) -> str:
        if hasattr(value, "shape") and hasattr(value, "dtype"):
            return f"<{str(value.dtype).removeprefix('torch.')} {tuple(value.shape)}>"
        return f"<list of {len(value)}>" if isinstance(value, list) else repr(value)

    inside = ", ".join(f"{n}={one(v)}" for n, v in zip(self._fields, self, strict=True))
    return f"Batch({inside})"


def _asdict(self: Any) -> dict[str, Any]:
    return dict(zip(self._fields, self, strict=True))


def _replace(self: Any, **named: Any) -> Any:
    values = [named.pop(n, v) for n, v in zip(self._fields, self, strict=True)]
    if named:
        raise ValueError(f"got unexpected field names: {sorted(named)}")
    return type(self)._make(values)


def _per_record(self: Any, *fields: str) -> list[dict[str, Any]]:
    """A dictionary per record with these fields, or all fields: torchvision's targets. Padding is
    removed and packed fields are split, as views if the framework has views. On a device this waits
    for the lengths or offsets. Raises ConfigError HR0743 for an unknown field.
    """
    return per_record(type(self)._layout, _asdict(self), fields)


def _detection(self: Any, image: str = "image") -> tuple[list[Any], list[dict[str, Any]]]:
    """``images, targets`` in the form that torchvision's detectors take.

    images: a list of (C, H, W). targets: a dictionary per record with all other fields: boxes (N,
    4) xyxy, labels (N,) from 1, image_id as int, area and iscrowd (COCO's areas and crowd), masks,
    keypoints. On a device this waits for the labels. Raises ConfigError HR0744 if boxes have
    another format, or if a label is 0, which these models take for the background.
    """
    return detection(type(self)._layout, _asdict(self), image)


def _segmentation(self: Any, image: str = "image", mask: str = "mask") -> tuple[Any, Any]:
    """``images, masks`` for torchvision's segmentation models: (B, H, W) int64 class ids.

    Raises ConfigError HR0744 if masks are not one tensor (B, 1, H, W).
    """
    return segmentation(type(self)._layout, _asdict(self), image, mask)


def _rebuild(layout: Layout, values: tuple[Any, ...], state: dict[str, Any] | None) -> Any:
    batch = batch_class(layout, inspected=state is not None)._make(values)
    if state:
        batch.__dict__.update(state)
    return batch


def _reduce(self: Any) -> tuple[Any, ...]:
    return (_rebuild, (self._layout, tuple(self), getattr(self, "__dict__", None)))


def with_attributes(batch: Any, **attributes: Any) -> Any:
    """The same batch with these values as attributes instead of fields."""
    out = batch_class(batch._layout, inspected=True)._make(batch)
    out.__dict__.update(attributes)
    return out


def batch_class(layout: Layout, inspected: bool = False) -> Any:
    """The class of batches of this layout. ``inspected``: including ``id`` and ``key``."""
    return _made_class(layout, inspected)


@functools.cache
def _made_class(layout: Layout, inspected: bool) -> Any:
    fields = layout.fields
    members: dict[str, Any] = {
        "__doc__": f"A batch: {', '.join(fields)}.",
        "_fields": fields,
        "_field_defaults": {},
        "_layout": layout,
        "__match_args__": fields,
        "__new__": _construct,
        "_make": classmethod(_new),
        "_asdict": _asdict,
        "_replace": _replace,
        "per_record": _per_record,
        "detection": _detection,
        "segmentation": _segmentation,
        "__getitem__": _getitem,
        "__repr__": _repr,
        "__reduce__": _reduce,
        "__module__": __name__,
    }
    if not inspected:
        members["__slots__"] = ()
    for number, name in enumerate(fields):
        members[name] = property(itemgetter(number), doc=f"Field {number}.")
    return type("Batch", (tuple,), members)
