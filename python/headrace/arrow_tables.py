# SPDX-License-Identifier: Apache-2.0
"""Parquet and Arrow files, and datasets of Hugging Face, through pyarrow.

Columns become columns of the engine, which reads them without Python: values of any length lie
where Arrow keeps them. Only Parquet files that do not fit into ``memory`` are read by Python, row
group by row group.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from headrace import _core
from headrace.errors import declare, did_you_mean

_TABLE = declare(
    "HR0427",
    "unsupported",
    "table that cannot be opened",
    "Parquet and Arrow files and datasets of Hugging Face are read by pyarrow (`pip install "
    "pyarrow`). Fields are columns of integers, floats, booleans, strings, bytes, pictures (bytes, "
    "or structs of bytes and path), and lists of numbers. Columns of other types are left out with "
    "fields=, or converted once with the library that wrote them.",
)

_MEANINGS = {
    "image": ("image", "images", "img"),
    "mask": ("mask", "masks"),
    "label": ("label", "labels", "target", "targets"),
}
_GROUPS_HELD = 4  # decoded row groups of a Parquet file that is read on demand


def open_files(format: str, files: Sequence[str], arguments: Mapping[str, Any]) -> _core.Source:
    """What the engine calls for ``format="parquet"`` and ``"arrow"``."""
    title = f"{format} {files[0]}" + (f" and {len(files) - 1} more" if len(files) > 1 else "")
    folder = os.path.dirname(files[0])
    if format == "arrow":
        table = _concatenated([_arrow_table(path) for path in files], files)
        return _source_of_table(table, arguments.get("fields"), folder, title)
    return _open_parquet(files, arguments, folder, title)


def source_of_dataset(dataset: Any, fields: Sequence[str] | None = None) -> _core.Source:
    """A ``datasets.Dataset``, read from its Arrow table and not by its own code."""
    title = f"dataset {type(dataset).__name__}"
    source = _source_of_table(dataset.data.table, fields, "", title)
    chosen = getattr(dataset, "_indices", None)
    if chosen is None:
        return source
    return _core.subset(source, chosen.column(0).to_pylist())


# --- Tables ---------------------------------------------------------------------------------------


def _pyarrow(module: str = "pyarrow") -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise _TABLE.error(f"pyarrow is missing: {error}", hint="pip install pyarrow") from error


def _arrow_table(path: str) -> Any:
    pa = _pyarrow()
    try:
        mapped = pa.memory_map(path)
        try:
            table = pa.ipc.open_file(mapped).read_all()
        except pa.ArrowInvalid:
            mapped.seek(0)
            table = pa.ipc.open_stream(mapped).read_all()
        table.validate()
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(path, error) from error
    return table


def _unreadable(path: str, error: Exception) -> Exception:
    return _TABLE.error(
        f"pyarrow cannot read {path}: {error}", hint="copy the file again, or write it again"
    )


def _concatenated(tables: list[Any], files: Sequence[str]) -> Any:
    first = tables[0].schema
    for table, path in zip(tables, files, strict=True):
        if not table.schema.equals(first):
            raise _TABLE.error(
                f"the columns of {path} are not those of {files[0]}",
                hint="files that are opened as one have the same columns",
            )
    return _pyarrow().concat_tables(tables)


class _Column(NamedTuple):
    column: str  # in the table
    name: str  # of the field
    classes: list[str]


def _chosen(schema: Any, fields: Sequence[str] | None) -> list[_Column]:
    names = list(schema.names)
    features = _features(schema)
    chosen: list[_Column] = []
    for text in names if fields is None else fields:
        column, name = text, ""
        if text not in names and "=" in text:
            name, column = text.split("=", 1)
        if column not in names:
            raise _TABLE.error(f"there is no column {column!r}", hint=did_you_mean(column, names))
        taken = {other.name for other in chosen}
        if not name:
            name = next((m for m, words in _MEANINGS.items() if column in words), column)
            name = _word(column if name in taken else name)
        classes = features.get(column, {}).get("names") or []
        chosen.append(_Column(column, name, [str(each) for each in classes]))
    return chosen


def _word(text: str) -> str:
    word = "".join(c if c.isalnum() or c == "_" else "_" for c in text)
    word = word if word[:1].isidentifier() else "_" + word
    return word + "_" if word in ("id", "key", "valid") else word


def _features(schema: Any) -> dict[str, Any]:
    """Of Hugging Face, by column: names of classes and the like."""
    try:
        stored = json.loads((schema.metadata or {}).get(b"huggingface", b"{}"))
        features = stored["info"]["features"]
        return {name: each for name, each in features.items() if isinstance(each, dict)}
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}


# --- Columns in memory ----------------------------------------------------------------------------


def _source_of_table(
    table: Any, fields: Sequence[str] | None, folder: str, title: str
) -> _core.Source:
    columns = _core.ColumnList()
    for column in _chosen(table.schema, fields):
        _add(columns, column, table.column(column.column), folder)
    return columns.source(title)


def _add(columns: _core.ColumnList, column: _Column, values: Any, folder: str) -> None:
    pa = _pyarrow()
    values = _plain(values, column)
    kind = values.type
    if pa.types.is_struct(kind):
        _add_struct(columns, column, values, folder)
    elif _is_text(kind):
        if column.name == "label":
            _no_nulls(values, column)
            columns.add_texts(column.name, values.to_pylist())
        else:
            _add_blobs(columns, column, values, "text")
    elif _is_binary(kind):
        _add_blobs(columns, column, values, _kind_of_bytes(values, column))
    elif _is_list(kind):
        _add_vectors(columns, column, values)
    else:
        array = _numbers(values, column)
        columns.add_array(column.name, array, array, column.classes)


def _plain(values: Any, column: _Column) -> Any:
    """Without dictionaries, extension types and views."""
    pa = _pyarrow()
    if isinstance(values.type, pa.BaseExtensionType):
        chunks = [chunk.storage for chunk in values.chunks]
        values = pa.chunked_array(chunks, values.type.storage_type)
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if str(values.type) == "string_view":
        values = values.cast(pa.large_string())
    if str(values.type) == "binary_view":
        values = values.cast(pa.large_binary())
    if pa.types.is_fixed_size_binary(values.type):
        values = values.cast(pa.binary())
    return values


def _is_text(kind: Any) -> bool:
    pa = _pyarrow()
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_binary(kind: Any) -> bool:
    pa = _pyarrow()
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _is_list(kind: Any) -> bool:
    pa = _pyarrow()
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _refused(column: _Column, what: str, hint: str = "") -> Exception:
    return _TABLE.error(
        f"column {column.column!r} {what}", hint=hint or "leave it out with fields=[...]"
    )


def _no_nulls(values: Any, column: _Column) -> None:
    if values.null_count:
        raise _refused(
            column,
            f"has no value (null) in {values.null_count:,} of {len(values):,} rows",
            "filter such rows out, or fill them in",
        )


def _numbers(values: Any, column: _Column) -> np.ndarray[Any, Any]:
    """Scalars and lists of fixed size: one array whose first axis is the row."""
    pa = _pyarrow()
    count, shape = len(values), []
    while pa.types.is_fixed_size_list(values.type):
        _no_nulls(values, column)
        shape.append(values.type.list_size)
        chunks = [chunk.flatten() for chunk in values.chunks]
        values = pa.chunked_array(chunks, values.type.value_type)
    kind = values.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        raise _refused(column, f"is of type {kind}")
    if not pa.types.is_floating(kind) or shape:
        _no_nulls(values, column)
    array = values.to_numpy()
    if pa.types.is_integer(kind) and not shape:
        if pa.types.is_uint64(kind) and count and int(array.max()) >= 1 << 63:
            raise _refused(column, "has numbers that do not fit into int64")
        array = array.astype(np.int64)
    return np.ascontiguousarray(array).reshape([count, *shape])


def _part(chunk: Any, data: Any, data_bytes: int) -> tuple[int, int, int, bool, int, int, int]:
    """Where a chunk's values lie, as ColumnList.add_blobs takes it."""
    valid, offsets = chunk.buffers()[:2]
    wide = str(chunk.type).startswith("large")
    return (
        data.address if data is not None else 0,
        data_bytes,
        offsets.address + chunk.offset * (8 if wide else 4) if offsets is not None else 0,
        wide,
        len(chunk),
        valid.address if valid is not None else 0,
        chunk.offset,
    )


def _add_blobs(columns: _core.ColumnList, column: _Column, values: Any, kind: str) -> None:
    parts = []
    for chunk in values.chunks:
        data = chunk.buffers()[2]
        if len(chunk):
            parts.append(_part(chunk, data, data.size if data is not None else 0))
    columns.add_blobs(column.name, kind, _core.DType.uint8, parts, values)


def _add_vectors(columns: _core.ColumnList, column: _Column, values: Any) -> None:
    pa = _pyarrow()
    kind = values.type.value_type
    name = "float16" if pa.types.is_float16(kind) else str(kind).replace("double", "float64")
    name = {"float": "float32", "halffloat": "float16"}.get(name, name)
    numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    if not numeric or name not in _core.DType.__members__:
        raise _refused(column, f"is a list of {kind}")
    dtype = _core.DType.__members__[name]
    parts = []
    for chunk in values.chunks:
        numbers = chunk.values
        if numbers.null_count:
            raise _refused(column, "has lists with nulls in them")
        data = numbers.buffers()[1]
        item = kind.bit_width // 8
        if not len(chunk):
            continue
        part = _part(chunk, data, len(numbers) * item)
        parts.append((part[0] + numbers.offset * item, *part[1:]))
    columns.add_blobs(column.name, "tensor", dtype, parts, values)


def _struct_parts(values: Any, column: _Column) -> tuple[Any, Any]:
    """The columns of a picture: its bytes, and its path, either of which may be missing."""
    pa = _pyarrow()
    names = [values.type.field(i).name for i in range(values.type.num_fields)]
    if "bytes" not in names:
        raise _refused(column, f"is a structure of {', '.join(names)}")
    flat = [chunk.flatten() for chunk in values.chunks]

    def member(name: str) -> Any:
        if name not in names:
            return None
        kind = values.type.field(name).type
        return pa.chunked_array([chunk[names.index(name)] for chunk in flat], kind)

    return member("bytes"), member("path")


def _add_struct(columns: _core.ColumnList, column: _Column, values: Any, folder: str) -> None:
    data, path = _struct_parts(values, column)
    if path is not None and len(values) and data.null_count == len(data):
        _no_nulls(path, column)
        paths = [os.path.join(folder, each) for each in path.to_pylist()]
        columns.add_paths(column.name, paths)
        return
    data = _plain(data, column)
    if not _is_binary(data.type):
        raise _refused(column, f"holds its bytes as {data.type}")
    _add_blobs(columns, column, data, _kind_of_bytes(data, column))


def _kind_of_bytes(values: Any, column: _Column) -> str:
    """Pictures, if one of the first values that are there can be decoded; else bytes."""
    for value in values.slice(0, 100).drop_null()[:4]:
        try:
            _core.decode(value.as_py())
        except Exception:
            continue
        return "mask" if column.name == "mask" else "image"
    return "bytes"


# --- Parquet --------------------------------------------------------------------------------------


def _open_parquet(
    files: Sequence[str], arguments: Mapping[str, Any], folder: str, title: str
) -> _core.Source:
    pa = _pyarrow()
    pq = _pyarrow("pyarrow.parquet")

    opened = []
    for path in files:
        try:
            opened.append(pq.ParquetFile(path))
        except (pa.ArrowException, OSError) as error:
            raise _unreadable(path, error) from error
    schema = opened[0].schema_arrow
    for file, path in zip(opened, files, strict=True):
        if not file.schema_arrow.equals(schema):
            raise _TABLE.error(
                f"the columns of {path} are not those of {files[0]}",
                hint="files that are opened as one have the same columns",
            )
    chosen = _chosen(schema, arguments.get("fields"))
    wanted = list(dict.fromkeys(column.column for column in chosen))
    groups = _RowGroups(opened, files)
    if groups.bytes_of(wanted) <= arguments["memory"]:
        table = pa.concat_tables(
            [groups.read(i, wanted) for i in range(len(groups))]
            or [schema.empty_table().select(wanted)]
        )
        return _source_of_table(
            table.replace_schema_metadata(schema.metadata), arguments.get("fields"), folder, title
        )
    reader = _OnDemand(groups, chosen, folder)
    text = repr((groups.shape(), [tuple(column) for column in chosen], str(schema)))
    print_ = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
    rows = groups.starts[-1]
    classes = next((column.classes for column in chosen if column.classes), [])
    return _core.host_source(
        reader, rows, reader.fields, classes, print_, f"{title} ({rows:,} records, on demand)"
    )


class _RowGroups:
    """The row groups of all files, one behind the other."""

    def __init__(self, opened: Sequence[Any], files: Sequence[str]) -> None:
        self.places = [(f, g) for f, file in enumerate(opened) for g in range(file.num_row_groups)]
        self.opened, self.files = opened, files
        self.starts = [0]
        for f, g in self.places:
            self.starts.append(self.starts[-1] + opened[f].metadata.row_group(g).num_rows)

    def __len__(self) -> int:
        return len(self.places)

    def bytes_of(self, columns: Sequence[str]) -> int:
        total = 0
        for f, g in self.places:
            group = self.opened[f].metadata.row_group(g)
            for i in range(group.num_columns):
                chunk = group.column(i)
                if chunk.path_in_schema.split(".")[0] in columns:
                    total += chunk.total_uncompressed_size
        return total

    def shape(self) -> list[tuple[int, int]]:
        """What tells one set of files from another."""
        groups = [self.opened[f].metadata.row_group(g) for f, g in self.places]
        return [(group.num_rows, group.total_byte_size) for group in groups]

    def read(self, group: int, columns: Sequence[str]) -> Any:
        f, g = self.places[group]
        try:
            return self.opened[f].read_row_group(g, columns=list(columns))
        except (_pyarrow().ArrowException, OSError) as error:
            raise _unreadable(self.files[f], error) from error


class _OnDemand:
    """Reads records of row groups that are decoded when they are wanted; called on one thread.

    Each group becomes a source of its own in memory, so that records are what they would be there.
    """

    def __init__(self, groups: _RowGroups, chosen: Sequence[_Column], folder: str) -> None:
        self._groups, self._chosen, self._folder = groups, chosen, folder
        self._held: OrderedDict[int, _core.Source] = OrderedDict()
        for column in chosen:
            if column.name == "label" and _is_text(
                groups.opened[0].schema_arrow.field(column.column).type
            ):
                raise _refused(
                    column,
                    "holds names of classes, which take a look at all rows",
                    'raise memory=, or read it as text: fields=["class_name=' + column.column,
                )
        self.fields = list(self._group(0).schema)
        self._starts = np.array(groups.starts)

    def read(self, indices: Sequence[int], wanted: Sequence[bool]) -> list[Any]:
        out: list[Any] = [None] * len(indices)
        groups = np.searchsorted(self._starts, indices, side="right") - 1
        for at in np.argsort(groups, kind="stable").tolist():
            group = int(groups[at])
            try:
                record = self._group(group).read(int(indices[at]) - self._groups.starts[group])
            except Exception as error:
                out[at] = str(error)
                continue
            out[at] = [
                _crossing(record[field.name]) if take else None
                for field, take in zip(self.fields, wanted, strict=True)
            ]
        return out

    def key(self, index: int) -> str:
        return str(index)

    def integer_column(self, name: str) -> list[int]:
        columns = [column for column in self._chosen if column.name == name]
        if not columns or not any(f.name == name and f.dtype == "int64" for f in self.fields):
            return []
        values: list[int] = []
        for group in range(len(self._groups)):
            table = self._groups.read(group, [columns[0].column])
            values += table.column(0).to_pylist()
        return values

    def _group(self, group: int) -> _core.Source:
        if group in self._held:
            self._held.move_to_end(group)
            return self._held[group]
        while len(self._held) >= _GROUPS_HELD:
            self._held.popitem(last=False)
        columns = _core.ColumnList()
        table = self._groups.read(group, [column.column for column in self._chosen])
        for column in self._chosen:
            _add(columns, column, table.column(column.column), self._folder)
        self._held[group] = columns.source("")
        return self._held[group]


def _crossing(value: Any) -> Any:
    return np.asarray(value) if isinstance(value, _core.Array) else value
