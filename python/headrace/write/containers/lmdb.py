# SPDX-License-Identifier: Apache-2.0
"""An LMDB environment of Caffe's Datum messages, through the library ``lmdb``."""

from __future__ import annotations

import contextlib
import errno
import importlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any

from headrace.sources import Source
from headrace.write import Schema, WriterRecord, check_pictures, picture_bytes
from headrace.write.protobuf import message, varint

_MAP_BYTES = 1 << 40  # address space, not disk


def _check(schema: Schema) -> None:
    importlib.import_module("lmdb")

    check_pictures(schema, "a Datum has an image and a label")


def _arguments(source: Source) -> dict[str, Any]:
    return {"values": "datum"}


class LmdbWriter:
    """Keys are the records' numbers in digits, so that they are in the order of the source.

    Each journal() is a transaction, and the file itself stores how many records are in complete
    ones: adding a record twice would leave unused pages. The environment is reopened for
    each, since the library fills gaps in pages with earlier contents of memory: so an interrupted
    conversion gives the same bytes as one in a single run.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.library: Any = importlib.import_module("lmdb")
        with self._coded():
            self._begin()
            self.records = self.environment.stat()["entries"]

    def _begin(self) -> None:
        self.environment = self.library.open(
            self.path, map_size=_MAP_BYTES, subdir=False, lock=False
        )
        self.changes = self.environment.begin(write=True)

    def _commit(self) -> None:
        self.changes.commit()
        self.environment.sync(True)
        self.environment.close()

    def add(self, number: int, key: str, values: Mapping[str, Any]) -> None:
        datum = message(4, picture_bytes(values["image"]))  # data
        if "label" in values:
            datum += varint(5 << 3) + varint(values["label"])
        datum += varint(7 << 3) + varint(1)  # encoded
        with self._coded():
            self.changes.put(f"{number:012}".encode(), datum)

    def journal(self) -> dict[str, Any]:
        with self._coded():
            self._commit()
            self._begin()
        return {}

    def close(self) -> None:
        with self._coded():
            self._commit()

    def abandon(self) -> None:
        self.changes.abort()
        self.environment.close()

    @contextlib.contextmanager
    def _coded(self) -> Iterator[None]:
        """Converts the library's errors to the OSError that caused them."""
        try:
            yield
        except self.library.Error as error:
            reason = str(error).rpartition(": ")[2]
            number = next((n for n in errno.errorcode if os.strerror(n) == reason), errno.EIO)
            if number == errno.EIO:  # also for a write that a full disk truncated
                number = _refusal_in(os.path.dirname(self.path)) or number
            raise OSError(number, os.strerror(number)) from error


def _refusal_in(folder: str) -> int | None:
    """The errno of an attempt to write another megabyte; None if it succeeds."""
    try:
        with tempfile.TemporaryFile(dir=folder or ".") as probe:
            os.posix_fallocate(probe.fileno(), 0, 1 << 20)
    except OSError as error:
        return error.errno
    return None


WRITER = WriterRecord(
    holds="Caffe's `Datum`, through the package `lmdb`; an image and a label",
    format="lmdb",
    open=lambda path, schema, classes, state: LmdbWriter(path),
    check=_check,
    suffix=".lmdb",
    arguments=_arguments,
)
