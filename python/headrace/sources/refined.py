# SPDX-License-Identifier: Apache-2.0
"""Filters and sorts a source's records, and adds columns: implements methods of ``Source``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from headrace import _core
from headrace.errors import declare
from headrace.sources.columns import records
from headrace.sources.expressions import values_of
from headrace.sources.recipe import Recipe, makes_sources
from headrace.sources.rows import Rows
from headrace.sources.source import Source, refinements

_NO_RECORDS = declare(
    "HR0145",
    "config",
    "invalid selection or extension of records",
    "filter() keeps the records for which its condition is true, which must be at least one. "
    "sort_by() needs a number or text for each record. map() and with_columns() add fields: one "
    "value per record, under names that the source does not have.",
)


@makes_sources
def filtered(src: Source, where: Any) -> Source:
    """``src.filter(where)``."""
    values = _values(src, where, "filter")
    if values.dtype != bool:
        raise _NO_RECORDS.error(
            f"filter() needs True or False for each record (got {values.dtype} values)",
            hint='a condition: "score > 0.5", or a function that returns True or False',
        )
    chosen = np.flatnonzero(values)
    if len(chosen) == 0:
        raise _NO_RECORDS.error(
            f"filter({_shown(where)}) keeps none of {len(src):,} records",
            hint="look at the values in src.column(name)",
        )
    engine = _core.subset(src.engine, chosen)
    return Source(engine, made_of=[src], recipe=Recipe(filtered, {"src": src, "where": where}))


@makes_sources
def sorted_by(src: Source, key: Any, reverse: bool) -> Source:
    """``src.sort_by(key, reverse=reverse)``. Records with equal keys keep their order."""
    values = _values(src, key, "sort_by")
    if values.dtype.kind == "f" and np.isnan(values).any():
        raise _NO_RECORDS.error(
            f"sort_by({_shown(key)}): {int(np.isnan(values).sum()):,} values are not numbers",
            hint='filter them first: src.filter("x == x")',
        )
    try:
        if reverse:  # equal keys keep their order
            order = len(values) - 1 - np.argsort(values[::-1], kind="stable")[::-1]
        else:
            order = np.argsort(values, kind="stable")
    except TypeError as failure:
        raise _NO_RECORDS.error(f"sort_by({_shown(key)}): {failure}") from None
    engine = _core.subset(src.engine, np.ascontiguousarray(order, np.int64))
    call = {"src": src, "key": key, "reverse": reverse}
    return Source(engine, made_of=[src], recipe=Recipe(sorted_by, call))


@makes_sources
def mapped(src: Source, function: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> Source:
    """``src.map(function)``."""
    columns: dict[str, list[Any]] = {}
    for index, row in enumerate(Rows(src)):
        values = _called(function, row, index, "map")
        if not isinstance(values, Mapping) or not values:
            raise _NO_RECORDS.error(
                f"map() needs a dictionary of new fields (got {type(values).__name__} for record "
                f"{index})",
                hint='lambda record: {"length": len(record["text"])}',
            )
        if index and values.keys() != columns.keys():
            raise _NO_RECORDS.error(
                f"map(): record {index} has {sorted(values)}, but record 0 has {sorted(columns)}"
            )
        for name, value in values.items():
            columns.setdefault(name, []).append(value)
    return _extended(src, columns, Recipe(mapped, {"src": src, "function": function}))


@makes_sources
def with_columns(src: Source, columns: Mapping[str, Any]) -> Source:
    """``src.with_columns(**columns)``."""
    return _extended(src, columns, Recipe(with_columns, {"src": src, "columns": columns}))


def _extended(src: Source, columns: Mapping[str, Any], recipe: Recipe) -> Source:
    names = {field.name for field in src.schema}
    if taken := sorted(names & set(columns)):
        raise _NO_RECORDS.error(
            f"the source already has a field {taken[0]!r}", hint="give the new field another name"
        )
    if not columns:
        raise _NO_RECORDS.error("no columns were given")
    more = records(**{name: _column(values) for name, values in columns.items()})
    if len(more) != len(src):
        raise _NO_RECORDS.error(f"columns of {len(more):,} values for {len(src):,} records")
    engine = _core.join(src.engine, more.engine, "position", {}, [])
    return Source(engine, made_of=[src], recipe=recipe)


def _column(values: Any) -> Any:
    """Python numbers as an array; lists of paths and texts unchanged."""
    if isinstance(values, (list, tuple)) and values and not isinstance(values[0], (str, bytes)):
        return np.asarray(values) if not hasattr(values[0], "__fspath__") else list(values)
    return values


def _values(src: Source, given: Any, what: str) -> np.ndarray[Any, Any]:
    """One value per record, from an expression, a function, or an array."""
    if isinstance(given, str):
        return values_of(src, given)
    if callable(given):
        calls = (_called(given, row, index, what) for index, row in enumerate(Rows(src)))
        values = np.array(list(calls))
    else:
        values = np.asarray(given)
    if values.shape == (len(src),):
        return values
    raise _NO_RECORDS.error(
        f"{what}() needs one value for each of {len(src):,} records (got shape {values.shape})",
        hint="an expression of fields as text, a function of the record, or an array",
    )


def _called(function: Any, row: Any, index: int, what: str) -> Any:
    try:
        return function(row)
    except Exception as failure:
        name = getattr(failure, "args", [""])[0] if isinstance(failure, KeyError) else failure
        raise _NO_RECORDS.error(
            f"{what}(): the function raised {type(failure).__name__} for record {index}: {name}"
        ) from failure


def _shown(value: Any) -> str:
    return repr(value) if isinstance(value, str) else getattr(value, "__qualname__", "...")


def arrow_table(src: Source, fields: Any) -> Any:
    """``src.to_arrow(fields)``."""
    import pyarrow as pa

    names = [field.name for field in src.schema if not field.encoded]
    if fields is not None:
        names = [fields] if isinstance(fields, str) else list(fields)
    columns = {name: _arrow_column(pa, src.engine.values(name)) for name in names}
    classes = {"classes": "\n".join(src.classes)} if "label" in columns and src.classes else None
    return pa.table(columns, metadata=classes)


def _arrow_column(pa: Any, values: Any) -> Any:
    if isinstance(values, list):
        plain: list[Any] = [
            value if isinstance(value, (str, bytes)) else np.asarray(value) for value in values
        ]
        if plain and isinstance(plain[0], np.ndarray):
            plain = [value.tolist() if value.ndim != 1 else value for value in plain]
        return pa.array(plain)
    array = np.asarray(values)
    if array.ndim == 1:
        return pa.array(array)
    column = pa.array(array.reshape(-1))
    for extent in reversed(array.shape[1:]):
        column = pa.FixedSizeListArray.from_arrays(column, int(extent))
    return column


refinements.update(
    filtered=filtered,
    sorted_by=sorted_by,
    mapped=mapped,
    with_columns=with_columns,
    arrow_table=arrow_table,
)
