# SPDX-License-Identifier: Apache-2.0
"""MXNet's RecordIO: a .rec file of images with labels, and its .idx file next to it."""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from typing import Any

from headrace.write import (
    AppendedFile,
    AppendingWriter,
    Schema,
    WriterRecord,
    check_pictures,
    picture_bytes,
)

_MAGIC = struct.pack("<I", 0xCED7230A)
_MOST = (1 << 29) - 1


def _check(schema: Schema) -> None:
    check_pictures(schema, "RecordIO has an image and a label per record")


class RecordIOWriter(AppendingWriter):
    """Writes parts that begin at multiples of four with a magic number, which their bytes must not
    contain."""

    def __init__(self, path: str, state: Mapping[str, Any]) -> None:
        super().__init__(path, state)
        index = os.path.splitext(path)[0] + ".idx"
        self.index = AppendedFile(index, state.get("index_bytes", 0))

    def add(self, number: int, key: str, values: Mapping[str, Any]) -> None:
        label = float(values.get("label", 0))
        header = struct.pack("<IfQQ", 0, label, number, 0)
        parts = _parts(header + picture_bytes(values["image"]))
        begin = self.file.size
        for i, part in enumerate(parts):
            flag = 0 if len(parts) == 1 else 1 if i == 0 else 3 if i == len(parts) - 1 else 2
            if len(part) > _MOST:
                raise TypeError(f"a record of {len(part)} bytes; RecordIO allows at most {_MOST}")
            word = struct.pack("<I", flag << 29 | len(part))
            self.file.write(_MAGIC, word, part, bytes(-len(part) % 4))
        self.index.write(f"{number}\t{begin}\n".encode())

    def journal(self) -> dict[str, Any]:
        return {**super().journal(), "index_bytes": self.index.sync()}

    def close(self) -> None:
        super().close()
        self.index.close()

    def abandon(self) -> None:
        super().abandon()
        self.index.abandon()


def _parts(data: bytes) -> list[bytes]:
    """Splits a record where the magic number is at a multiple of four; readers insert it again."""
    parts, begin, at = [], 0, data.find(_MAGIC)
    while at >= 0:
        if at % 4 == 0:
            parts.append(data[begin:at])
            begin = at + 4
            at = data.find(_MAGIC, begin)
        else:
            at = data.find(_MAGIC, at + 1)
    return [*parts, data[begin:]]


WRITER = WriterRecord(
    holds="MXNet's `.rec` and its `.idx`; an image and a label",
    format="recordio",
    open=lambda path, schema, classes, state: RecordIOWriter(path, state),
    check=_check,
    suffix=".rec",
    beside=(".idx",),
)
