# SPDX-License-Identifier: Apache-2.0
"""Writes RecordIO following dmlc-core's specification (include/dmlc/recordio.h) and MXNet's
IRHeader, without using Headrace or MXNet."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence

MAGIC = struct.pack("<I", 0xCED7230A)


def _part(kind: int, data: bytes) -> bytes:
    return MAGIC + struct.pack("<I", kind << 29 | len(data)) + data + bytes(-len(data) % 4)


def frame(data: bytes) -> bytes:
    """Split wherever the magic number occurs at a multiple of four."""
    parts, begin = [], 0
    for at in range(0, len(data) - 3, 4):
        if data[at : at + 4] == MAGIC:
            parts.append(data[begin:at])
            begin = at + 4
    parts.append(data[begin:])
    if len(parts) == 1:
        return _part(0, data)
    kinds = [1, *[2] * (len(parts) - 2), 3]
    return b"".join(map(_part, kinds, parts))


def ir(label: float | Sequence[float], number: int, content: bytes) -> bytes:
    """A record with MXNet's header: one label, or an array of them."""
    if isinstance(label, (int, float)):
        return struct.pack("<IfQQ", 0, label, number, 0) + content
    labels = struct.pack(f"<{len(label)}f", *label)
    return struct.pack("<IfQQ", len(label), 0, number, 0) + labels + content


def recordio(records: Iterable[bytes]) -> bytes:
    return b"".join(map(frame, records))


def index(records: Iterable[bytes], keys: Iterable[object]) -> str:
    lines, offset = [], 0
    for key, record in zip(keys, records, strict=True):
        lines.append(f"{key}\t{offset}\n")
        offset += len(frame(record))
    return "".join(lines)
