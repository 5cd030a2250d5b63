# SPDX-License-Identifier: Apache-2.0
"""Batches: a namedtuple class for each set of fields.

The class's base is exactly ``tuple`` and it has ``_fields``, which is what frameworks look for when
they walk nested batches; a plain ``collections.namedtuple`` cannot index by name.

    >>> cls = batch_class(("image", "label"))
    >>> b = cls._make([1, 2])
    >>> b["label"], b.image, tuple(b)
    (2, 1, (1, 2))
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from operator import itemgetter
from typing import Any

from headrace.errors import did_you_mean


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


def _rebuild(fields: tuple[str, ...], values: tuple[Any, ...], state: dict[str, Any] | None) -> Any:
    batch = batch_class(fields, inspected=state is not None)._make(values)
    if state:
        batch.__dict__.update(state)
    return batch


def _reduce(self: Any) -> tuple[Any, ...]:
    return (_rebuild, (self._fields, tuple(self), getattr(self, "__dict__", None)))


def batch_class(fields: tuple[str, ...], inspected: bool = False) -> Any:
    """The class of batches with these fields. ``inspected``: with room for ``id`` and ``key``."""
    return _made_class(fields, inspected)


@functools.cache
def _made_class(fields: tuple[str, ...], inspected: bool) -> Any:
    members: dict[str, Any] = {
        "__doc__": f"A batch: {', '.join(fields)}.",
        "_fields": fields,
        "_field_defaults": {},
        "__match_args__": fields,
        "__new__": _construct,
        "_make": classmethod(_new),
        "_asdict": _asdict,
        "_replace": _replace,
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
