# SPDX-License-Identifier: Apache-2.0
"""TFRecord of tf.train.Example, with the names of TensorFlow's own ImageNet scripts."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from headrace import _core
from headrace.sources import Source
from headrace.write import AppendingWriter, Schema, WriterRecord, picture_bytes
from headrace.write.protobuf import message, varint

_NAMES = {"image": "image/encoded", "label": "image/class/label"}


def _check(schema: Schema) -> None:
    for field in schema:
        if str(field.dtype) in ("float64", "uint64"):  # images and text are uint8
            raise TypeError(
                f"TFRecord has no {field.dtype} (field {field.name!r}): use float32 or int64"
            )


def _arguments(source: Source) -> dict[str, Any]:
    return {"fields": [f"{f.name}={_NAMES.get(f.name, f.name)}" for f in source.schema]}


class TFRecordWriter(AppendingWriter):
    """Writes length, checksum, Example and checksum of each record; checksums are masked as in
    TensorFlow."""

    def __init__(
        self,
        path: str,
        schema: Schema,
        state: Mapping[str, Any],
    ) -> None:
        super().__init__(path, state)
        self.schema = list(schema)

    def add(self, number: int, key: str, values: Mapping[str, Any]) -> None:
        features = [
            _feature(_NAMES.get(field.name, field.name), _value(field, values[field.name]))
            for field in self.schema
        ]
        example = message(1, b"".join(features))
        length = struct.pack("<Q", len(example))
        self.file.write(length, _masked(length), example, _masked(example))


def _masked(data: bytes) -> bytes:
    crc = _core.crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def _value(field: _core.Field, value: Any) -> bytes:
    if field.is_picture:
        return _bytes_list([picture_bytes(value)])
    if isinstance(value, str):
        return _bytes_list([value.encode(errors="surrogateescape")])
    if isinstance(value, bytes):
        return _bytes_list([value])
    if isinstance(value, int):
        return _int64_list([value])
    array = np.asarray(value)
    if array.dtype.kind == "f":
        return message(2, message(1, array.astype("<f4").tobytes()))
    return _int64_list(array.ravel().tolist())


def _bytes_list(values: Iterable[bytes]) -> bytes:
    return message(1, b"".join(message(1, value) for value in values))


def _int64_list(values: Iterable[int]) -> bytes:
    return message(3, message(1, b"".join(map(varint, values))))


def _feature(name: str, feature: bytes) -> bytes:
    """An entry of the map Features.feature."""
    return message(1, message(1, name.encode()) + message(2, feature))


WRITER = WriterRecord(
    holds="`tf.train.Example`; `image` is `image/encoded`, `label` is `image/class/label`",
    format="tfrecord",
    open=lambda path, schema, classes, state: TFRecordWriter(path, schema, state),
    check=_check,
    suffix=".tfrecord",
    arguments=_arguments,
)
