# SPDX-License-Identifier: Apache-2.0
"""WebDataset: a tar whose members KEY.jpg, KEY.cls, KEY.NAME.txt ... make up a record."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping
from typing import Any

import numpy as np

from headrace import _core
from headrace.sources import Source
from headrace.write import AppendingWriter, Schema, WriterRecord, picture_bytes, picture_suffix


def extension(field: _core.Field) -> str:
    """The extension of a field's members; for images and media, without their own suffix."""
    if _has_own_suffix(field):
        return "" if field.name in _core.media() else field.name
    if field.name == "label" and field.dtype == "int64" and field.shape == ():
        return "cls"
    scalar = field.dtype == "int64" and field.shape == ()
    kinds = {"text": "txt", "bytes": "bin"}
    return f"{field.name}." + ("cls" if scalar else kinds.get(str(field.kind), "npy"))


def _arguments(source: Source) -> dict[str, Any]:
    out = []
    for field in source.schema:
        name = extension(field)
        if _has_own_suffix(field):
            before = f"{name}." if name else ""
            name = ";".join(before + suffix for suffix in _suffixes(field))
        out.append(f"{field.name}={name}")
    return {"fields": out}


def _has_own_suffix(field: _core.Field) -> bool:
    """A file with a suffix for its type."""
    return field.is_picture or field.encoded


def _suffixes(field: _core.Field) -> list[str]:
    formats = _core.media()[field.media]["formats"]
    return [suffix[1:] for codec in formats.values() for suffix in codec["suffixes"]]


class TarWriter(AppendingWriter):
    """Writes the members of a record consecutively, in the format of POSIX.1-2001 (pax)."""

    def __init__(self, path: str, schema: Schema, state: Mapping[str, Any]) -> None:
        super().__init__(path, state)
        self.fields = [(field, extension(field)) for field in schema]

    def add(self, number: int, key: str, values: Mapping[str, Any]) -> None:
        for field, name in self.fields:
            value = values[field.name]
            if _has_own_suffix(field):
                data = picture_bytes(value)
                suffix = ".".join(
                    part for part in (name, picture_suffix(data, str(field.kind))) if part
                )
            else:
                data, suffix = _member(field, value), name
            info = tarfile.TarInfo(f"{key}.{suffix}")
            info.size = len(data)
            header = info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")
            self.file.write(header, data, bytes(-len(data) % tarfile.BLOCKSIZE))

    def close(self) -> None:
        end = 2 * tarfile.BLOCKSIZE
        self.file.write(bytes(end + -(self.file.size + end) % tarfile.RECORDSIZE))
        super().close()


def _member(field: _core.Field, value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode(errors="surrogateescape")
    if isinstance(value, int):
        return str(value).encode()
    memory = io.BytesIO()
    np.save(memory, np.asarray(value), allow_pickle=False)
    return memory.getvalue()


WRITER = WriterRecord(
    holds="WebDataset: `KEY.jpg`, `KEY.cls`, `KEY.NAME.txt`, `KEY.NAME.npy`, …",
    format="webdataset",
    open=lambda path, schema, classes, state: TarWriter(path, schema, state),
    suffix=".tar",
    arguments=_arguments,
)
