# SPDX-License-Identifier: Apache-2.0
"""Parquet files of a dataset as NumPy columns."""

from __future__ import annotations

import collections
import glob
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace import _core
from headrace.sources.arrow_files.columns import pyarrow, reading, unpacks_too_far
from headrace.sources.arrow_files.parquet_files import ParquetFiles
from headrace.sources.arrow_files.row_groups import RowGroups
from headrace.sources.lerobot.info import DAMAGED, Feature


class Table:
    """Columns of several Parquet files, concatenated."""

    def __init__(self, paths: Sequence[str], memory: int | None = None) -> None:
        for path in paths:
            if not _core.scheme_of(path) and not os.path.isfile(path):
                raise DAMAGED.error(f"{path} does not exist", hint="copy the dataset again")
        self.paths = paths
        self._files = ParquetFiles(paths)
        self._groups = RowGroups(self._files, memory)
        self._memory = memory
        self.names: list[str] = self._files.schemas[0].names if paths else []
        self.rows = self._groups.starts[-1]

    def read(self, columns: Sequence[str]) -> Any:
        """A ``pyarrow.Table``."""
        self.check(columns)
        if not self._groups.fit_into_memory(columns):
            raise unpacks_too_far(
                self.paths[0], self._memory or 1 << 30, hint='hr.lerobot(..., memory="8 GiB")'
            )
        with reading(self.paths[0]):  # the inner error names the file
            return self._groups.table(columns)

    def check(self, columns: Sequence[str]) -> None:
        """Raises DataError if a file does not have these columns."""
        for schema, path in zip(self._files.schemas, self.paths, strict=True):
            with reading(path):
                self._check(schema, path, columns)

    def _check(self, schema: Any, path: str, columns: Sequence[str]) -> None:
        """Checks that the file has each column once, with the type that it has in the first
        file."""
        found = collections.Counter(schema.names)
        for name in columns:
            if found[name] != 1:
                raise DAMAGED.error(f"{path} has {found[name]} columns named {name!r:.80}")
            kind, first = schema.field(name).type, self._files.schemas[0].field(name).type
            if kind != first:
                raise DAMAGED.error(
                    f"the column {name!r:.80} of {path} is {kind}, but {first} in {self.paths[0]}"
                )


def files_below(folder: str) -> list[str]:
    """``folder/*/*.parquet``, in LeRobot's order."""
    paths = sorted(glob.glob(os.path.join(glob.escape(folder), "*", "*.parquet")))
    if not paths:
        raise DAMAGED.error(f"{folder} has no Parquet files", hint="copy the dataset again")
    return paths


def numbers(table: Any, name: str, feature: Feature, where: str) -> np.ndarray[Any, Any]:
    """A column as LeRobot's tensors: floats are float32, integers int64; (N, *shape), or (N,) if
    the shape is (1,)."""
    with reading(where):
        column = table.column(name).combine_chunks()
        shape = () if feature.shape == (1,) else feature.shape
        for size in shape:
            column = _flattened(column, size, name, where)
        column = _storage(column)
        if column.null_count:
            raise DAMAGED.error(f"{where}: the column {name!r} has rows without a value (null)")
        values: np.ndarray[Any, Any] = column.to_numpy(zero_copy_only=False)
    wanted = "b" if feature.dtype == "bool" else "f" if "float" in feature.dtype else "iu"
    if values.dtype.kind not in wanted:
        raise DAMAGED.error(
            f"{where}: the column {name!r} has {column.type}, but meta/info.json says "
            f"{feature.dtype} {feature.shape}"
        )
    if values.dtype == np.uint64 and values.size and values.max() > np.iinfo(np.int64).max:
        raise DAMAGED.error(f"{where}: the column {name!r} has a number that int64 cannot hold")
    dtype = {"b": np.bool_, "f": np.float32, "iu": np.int64}[wanted]
    whole: np.ndarray[Any, Any] = np.ascontiguousarray(values, dtype)
    out: np.ndarray[Any, Any] = whole.reshape(table.num_rows, *shape)
    return out


def _storage(column: Any) -> Any:
    return getattr(column, "storage", column)  # an extension type


def _flattened(column: Any, size: int, name: str, where: str) -> Any:
    """The elements of lists that must all have this size."""
    column = _storage(column)
    types = pyarrow().types
    kind = column.type
    if not (types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)):
        raise DAMAGED.error(f"{where}: the column {name!r} has {kind} instead of lists of {size}")
    lengths = pyarrow("pyarrow.compute").list_value_length(column)
    if column.null_count or (lengths.to_numpy(zero_copy_only=False) != size).any():
        raise DAMAGED.error(f"{where}: not every row of the column {name!r} has {size} elements")
    return column.flatten()


def texts(table: Any, name: str, where: str) -> tuple[list[str], np.ndarray[Any, Any]]:
    """The distinct texts of a column, and each row's index among them."""
    types = pyarrow().types
    with reading(where):
        column = table.column(name).combine_chunks()
        if not (types.is_string(column.type) or types.is_large_string(column.type)):
            raise DAMAGED.error(f"{where}: the column {name!r} has {column.type}, not text")
        if column.null_count:
            raise DAMAGED.error(f"{where}: the column {name!r} has rows without a value (null)")
        found = column.dictionary_encode()
        return found.dictionary.to_pylist(), found.indices.to_numpy(zero_copy_only=False)
