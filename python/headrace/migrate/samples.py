# SPDX-License-Identifier: Apache-2.0
"""Converts fields of a batch to the samples that the DataLoader's dataset would have returned."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from headrace.migrate.nesting import Node, node_of
from headrace.migrate.originals import described, value_from_pixels
from headrace.migrate.rows import Lent
from headrace.per_record import Layout, per_record

# A column of the batch, split into records, in the sample's form.
Column = Callable[["Columns"], list[Any]]


class NoSamples(Exception):
    """Fields that cannot form samples; the message says why."""


class Columns:
    """A batch as torch tensors and lists by field. copies: rows are separate tensors."""

    def __init__(self, layout: Layout, values: Mapping[str, Any], copies: bool = False) -> None:
        self._values = values
        self._layout = layout
        self._copies = copies
        self._rows = layout.by_name()

    def column(self, name: str) -> list[Any]:
        """Each record's part of a field."""
        rows = self._rows[name]
        if rows.how != "stack":
            if rows.how == "list" and rows.form is None:
                parts = list(self._values[name])
            else:
                parts = [part[name] for part in per_record(self._layout, self._values, [name])]
            return [p.clone() if hasattr(p, "clone") else p for p in parts if self._copies] or parts
        value = self._values[name]
        if not hasattr(value, "unbind"):
            return list(value)
        return list(value.clone().unbind(0)) if self._copies else self._rows_of(value)

    def _rows_of(self, batch: Any) -> list[Any]:
        return list(batch.unbind(0))

    def numbers(self, name: str) -> list[Any]:
        """The same as Python numbers."""
        value = self._values[name]
        if hasattr(value, "tolist"):
            return list(value.tolist())
        return [part.tolist() if hasattr(part, "tolist") else part for part in value]


class Fields(Columns):
    """For a user's function, with the batch's own rows as ``lent``."""

    def __init__(self, layout: Layout, values: Mapping[str, Any], copies: bool = False) -> None:
        super().__init__(layout, values, copies)
        self.lent = Lent()

    def _rows_of(self, batch: Any) -> list[Any]:
        return self.lent.rows_of(batch)


class Samples:
    """How to make samples like ``sample``, one of the dataset's, from the fields ``names``. Fields
    are matched with the sample's values by nesting (``ours``), by name, or by order.
    """

    def __init__(self, sample: Any, names: Sequence[str], ours: Node | None = None) -> None:
        node = node_of(sample)
        own = node.names
        if len(own) != len(names):
            raise NoSamples(
                f"a record has the values {', '.join(own)}, but the loader has the fields "
                f"{', '.join(names)}"
            )
        if ours is not None and set(ours.names) == set(names):
            self._field = dict(node.paired(ours)) or dict(zip(own, ours.names, strict=True))
        else:
            fields = own if set(own) == set(names) else names
            self._field = dict(zip(own, fields, strict=True))
        self._image = self._field[next((n for n in own if n.startswith("image")), own[0])]
        self._build = self._builder(node, sample)

    def __call__(self, fields: Columns) -> list[Any]:
        return self._build(fields)

    def _builder(self, node: Node, value: Any) -> Column:
        if node.how == "leaf":
            return self._leaf(self._field[node.name], value)
        kind, name = type(value), self._field.get(node.name, "")
        if node.how == "numbers":
            return lambda fields: [kind(row) for row in fields.numbers(name)]
        values = [value[key] for key in node.keys] if node.how == "dict" else list(value)
        parts = [self._builder(part, each) for part, each in zip(node.parts, values, strict=True)]
        if node.how == "dict":
            keys = node.keys
            return lambda fields: [
                dict(zip(keys, row, strict=True))
                for row in zip(*(part(fields) for part in parts), strict=True)
            ]
        make: Callable[[Any], Any] = getattr(kind, "_make", kind)
        return lambda fields: [
            row if kind is tuple else make(row)
            for row in zip(*(part(fields) for part in parts), strict=True)
        ]

    def _leaf(self, name: str, value: Any) -> Column:
        kind = type(value)
        if kind in (int, float, bool) or isinstance(value, np.generic):
            return lambda fields: [kind(number) for number in fields.numbers(name)]
        if isinstance(value, (str, bytes)):
            return lambda fields: fields.column(name)
        if isinstance(value, np.ndarray):
            return lambda fields: [row.numpy() for row in fields.column(name)]
        if hasattr(value, "getbands"):
            return lambda fields: [value_from_pixels(r.numpy(), "pil") for r in fields.column(name)]
        if kind.__module__.startswith("torchvision.tv_tensors"):
            return self._tv_tensor(name, value)
        if hasattr(value, "detach"):
            return lambda fields: fields.column(name)
        raise NoSamples(f"{name} of a record is {described(value)}")

    def _tv_tensor(self, name: str, value: Any) -> Column:
        kind, image = type(value), self._image
        if not hasattr(value, "canvas_size"):
            return lambda fields: [kind(row) for row in fields.column(name)]

        def boxes(fields: Columns) -> list[Any]:
            rows = zip(fields.column(name), fields.column(image), strict=True)
            more = {"format": value.format} if hasattr(value, "format") else {}
            return [kind(row, canvas_size=tuple(of.shape[-2:]), **more) for row, of in rows]

        return boxes
