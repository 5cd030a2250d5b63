# SPDX-License-Identifier: Apache-2.0
"""Writes TFRecord and tf.train.Example following their specifications, without using Headrace or
TensorFlow. https://www.tensorflow.org/tutorials/load_data/tfrecord#tfrecords_format_details"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any


def _crc_table() -> list[int]:
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
        table.append(crc)
    return table


_TABLE = _crc_table()


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def masked(data: bytes) -> bytes:
    crc = crc32c(data)
    return struct.pack("<I", (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF)


def frame(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + masked(length) + data + masked(data)


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def field(number: int, data: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(data)) + data


def feature(values: Any, packed: bool = True) -> bytes:
    """A Feature: bytes or a list of them, ints or floats."""
    values = values if isinstance(values, list) else [values]
    if values and isinstance(values[0], bytes):
        return field(1, b"".join(field(1, value) for value in values))
    if values and isinstance(values[0], float):
        if not packed:
            return field(2, b"".join(b"\x0d" + struct.pack("<f", value) for value in values))
        return field(2, field(1, struct.pack(f"<{len(values)}f", *values)))
    if not packed:
        return field(3, b"".join(b"\x08" + varint(value) for value in values))
    return field(3, field(1, b"".join(map(varint, values))) if values else b"")


def features(values: Mapping[str, Any], packed: bool = True) -> bytes:
    return b"".join(
        field(1, field(1, name.encode()) + field(2, feature(value, packed)))
        for name, value in values.items()
    )


def example(values: Mapping[str, Any], packed: bool = True) -> bytes:
    return field(1, features(values, packed))


def sequence_example(context: Mapping[str, Any], lists: Mapping[str, Sequence[Any]]) -> bytes:
    entries = (
        field(1, field(1, name.encode()) + field(2, b"".join(field(1, feature(s)) for s in steps)))
        for name, steps in lists.items()
    )
    return field(1, features(context)) + field(2, b"".join(entries))


def tfrecord(records: Iterable[bytes]) -> bytes:
    return b"".join(map(frame, records))


def write_tfrecord(path: Path, records: Iterable[bytes]) -> Path:
    path.write_bytes(tfrecord(records))
    return path
