# SPDX-License-Identifier: Apache-2.0
"""Writers of containers, for ``headrace convert``: their common part, and how they are found. A
writer appends records to one file, so that an interrupted conversion can continue from its journal.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import io
import os
import pkgutil
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, cast

from headrace import _core
from headrace.errors import declare
from headrace.sources import Source
from headrace.write import containers
from headrace.write.options import Option

_NO_PNG = declare(
    "HR0417",
    "unsupported",
    "image cannot be stored as 8-bit PNG",
    "Images that the source has as arrays are written as uint8 PNG files with 1, 3 or 4 channels. "
    "Other arrays would lose values.",
)

NO_PACKAGE = declare(
    "HR0297",
    "unsupported",
    "package missing for this container",
    "HDF5 files are written by h5py, LMDB environments by lmdb, and LeRobot datasets by pyarrow "
    "and av, which are not installed with Headrace. Reading these files needs none of them, except "
    "for the tables of LeRobot datasets.",
)


class Writer(Protocol):
    """Appends records to the files of one shard."""

    records: int  # records already written by an interrupted run

    def add(self, number: int, key: str, values: Mapping[str, Any]) -> None:
        """Writes the record: values by field, images as they are stored."""

    def journal(self) -> dict[str, Any]:
        """Makes all records so far durable on disk, and returns what resume() needs."""

    def close(self) -> None:
        """Completes the file and makes it durable. No records can follow."""

    def abandon(self) -> None:
        """Abandons the file without further writes; after close() it does nothing."""


Schema = Sequence[_core.Field]


def holds_all(schema: Schema) -> None:
    """The check() of containers that can store any field."""


def no_arguments(source: Source) -> dict[str, Any]:
    """The names of containers that store field names."""
    return {}


def loses_nothing(source: Source, options: Mapping[str, Any]) -> str:
    """The loss() of containers that keep pixels."""
    return ""


def in_order(written: Source) -> Iterable[int]:
    """The order of containers that keep the source's order."""
    return range(len(written))


@dataclasses.dataclass(frozen=True)
class WriterRecord:
    """Describes how a container is written; its module in headrace.write.containers has one named
    WRITER."""

    holds: str  # for the guide: the contents of the container
    format: str  # name of the format that opens it
    # path, schema, classes, and the last journal() with the records that it covers, which is empty
    # at the beginning. None: ``whole`` writes everything itself.
    open: Callable[[str, Schema, Sequence[str], Mapping[str, Any]], Writer] | None = None
    # Raises TypeError or ImportError if records with these fields cannot be written.
    check: Callable[[Schema], None] = holds_all
    suffix: str = ""  # suffix of its files; empty for a folder of files
    beside: tuple[str, ...] = ()  # suffixes of the files that belong to one of its files
    resumes: bool = True  # whether a shard continues from its journal; otherwise it starts again
    # Arguments of ``open`` that restore the source's names of fields and classes.
    arguments: Callable[[Source], dict[str, Any]] = no_arguments
    order: Callable[[Source], Iterable[int]] = in_order  # position of each record of the source
    keeps_bytes: bool = True  # whether encoded images are kept; otherwise their pixels
    # source, target, shards, threads, overwrite, records that are done, options.
    whole: Callable[..., dict[str, Any]] | None = None
    options: tuple[Option, ...] = ()  # for ``whole`` and ``verify``
    # What a conversion of this source with these options loses; empty: nothing.
    loss: Callable[[Source, Mapping[str, Any]], str] = loses_nothing
    opener: str = "open"  # the function of headrace that opens it
    # source, target, options, records that are done; None: with ``format`` and ``arguments``.
    verify: Callable[..., None] | None = None
    own_files: re.Pattern[str] | None = None  # relative paths of the files in its folder


@functools.cache
def names() -> tuple[str, ...]:
    """Values of --to: the available modules."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(containers.__path__)))


def container(name: str) -> WriterRecord:
    """The record of a container. Its check() raises if a required library is missing."""
    module = importlib.import_module(f"{containers.__name__}.{name}")
    return cast(WriterRecord, module.WRITER)


def page_table() -> str:
    """The table of docs/tools/convert.md."""
    rows = (f"| `{name}` | {container(name).holds} |" for name in names())
    return "\n".join(["| `--to` | contents |", "|---|---|", *rows])


def check_pictures(schema: Schema, what: str) -> None:
    """The check() of containers whose record is an image, with or without a label."""
    names = {field.name for field in schema}
    if not names <= {"image", "label"} or "image" not in names:
        raise TypeError(f"{what} (the source has {', '.join(sorted(names))})")


_BUFFER_BYTES = 1 << 20


class AppendedFile:
    """A file that only grows, truncated to its journal when writing continues after an
    interruption. It has its own buffer, since Python's would write again when destroyed.
    """

    def __init__(self, path: str, size: int = 0) -> None:
        self.file = io.FileIO(path, "r+" if size else "w")
        self.file.truncate(size)
        self.file.seek(size)
        self.size = size
        self.buffer = bytearray()

    def write(self, *parts: bytes) -> int:
        """Appends all parts; returns the offset of the first."""
        begin = self.size
        for part in parts:
            self.buffer += part
            self.size += len(part)
        if len(self.buffer) >= _BUFFER_BYTES:
            self._flush()
        return begin

    def _flush(self) -> None:
        rest = memoryview(bytes(self.buffer))
        self.buffer.clear()
        while rest:
            rest = rest[self.file.write(rest) :]

    def sync(self) -> int:
        self._flush()
        os.fsync(self.file.fileno())
        return self.size

    def close(self) -> None:
        self.sync()
        self.file.close()

    def abandon(self) -> None:
        self.file.close()


class AppendingWriter:
    """A writer of one file that only grows; ``add`` is defined by the container."""

    def __init__(self, path: str, state: Mapping[str, Any]) -> None:
        self.records = state.get("records", 0)
        self.file = AppendedFile(path, state.get("bytes", 0))

    def journal(self) -> dict[str, Any]:
        return {"bytes": self.file.sync()}

    def close(self) -> None:
        self.file.close()

    def abandon(self) -> None:
        self.file.abandon()


def picture_suffix(data: bytes, kind: str = "image") -> str:
    """Suffix of an encoded image, audio or video, by its first bytes; "bin" if unknown."""
    return _core.media_suffix(data[:64], kind) or "bin"


def picture_bytes(value: Any) -> bytes:
    """An image as stored in a file: unchanged if it is encoded, otherwise as PNG, losslessly."""
    if isinstance(value, bytes):
        return value
    import numpy as np

    from headrace.drawing.png import png_from_pixels

    pixels = np.asarray(value)
    if pixels.dtype != np.uint8 or pixels.shape[0] not in (1, 3, 4):
        raise _NO_PNG.error(
            f"an image of {pixels.dtype} and {pixels.shape[0]} channels",
            hint="hr.pack() and .npy files store such arrays unchanged",
        )
    return png_from_pixels(pixels)
