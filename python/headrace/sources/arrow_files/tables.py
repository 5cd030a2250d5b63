# SPDX-License-Identifier: Apache-2.0
"""Parquet and Arrow files, and datasets of Hugging Face, through pyarrow.

Columns become columns of the engine, which reads them without Python: values of any length lie
where Arrow keeps them. Only Parquet files that do not fit into ``memory`` are read by Python, row
group by row group.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from typing import Any

from headrace import _core
from headrace.sources.arrow_files.by_position import FilesByPosition
from headrace.sources.arrow_files.columns import (
    TABLE,
    Place,
    chosen_columns,
    pyarrow,
    source_of_table,
    unreadable,
)
from headrace.sources.arrow_files.row_groups import OnDemand, RowGroups


def open_files(format: str, files: Sequence[str], arguments: Mapping[str, Any]) -> _core.Source:
    """What the engine calls for ``format="parquet"`` and ``"arrow"``."""
    title = f"{format} {files[0]}" + (f" and {len(files) - 1} more" if len(files) > 1 else "")
    place = Place(os.path.dirname(files[0]) or ".", bool(arguments["outside"]))
    if format == "arrow":
        buffers = FilesByPosition()
        table = _concatenated([_arrow_table(buffers, path) for path in files], files)
        return source_of_table(table, arguments.get("fields"), place, title, buffers)
    return _open_parquet(files, arguments, place, title)


def source_of_dataset(dataset: Any, fields: Sequence[str] | None = None) -> _core.Source:
    """A ``datasets.Dataset``, read from its Arrow table and not by its own code."""
    title = f"dataset {type(dataset).__name__}"
    source = source_of_table(dataset.data.table, fields, Place(), title)
    chosen = getattr(dataset, "_indices", None)
    if chosen is None:
        return source
    return _core.subset(source, chosen.column(0).to_pylist())


# --- Tables ---------------------------------------------------------------------------------------


def _arrow_table(buffers: FilesByPosition, path: str) -> Any:
    try:
        return buffers.table(path)
    except (pyarrow().ArrowException, OSError) as error:
        raise unreadable(path, error) from error


def _concatenated(tables: list[Any], files: Sequence[str]) -> Any:
    first = tables[0].schema
    for table, path in zip(tables, files, strict=True):
        if not table.schema.equals(first):
            raise TABLE.error(
                f"the columns of {path} are not those of {files[0]}",
                hint="files that are opened as one have the same columns",
            )
    return pyarrow().concat_tables(tables)


def _open_parquet(
    files: Sequence[str], arguments: Mapping[str, Any], place: Place, title: str
) -> _core.Source:
    pa = pyarrow()
    pq = pyarrow("pyarrow.parquet")

    opened = []
    for path in files:
        try:
            opened.append(pq.ParquetFile(path))
        except (pa.ArrowException, OSError) as error:
            raise unreadable(path, error) from error
    schema = opened[0].schema_arrow
    for file, path in zip(opened, files, strict=True):
        if not file.schema_arrow.equals(schema):
            raise TABLE.error(
                f"the columns of {path} are not those of {files[0]}",
                hint="files that are opened as one have the same columns",
            )
    chosen = chosen_columns(schema, arguments.get("fields"))
    wanted = list(dict.fromkeys(column.column for column in chosen))
    groups = RowGroups(opened, files, arguments["memory"])
    if groups.bytes_of(wanted) <= arguments["memory"]:
        table = pa.concat_tables(
            [groups.read(i, wanted) for i in range(len(groups))]
            or [schema.empty_table().select(wanted)]
        )
        return source_of_table(
            table.replace_schema_metadata(schema.metadata), arguments.get("fields"), place, title
        )
    reader = OnDemand(groups, chosen, place)
    text = repr((groups.shape(), [tuple(column) for column in chosen], str(schema)))
    print_ = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
    rows = groups.starts[-1]
    classes = next((column.classes for column in chosen if column.classes), [])
    return _core.python_source(
        reader, rows, reader.fields, classes, print_, f"{title} ({rows:,} records, on demand)"
    )
