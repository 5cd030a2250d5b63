# SPDX-License-Identifier: Apache-2.0
"""Parquet and Arrow files, and datasets of Hugging Face, through pyarrow.

Columns become columns of the engine, which reads them without Python: variable-length values stay
in Arrow's memory. Row groups of Parquet files that do not fit into ``memory`` become columns when
one of their records is read.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from headrace import _core
from headrace.sources.arrow_files.by_position import FilesByPosition
from headrace.sources.arrow_files.columns import (
    TABLE,
    Column,
    Place,
    chosen_columns,
    pyarrow,
    reading,
    source_of_table,
    with_agreed_classes,
)
from headrace.sources.arrow_files.on_demand import OnDemand
from headrace.sources.arrow_files.parquet_files import ParquetFiles
from headrace.sources.arrow_files.row_groups import RowGroups
from headrace.sources.fingerprint import fingerprint_of


def open_files(format: str, files: Sequence[str], arguments: Mapping[str, Any]) -> _core.Source:
    """Called by the engine for ``format="parquet"`` and ``"arrow"``."""
    title = f"{format} {files[0]}" + (f" and {len(files) - 1} more" if len(files) > 1 else "")
    place = Place(os.path.dirname(files[0]) or ".", bool(arguments["allow_outside"]))
    with reading(files[0]):  # the inner error names the file
        if format == "arrow":
            return _open_arrow(files, arguments, place, title)
        return _open_parquet(files, arguments, place, title)


def source_of_arrow(table: Any, fields: Sequence[str] | None = None) -> _core.Source:
    """A ``pyarrow.Table`` in memory."""
    with reading("table"):
        return source_of_table(table, chosen_columns(table.schema, fields), Place(), "table")


def source_of_dataset(dataset: Any, fields: Sequence[str] | None = None) -> _core.Source:
    """A ``datasets.Dataset``, read directly from its Arrow table."""
    title = f"dataset {type(dataset).__name__}"
    table = dataset.data.table
    with reading(title):
        source = source_of_table(table, chosen_columns(table.schema, fields), Place(), title)
    chosen = getattr(dataset, "_indices", None)
    if chosen is None:
        return source
    return _core.subset(source, np.asarray(chosen.column(0), np.int64))


def _chosen(
    schemas: Sequence[Any], files: Sequence[str], arguments: Mapping[str, Any]
) -> list[Column]:
    """The columns of all files, which must be the same."""
    for schema, path in zip(schemas, files, strict=True):
        if not schema.equals(schemas[0]):
            raise TABLE.error(
                f"the columns of {path} differ from those of {files[0]}",
                hint="files that are opened together must have the same columns",
            )
    return with_agreed_classes(chosen_columns(schemas[0], arguments.get("fields")), schemas, files)


def _open_arrow(
    files: Sequence[str], arguments: Mapping[str, Any], place: Place, title: str
) -> _core.Source:
    buffers = FilesByPosition(files)
    tables = buffers.tables()
    chosen = _chosen([table.schema for table in tables], files, arguments)
    return source_of_table(pyarrow().concat_tables(tables), chosen, place, title, buffers)


def _open_parquet(
    files: Sequence[str], arguments: Mapping[str, Any], place: Place, title: str
) -> _core.Source:
    opened = ParquetFiles(files)
    chosen = _chosen(opened.schemas, files, arguments)
    wanted = list(dict.fromkeys(column.column for column in chosen))
    groups = RowGroups(opened, arguments["memory"])
    if groups.fit_into_memory(wanted):
        return source_of_table(groups.table(wanted), chosen, place, title)
    reader = OnDemand(groups, chosen, place)
    text = repr(
        (groups.marks(wanted), [tuple(column[:3]) for column in chosen], str(opened.schemas[0]))
    )
    classes = next((column.classes for column in chosen if column.classes), [])
    return reader.source(classes, fingerprint_of(text), title)
