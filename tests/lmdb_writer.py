# SPDX-License-Identifier: Apache-2.0
"""Values as Caffe stores them in LMDB, following its .proto file, and environments written by the
lmdb package; independent of Headrace."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tfrecord_writer import field, varint


def number(name: int, value: int) -> bytes:
    return varint(name << 3) + varint(value)


def datum(
    data: bytes, label: int, shape: tuple[int, int, int] = (0, 0, 0), encoded: bool = True
) -> bytes:
    sizes = b"".join(number(1 + i, size) for i, size in enumerate(shape))
    return sizes + field(4, data) + number(5, label) + (number(7, 1) if encoded else b"")


def write(path: Path, entries: Mapping[bytes, bytes], **options: Any) -> Path:
    import lmdb

    with lmdb.open(str(path), map_size=1 << 28, **options) as env, env.begin(write=True) as txn:
        for key, value in entries.items():
            txn.put(key, value)
    (path / "lock.mdb").unlink(missing_ok=True)
    return path
