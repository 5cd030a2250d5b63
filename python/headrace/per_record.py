# SPDX-License-Identifier: Apache-2.0
"""``batch.per_record("boxes", "labels")``: a batch as one dictionary per record.

How to find a record's part depends on how the field is batched, which the loader knows: an item of
a list, a row of a tensor, a padded row without its padding, or the rows between two offsets. Parts
are views where the framework has views.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np

from headrace.errors import declare, did_you_mean

_NO_ROWS = declare(
    "HR0743",
    "config",
    "field cannot be split into records",
    "per_record() splits fields of the batch into records: those named, or all. A padded or "
    "packed field needs its companion (boxes_lengths, boxes_offsets), which is delivered with it.",
)


class Nested(Protocol):
    """Lists and dictionaries of several fields instead of one."""

    def split(self, value: Any) -> list[Any]:
        """Each record's part."""


class Rows(NamedTuple):
    """How the records of a field are laid out in a batch."""

    how: str = "stack"  # also "list", "pad", "packed", "nested"
    companion: str = ""  # the field with their lengths or offsets
    shape: tuple[int, ...] = ()  # of a record's value, -1 where records differ
    is_companion: bool = False
    form: Nested | None = None  # for lists and dictionaries of fields
    kind: str = ""  # kind of the field: "image", "boxes" and so on
    box_format: str = ""


class Layout(NamedTuple):
    """A batch's fields in order, and how their records are laid out in it."""

    fields: tuple[str, ...]
    rows: tuple[Rows, ...] = ()  # empty: one row per record in each field

    @classmethod
    def of(cls, outputs: Sequence[Mapping[str, Any]]) -> Layout:
        """The layout of the engine's outputs."""
        rows = (
            Rows(
                "list" if output["list"] else output["ragged"] or "stack",
                output["companion"],
                tuple(output["shape"]),
                output["is_companion"],
                kind=output["kind"],
                box_format=output["box_format"],
            )
            for output in outputs
        )
        return cls(tuple(output["name"] for output in outputs), tuple(rows))

    def by_name(self) -> dict[str, Rows]:
        """How the records of each field are laid out in the batch."""
        return dict(zip(self.fields, self.rows or (Rows(),) * len(self.fields), strict=True))


def per_record(layout: Layout, values: Mapping[str, Any], names: Sequence[str]) -> list[Any]:
    """One dictionary per record, with the fields ``names``, or all except companions."""
    rows = layout.by_name()
    for name in names:
        if name not in rows or rows[name].is_companion:
            hint = "it contains the lengths or offsets of another field" if name in rows else ""
            raise _NO_ROWS.error(f"{name!r}", hint=hint or did_you_mean(name, rows))
    whole = [name for name in layout.fields if not rows[name].is_companion and name in values]
    names = names or whole
    for name in names:
        missing = [each for each in (name, rows[name].companion) if each and each not in values]
        if missing:
            raise _NO_ROWS.error(f"{name!r}: {missing[0]!r} is no longer in the batch")
    parts = {name: _parts(values[name], rows[name], values) for name in names}
    return [dict(zip(parts, each, strict=True)) for each in zip(*parts.values(), strict=True)]


def _parts(value: Any, rows: Rows, values: Mapping[str, Any]) -> list[Any]:
    if rows.form is not None:
        return rows.form.split(value)
    if rows.how == "list":
        return list(value)
    if rows.how == "packed":
        before = [slice(None)] * rows.shape.index(-1)  # axes before the packed one
        starts = _numbers(values[rows.companion])
        return [value[tuple([*before, slice(a, b)])] for a, b in pairwise(starts)]
    if rows.how == "stack":
        return list(value)
    lengths = _numbers(values[rows.companion])
    return [own[_part(value, rows, of)] for own, of in zip(value, lengths, strict=True)]


def _part(value: Any, rows: Rows, lengths: Any) -> Any:
    """The index of a record's value without its padding."""
    if not isinstance(lengths, list) and rows.shape[0] < 0:
        return slice(lengths)
    extents = iter(lengths if isinstance(lengths, list) else [lengths])
    own = [slice(next(extents)) if size < 0 else slice(None) for size in rows.shape]
    # Frameworks without strides have an image's axes in memory order: (H, W, C).
    if len(own) == 3 and rows.shape[0] > 0 and value.shape[1] != rows.shape[0] == value.shape[3]:
        own = [*own[1:], own[0]]
    return tuple(own)


def _numbers(value: Any) -> list[Any]:
    """The numbers of any framework's array; on a device this waits for the copy."""
    if not hasattr(value, "tolist"):
        value = value.numpy() if hasattr(value, "numpy") else np.asarray(value)
    numbers: list[Any] = value.tolist()
    return numbers
