# SPDX-License-Identifier: Apache-2.0
"""An HDF5 file with one dataset per field, through the library ``h5py``."""

from __future__ import annotations

import contextlib
import importlib
import io
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from headrace.sources import Source
from headrace.write import Schema, WriterRecord


def _check(schema: Schema) -> None:
    importlib.import_module("h5py")

    for field in schema:
        if not field.encoded and any(size < 0 for size in field.shape):
            raise TypeError(
                f"records of unequal shape (field {field.name!r}) do not fit into a dataset"
            )


def _arguments(source: Source) -> dict[str, Any]:
    return {"fields": [field.name for field in source.schema]}


class Hdf5Writer:
    """Writes encoded values and bytes as variable-length uint8, text as variable-length strings."""

    def __init__(self, path: str, schema: Schema) -> None:
        h5py: Any = importlib.import_module("h5py")

        self.raw = _RawFile(path)
        self.file = h5py.File(self.raw, "w")
        self.datasets = {}
        self.records = self.rows = 0
        for field in schema:
            kind = str(field.kind)
            blob = kind == "bytes" or field.encoded
            shape = () if blob or kind == "text" else tuple(field.shape)
            dtype: Any = np.dtype(str(field.dtype))
            if blob:
                dtype = h5py.vlen_dtype(np.uint8)
            elif kind == "text":
                dtype = h5py.string_dtype()
            self.datasets[field.name] = self.file.create_dataset(
                field.name, (0, *shape), dtype, maxshape=(None, *shape), chunks=True
            )

    def add(self, number: int, key: str, values: Mapping[str, Any]) -> None:
        for name, dataset in self.datasets.items():
            if self.rows == dataset.shape[0]:
                dataset.resize(max(1024, 2 * self.rows), axis=0)
            value = values[name]
            dataset[self.rows] = (
                np.frombuffer(value, np.uint8)
                if isinstance(value, bytes)
                else (value if isinstance(value, (int, str)) else np.asarray(value))
            )
        self.rows += 1
        self.raw.raise_refused()

    def journal(self) -> dict[str, Any]:
        return {}

    def close(self) -> None:
        for dataset in self.datasets.values():
            dataset.resize(self.rows, axis=0)
        self.file.close()
        self.raw.raise_refused()
        os.fsync(self.raw.fileno())

    def abandon(self) -> None:
        self.raw.refused = self.raw.refused or OSError("abandoned")
        with contextlib.suppress(
            Exception
        ):  # the library fails when reading back what was not written
            self.file.close()
        self.raw.close()


class _RawFile(io.FileIO):
    """The file that the library writes to. A failed write must not be reported to the library: it
    would have state that it can neither write nor discard, and would abort the process on close. So
    failures are hidden from it, nothing more is written, and the writer raises the error.
    """

    def __init__(self, path: str) -> None:
        super().__init__(path, "w+")
        self.refused: OSError | None = None

    def write(self, data: Any) -> int:
        rest = memoryview(data).cast("B")
        count = len(rest)
        try:
            while rest and not self.refused:
                rest = rest[super().write(rest) :]
        except OSError as error:
            self.refused = error
        return count

    def truncate(self, size: int | None = None) -> int:
        try:
            return self.tell() if self.refused else super().truncate(size)
        except OSError as error:
            self.refused = error
            return self.tell()

    def raise_refused(self) -> None:
        if self.refused:
            raise self.refused


WRITER = WriterRecord(
    holds="one dataset per field, through the package `h5py`",
    format="hdf5",
    open=lambda path, schema, classes, state: Hdf5Writer(path, schema),
    check=_check,
    suffix=".h5",
    resumes=False,
    arguments=_arguments,
)
