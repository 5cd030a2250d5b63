# SPDX-License-Identifier: Apache-2.0
"""Records that nest: ``[[query, key], label]``, ``(image, {"boxes": boxes, "labels": labels})``.

The engine has flat fields. A ``Node`` is the structure of a record: it maps values to fields, and
reassembles the fields of a batch like torch's default_collate: two views of an image become a list
of two batches, a dictionary becomes a dictionary of batches.
"""

from __future__ import annotations

import dataclasses
import functools
import numbers
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from headrace.sources.pictures import is_picture
from headrace.sources.values import is_integer


class OtherForm(Exception):
    """Raised for a record that is nested differently from the first one."""


@dataclasses.dataclass(frozen=True)
class Node:
    """One value of a record. ``how``: "leaf", "numbers" (a list that is one array), "tuple" or
    "dict".

    name: the field of a leaf; for containers, the name of their entry in the batch.
    base: how a leaf in a tuple is interpreted (image, label, data); the record's first value is
    never a label.
    """

    how: str
    name: str
    base: str = ""
    is_first: bool = False
    keys: tuple[Any, ...] = ()
    parts: tuple[Node, ...] = ()

    @property
    def is_leaf(self) -> bool:
        return self.how in ("leaf", "numbers")

    @property
    def names(self) -> tuple[str, ...]:
        """Its fields, in the order of the record."""
        return (self.name,) if self.is_leaf else tuple(n for part in self.parts for n in part.names)

    @property
    def is_flat(self) -> bool:
        """Whether a batch of flat fields already has this form."""
        return not self.is_leaf and all(part.how == "leaf" for part in self.parts)

    def paired(self, other: Node) -> list[tuple[str, str]]:
        """Pairs each of its fields with the one at the same position in another form, or with the
        same dictionary keys; empty if the other form is nested differently."""
        if self.is_leaf or other.is_leaf:
            return [(self.name, other.name)] if self.is_leaf and other.is_leaf else []
        mine = dict(zip(self.keys or range(len(self.parts)), self.parts, strict=True))
        theirs = dict(zip(other.keys or range(len(other.parts)), other.parts, strict=True))
        if self.how != other.how or set(mine) != set(theirs):
            return []
        inner = [part.paired(theirs[key]) for key, part in mine.items()]
        return [pair for pairs in inner for pair in pairs] if all(inner) else []

    def __getstate__(self) -> dict[str, Any]:
        """A copy for other processes, which may not have the classes of the values."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    @functools.cached_property
    def _leaf_nodes(self) -> tuple[Node, ...]:
        return (self,) if self.is_leaf else tuple(n for p in self.parts for n in p._leaf_nodes)

    @functools.cached_property
    def _based(self) -> list[tuple[int, Node]]:
        """Leaves whose values are inspected, with their positions."""
        return [(place, node) for place, node in enumerate(self._leaf_nodes) if node.base]

    @functools.cached_property
    def _known(self) -> dict[tuple[type, ...], tuple[str, ...]]:
        """Names of the fields by the types of a record's values, if these match the leaves."""
        return {}

    def values(self, record: Any) -> dict[str, Any]:
        """The values of a record by field. OtherForm if it is nested differently."""
        flat: list[Any] = []
        try:
            self._leaves(record, OtherForm, flat)
        except OtherForm:  # or its dictionaries have a different order
            return dict(self._values(record))
        kinds = tuple(map(type, flat))
        if (names := self._known.get(kinds)) is None:
            values = dict(self._values(record))
            self._known[kinds] = tuple(values)
            return values
        for place, node in self._based:
            if _base(flat[place], node.is_first) != node.base:
                raise OtherForm
        return dict(zip(names, flat, strict=True))

    def _values(self, record: Any) -> Iterator[tuple[str, Any]]:
        if not isinstance(record, _TYPES[self.how]) or (
            self.how == "leaf" and isinstance(record, _CONTAINERS)
        ):
            raise OtherForm
        if self.is_leaf:
            if self.base and _base(record, self.is_first) != self.base:
                raise OtherForm
            yield self.name, record
            return
        if len(record) != len(self.parts):
            raise OtherForm
        try:
            inner = [record[key] for key in self.keys] if self.how == "dict" else list(record)
        except KeyError:
            raise OtherForm from None
        for part, value in zip(self.parts, inner, strict=True):
            yield from part._values(value)

    def leaves(self, record: Any, other: Callable[[], BaseException] = OtherForm) -> list[Any]:
        """The values alone, not inspected; ``other()`` is raised for a different form."""
        out: list[Any] = []
        self._leaves(record, other, out)
        return out

    def _leaves(self, value: Any, other: Callable[[], BaseException], out: list[Any]) -> None:
        if self.is_leaf:
            out.append(value)
            return
        if self.how == "dict":
            if not issubclass(type(value), dict) or tuple(value) != self.keys:
                raise other()
            value = value.values()
        elif not issubclass(type(value), (tuple, list)) or len(value) != len(self.parts):
            raise other()
        for part, each in zip(self.parts, value, strict=True):
            part._leaves(each, other, out)

    def rebuilt(self, fields: Mapping[str, Any]) -> Any:
        """The batch's value in its position. REQUIRES: all of its fields exist."""
        if self.how == "leaf":
            return fields[self.name]
        if self.how == "numbers":
            return columns_of(fields[self.name])
        inner = [part.rebuilt(fields) for part in self.parts]
        return dict(zip(self.keys, inner, strict=True)) if self.how == "dict" else inner

    def split(self, value: Any) -> list[Any]:
        """A result of ``rebuilt`` as a list of each record's value in its position."""
        if self.how == "leaf" or (self.how == "numbers" and not isinstance(value, list)):
            return list(value)
        if self.how == "numbers":
            return [list(row) for row in zip(*value, strict=True)]
        inner = value.values() if self.how == "dict" else value
        rows = zip(*(p.split(v) for p, v in zip(self.parts, inner, strict=True)), strict=True)
        return [dict(zip(self.keys, row, strict=True)) if self.keys else list(row) for row in rows]


def node_of(record: Any) -> Node:
    """The form of a record, with a name for each of its values.

    Values of dictionaries are named by their keys, those of tuples image (or data), label and so
    on; repeated names get a number.
    """
    return _node(record, set(), "", True, top=True)


def columns_of(values: Any) -> Any:
    """A list with one column per number, as default_collate makes it from lists of numbers."""
    if len(getattr(values, "shape", ())) != 2 or not hasattr(values, "__getitem__"):
        return values
    return [values[:, k] for k in range(values.shape[1])]


_CONTAINERS = (Mapping, tuple, list)
_TYPES: dict[str, Any] = {"leaf": object, "numbers": (tuple, list), "tuple": (tuple, list)}
_TYPES["dict"] = Mapping


def _node(value: Any, taken: set[str], name: str, first: bool, top: bool = False) -> Node:
    """name: from its key; empty in a tuple. first: whether it is the record's first value."""
    if not isinstance(value, _CONTAINERS) or not value or (not top and _are_numbers(value)):
        base = "" if name else _base(value, first)
        how = "numbers" if isinstance(value, (tuple, list)) else "leaf"
        return Node(how, _free(name or base, taken), base, first)
    if isinstance(value, Mapping):
        own = "" if first else _free(name or "target", taken)
        pairs = value.items()
        parts = [_node(each, taken, str(key), False) for key, each in pairs]
        return Node("dict", own or parts[0].name, keys=tuple(value), parts=tuple(parts))
    names = getattr(value, "_fields", (name,) * len(value))
    parts = []
    for each, own in zip(value, names, strict=True):
        parts.append(_node(each, taken, own, first and not parts))
    return Node("tuple", parts[0].name, parts=tuple(parts))


def _are_numbers(value: Any) -> bool:
    first, *others = {type(each) for each in value}
    return not isinstance(value, Mapping) and not others and issubclass(first, numbers.Number)


def _base(value: Any, first: bool = False) -> str:
    if is_picture(value):
        return "image"
    return "label" if is_integer(value) and not first else "data"


def _free(name: str, taken: set[str]) -> str:
    count, free = 1, name
    while free in taken:
        count += 1
        free = f"{name}{count}"
    taken.add(free)
    return free
