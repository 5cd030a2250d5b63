# SPDX-License-Identifier: Apache-2.0
"""An LMDB environment of Caffe's Datum messages, through the library ``lmdb``."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

from headrace import _core
from headrace.containers import check_pictures, picture_bytes
from headrace.containers.protobuf import message, varint

SUFFIX = ".lmdb"
FORMAT = "lmdb"
RESUMES = True
_MAP_BYTES = 1 << 40  # address space, not disk


def writer(
    path: str, schema: Sequence[_core.Field], classes: Sequence[str], state: Any
) -> LmdbWriter:
    return LmdbWriter(path)


def check(schema: Sequence[_core.Field]) -> None:
    importlib.import_module("lmdb")

    check_pictures(schema, "a Datum has a picture and a label")


def fields(schema: Sequence[_core.Field]) -> dict[str, Any]:
    return {"values": "datum"}


class LmdbWriter:
    """Keys are the records' numbers in digits, so that their order is the source's."""

    def __init__(self, path: str) -> None:
        lmdb: Any = importlib.import_module("lmdb")

        self.environment = lmdb.open(path, map_size=_MAP_BYTES, subdir=False, lock=False)
        self.changes = self.environment.begin(write=True)

    def add(self, number: int, key: str, values: Mapping[str, Any]) -> None:
        datum = message(4, picture_bytes(values["image"]))  # data
        if "label" in values:
            datum += varint(5 << 3) + varint(values["label"])
        datum += varint(7 << 3) + varint(1)  # encoded
        self.changes.put(f"{number:012}".encode(), datum)

    def journal(self) -> dict[str, Any]:
        self.changes.commit()
        self.environment.sync(True)
        self.changes = self.environment.begin(write=True)
        return {}

    def close(self) -> None:
        self.changes.commit()
        self.environment.sync(True)
        self.environment.close()
