# SPDX-License-Identifier: Apache-2.0
"""Takes nested batches apart into their arrays, and puts them together again.

    >>> parts = take_apart({"x": [1, (2.5, "a")]}, lambda value: isinstance(value, (int, float)))
    >>> parts.leaves
    [1, 2.5]
    >>> parts.put_together(["one", "two"])
    {'x': ['one', ('two', 'a')]}

Mappings, lists, tuples, named tuples and dataclasses are opened; everything else is unchanged.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

_DEEPEST = 50


class _Place(NamedTuple):
    number: int


class Parts(NamedTuple):
    """The leaves of a batch, and the structure around them."""

    leaves: list[Any]
    around: Any

    def put_together(self, values: Sequence[Any]) -> Any:
        """The batch with its leaves replaced by these values."""
        return _rebuilt(self.around, lambda place: values[place.number], 0)


def take_apart(batch: Any, is_leaf: Callable[[Any], bool]) -> Parts:
    """The values in ``batch`` for which ``is_leaf`` holds, in order."""
    leaves: list[Any] = []

    def place(value: Any) -> Any:
        leaves.append(value)
        return _Place(len(leaves) - 1)

    around = _rebuilt(batch, place, 0, is_leaf)
    return Parts(leaves, around)


def _is_place(value: Any) -> bool:
    return type(value) is _Place


def _rebuilt(
    value: Any,
    replace: Callable[[Any], Any],
    depth: int,
    is_leaf: Callable[[Any], bool] = _is_place,
) -> Any:
    if is_leaf(value):
        return replace(value)
    if depth > _DEEPEST:
        return value

    def inner(item: Any) -> Any:
        return _rebuilt(item, replace, depth + 1, is_leaf)

    if isinstance(value, (str, bytes)):
        return value
    if isinstance(value, Mapping):
        return _like(value, {key: inner(item) for key, item in value.items()})
    if isinstance(value, tuple) and hasattr(value, "_make"):  # a named tuple
        return value._make(inner(item) for item in value)
    if isinstance(value, (list, tuple)):
        return _like(value, [inner(item) for item in value])
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        changed = copy.copy(value)
        for field in dataclasses.fields(value):
            # Works for frozen ones too, and skips __init__, whose checks expect arrays.
            object.__setattr__(changed, field.name, inner(getattr(value, field.name)))
        return changed
    return value


def _like(model: Any, items: Any) -> Any:
    """The items in a container of the model's class, if it can be made from them."""
    if type(items) is type(model):
        return items
    try:
        return type(model)(items)
    except TypeError:  # a defaultdict, or a class with a different constructor
        pass
    if isinstance(model, Mapping):
        changed = copy.copy(model)
        try:
            changed.update(items)  # type: ignore[attr-defined]
        except AttributeError:
            return items
        return changed
    return tuple(items) if isinstance(model, tuple) else items
