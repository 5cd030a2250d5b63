# SPDX-License-Identifier: Apache-2.0
"""The Parquet files: a row group of frames per episode (several above a GiB), the table of
episodes, and the tasks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from headrace.sources.arrow_files.columns import pyarrow
from headrace.sources.lerobot.info import DEFAULTS
from headrace.write.lerobot.features import Column
from headrace.write.lerobot.places import DATA_PATH, EPISODES_PATH, Places

_EPISODES_AT_ONCE = 64
_GROUP_BYTES = 1 << 30  # Arrow's offsets are int32


class GrowingTable:
    """Rows in files of about the given size; each ``write`` is a row group."""

    def __init__(self, places: Places, template: str, schema: Any) -> None:
        self.places, self.template, self.schema = places, template, schema
        self._path: Path | None = None
        self._writer: Any = None
        self._rows = 0

    def make_room(self, rows: int) -> None:
        """Begins a file, if these rows would probably not fit into the current one."""
        if self._path is not None:
            size = self._path.stat().st_size
            if size + size / max(1, self._rows) * rows < self.places.data_bytes:
                return
        self.close()
        self._path = self.places.next(self.template)
        parquet = pyarrow("pyarrow.parquet")
        self._writer = parquet.ParquetWriter(self._path, self.schema, compression="snappy")
        self._rows = 0

    def write(self, table: Any) -> None:
        self._writer.write_table(table, row_group_size=max(1, table.num_rows))
        self._rows += table.num_rows

    def close(self) -> None:
        """Completes the current file."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()


class FrameTable:
    """``data/``: one row per frame."""

    def __init__(self, places: Places, columns: Sequence[Column], images: Sequence[str]) -> None:
        self.columns = [*columns, *(Column(name, name, DEFAULTS[name], ()) for name in DEFAULTS)]
        self.images = images
        self.table = GrowingTable(places, DATA_PATH, _schema_of(self.columns, images))
        self.places = places

    def write(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Writes an episode: arrays and lists by feature, images as lists of encoded bytes. Returns
        its columns of meta/episodes."""
        length = len(values["index"])
        size = sum(len(image) for name in self.images for image in values[name])
        size += sum(v.nbytes for v in values.values() if isinstance(v, np.ndarray))
        rows = max(1, length * _GROUP_BYTES // max(size, _GROUP_BYTES))
        self.table.make_room(length)
        for begin in range(0, length, rows):
            part = slice(begin, begin + rows)
            self.table.write(self._rows({name: each[part] for name, each in values.items()}))
        chunk, file = self.places.current(DATA_PATH)
        return {"data/chunk_index": chunk, "data/file_index": file}

    def _rows(self, values: Mapping[str, Any]) -> Any:
        schema = self.table.schema
        arrays = [_image_array(values[name], schema.field(name).type) for name in self.images]
        arrays += [_array(each, values[each.feature]) for each in self.columns]
        return pyarrow().Table.from_arrays(arrays, schema=schema)


class EpisodeTable:
    """``meta/episodes/``: one row per episode."""

    def __init__(self, places: Places) -> None:
        self.places = places
        self.table: GrowingTable | None = None
        self.rows: list[dict[str, Any]] = []

    def add(self, row: Mapping[str, Any]) -> None:
        self.rows.append(dict(row))
        if len(self.rows) >= _EPISODES_AT_ONCE:
            self._write()

    def _write(self) -> None:
        pa = pyarrow()
        if not self.rows:
            return
        if self.table is None:
            first = {**self.rows[0], "meta/episodes/chunk_index": 0, "meta/episodes/file_index": 0}
            self.table = GrowingTable(
                self.places, EPISODES_PATH, pa.Table.from_pylist([first]).schema
            )
        self.table.make_room(len(self.rows))
        chunk, file = self.places.current(EPISODES_PATH)
        place = {"meta/episodes/chunk_index": chunk, "meta/episodes/file_index": file}
        rows = [{**row, **place} for row in self.rows]
        self.table.write(pa.Table.from_pylist(rows, schema=self.table.schema))
        self.rows.clear()

    def close(self) -> None:
        self._write()
        if self.table is not None:
            self.table.close()


def write_tasks(path: Path, tasks: Sequence[str]) -> None:
    """The table whose index in pandas is the task, as LeRobot finds tasks."""
    pa = pyarrow()
    index = "__index_level_0__"
    table = pa.table(
        {
            "task_index": pa.array(range(len(tasks)), pa.int64()),
            index: pa.array(tasks, pa.string()),
        }
    )
    column = {"field_name": "task_index", "name": "task_index", "pandas_type": "int64"}
    label = {"field_name": index, "name": None, "pandas_type": "unicode", "numpy_type": "object"}
    pandas = {
        "index_columns": [index],
        "column_indexes": [],
        "columns": [
            {**column, "numpy_type": "int64", "metadata": None},
            {**label, "metadata": None},
        ],
        "pandas_version": "2.0.0",
    }
    table = table.replace_schema_metadata({"pandas": json.dumps(pandas)})
    pyarrow("pyarrow.parquet").write_table(table, path)


def _schema_of(columns: Sequence[Column], images: Sequence[str]) -> Any:
    """The Arrow schema, with the metadata by which the library ``datasets`` knows images."""
    pa = pyarrow()
    image = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    fields = [pa.field(name, image) for name in images]
    described: dict[str, Any] = {name: {"_type": "Image"} for name in images}
    for each in columns:
        kind, value = _type_of(each), {"dtype": each.dtype, "_type": "Value"}
        fields.append(pa.field(each.feature, kind))
        if each.shape in ((), (1,)):
            described[each.feature] = value
        elif len(each.shape) == 1:
            listed = {"feature": value, "length": each.shape[0], "_type": "Sequence"}
            described[each.feature] = listed
        else:
            array = {"shape": list(each.shape), "dtype": each.dtype}
            described[each.feature] = {**array, "_type": f"Array{len(each.shape)}D"}
    metadata = {"huggingface": json.dumps({"info": {"features": described}})}
    return pa.schema(fields, metadata=metadata)


def _type_of(column: Column) -> Any:
    pa = pyarrow()
    if column.dtype == "string":
        return pa.string()
    kind = pa.bool_() if column.dtype == "bool" else getattr(pa, column.dtype)()
    if column.shape in ((), (1,)):
        return kind
    if len(column.shape) == 1:
        return pa.list_(kind, column.shape[0])
    for _ in column.shape:
        kind = pa.list_(kind)
    return kind


def _array(column: Column, values: Any) -> Any:
    pa = pyarrow()
    if column.dtype == "string":
        return pa.array(values, pa.string())
    array = np.asarray(values)
    out = pa.array(array.reshape(-1))
    if column.shape in ((), (1,)):
        return out
    if len(column.shape) == 1:
        return pa.FixedSizeListArray.from_arrays(out, column.shape[0])
    for size in reversed(column.shape):
        offsets = np.arange(0, len(out) + 1, size, dtype=np.int32)
        out = pa.ListArray.from_arrays(pa.array(offsets), out)
    return out


def _image_array(images: Sequence[bytes], kind: Any) -> Any:
    return pyarrow().array([{"bytes": data, "path": None} for data in images], kind)
