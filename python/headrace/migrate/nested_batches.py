# SPDX-License-Identifier: Apache-2.0
"""Batches nested like those of torch's default_collate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from headrace.batch import batch_class
from headrace.loader.form import Form
from headrace.migrate.nesting import Node
from headrace.per_record import Layout, Rows


class NestedForm(Form):
    """A form whose batches nest like ``node``, if all of its fields are delivered."""

    def __init__(self, form: Form, node: Node, transposed: bool) -> None:
        self.__dict__.update(vars(form))
        self._node = node
        self._transposed = transposed

    def structure(self, layout: Layout, values: Iterable[Any]) -> Any:
        fields = dict(zip(layout.fields, values, strict=True))
        if not self._suits(layout):
            return super().structure(layout, fields.values())
        if self._node.is_leaf and not self.as_dict:
            return self._node.rebuilt(fields)
        entries = self._entries(fields)
        return (
            entries if self.as_dict else batch_class(self._layout(layout))._make(entries.values())
        )

    def inspected(
        self, layout: Layout, values: Mapping[str, Any], place: tuple[int, int] = (0, 0)
    ) -> Any:
        if not self._suits(layout):
            return super().inspected(layout, values, place)
        converted = {name: self.value(name, value) for name, value in values.items()}
        fields = {name: converted.pop(name) for name in layout.fields}
        batch = batch_class(self._layout(layout), inspected=True)._make(
            self._entries(fields).values()
        )
        batch.__dict__.update(converted)
        return batch

    def _suits(self, layout: Layout) -> bool:
        """Whether all fields exist, and nested ones have one row or list item per record."""
        rows = layout.by_name()
        nested = [name for part in self._tops().values() if not part.is_leaf for name in part.names]
        names = self._node.names
        return all(name in rows for name in names) and all(not rows[n].companion for n in nested)

    def _tops(self) -> dict[str, Node]:
        """The names of a batch's entries."""
        node = self._node
        if node.is_leaf:
            return {node.name: node}
        names = map(str, node.keys) if node.how == "dict" else (part.name for part in node.parts)
        return dict(zip(names, node.parts, strict=True))

    def _entries(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        entries = {}
        for name, part in self._tops().items():
            entries[name] = part.rebuilt(fields)
            if self._transposed and not part.is_leaf:
                entries[name] = tuple(part.split(entries[name]))
        rest = {name: fields[name] for name in fields if name not in self._node.names}
        return {**entries, **rest}

    def _layout(self, layout: Layout) -> Layout:
        """Layout of the batch, whose entries may have several fields."""
        rows = layout.by_name()
        nested = "list" if self._transposed else "nested"
        tops = {
            name: rows[part.name]
            if part.how == "leaf"
            else Rows(nested, form=None if self._transposed else part)
            for name, part in self._tops().items()
        }
        rest = {name: rows[name] for name in rows if name not in self._node.names}
        return Layout((*tops, *rest), (*tops.values(), *rest.values()))
