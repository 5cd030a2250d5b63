# SPDX-License-Identifier: Apache-2.0
"""Reads HDF5 files that the engine's own reader rejects, through h5py: ``trusted=True``.

libhdf5 is not safe with hostile files, hence the name. Rows are read on the single Python thread.
Links to other files are rejected here as well.
"""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from headrace import _core
from headrace.errors import Error, declare
from headrace.sources.fingerprint import fingerprint_of
from headrace.sources.objects import ObjectReader

_UNREADABLE = declare(
    "HR0495",
    "unsupported",
    "HDF5 file not readable with h5py",
    "With trusted=True, files that Headrace's own reader does not support are read by h5py (`pip "
    "install h5py`), which must support them: filters need their plugin (`pip install "
    "hdf5plugin`, and import it first). Fields are datasets of numbers, strings or bytes, and "
    "the columns of compound types. Links to other files, external storage and virtual datasets "
    "are always rejected.",
)

_IMAGES, _LABELS = ("image", "images", "x"), ("label", "labels", "target", "targets", "y")


def open_files(files: Sequence[str], arguments: Mapping[str, Any]) -> _core.Source:
    """Called by the engine for ``trusted=True`` after its own reader rejected the files."""
    try:
        rows = _Rows(files, arguments.get("fields"))
    except Error:
        raise
    except Exception as error:  # h5py raises various exceptions for a damaged file
        raise _UNREADABLE.error(f"h5py cannot read {files[0]}: {error}") from error
    reader = ObjectReader(rows, {})
    shapes = [(path, part.shape, str(part.dtype)) for path, part in rows.columns()]
    text = repr((len(rows), shapes, [file.id.get_filesize() for file in rows.files]))
    fingerprint = fingerprint_of(text)
    title = f"hdf5 {files[0]} ({len(rows):,} records, through h5py)"
    classes = list(arguments.get("classes") or [])
    return _core.python_source(reader, len(rows), list(reader.fields), classes, fingerprint, title)


class _Rows:
    """The rows of all files, as dictionaries of values."""

    def __init__(self, files: Sequence[str], fields: Sequence[str] | None) -> None:
        try:
            h5py: Any = importlib.import_module("h5py")
        except ImportError as error:
            raise _UNREADABLE.error("h5py is missing", hint="pip install h5py") from error
        self._h5py = h5py
        # Opened without a lock, since a file may be open for reading elsewhere.
        self.files = [h5py.File(path, "r", locking=False) for path in files]
        chosen = dict(map(self._split, fields)) if fields is not None else self._all(self.files[0])
        self.parts = [
            {name: self._dataset(file, path) for name, path in chosen.items()}
            for file in self.files
        ]
        self.ends = list(np.cumsum([len(next(iter(part.values()))) for part in self.parts]))
        for part in self.parts:
            lengths = {name: len(dataset) for name, dataset in part.items()}
            if len(set(lengths.values())) > 1:
                raise _UNREADABLE.error(f"datasets have different numbers of rows: {lengths}")

    def columns(self) -> list[tuple[str, Any]]:
        return [(name, dataset) for part in self.parts for name, dataset in part.items()]

    def __len__(self) -> int:
        return int(self.ends[-1])

    def __getitem__(self, index: int) -> dict[str, Any]:
        file = int(np.searchsorted(self.ends, index, side="right"))
        row = index - (int(self.ends[file - 1]) if file else 0)
        out: dict[str, Any] = {}
        for name, dataset in self.parts[file].items():
            value = dataset[row]
            if dataset.dtype.names is None:
                out[name] = _picture(name, _native(value))
            else:
                out |= {f"{name}_{column}": _native(value[column]) for column in value.dtype.names}
        return out

    @staticmethod
    def _split(text: str) -> tuple[str, str]:
        name, equals, path = text.partition("=")
        return (name, path) if equals else (_name_of(text), text)

    def _all(self, file: Any) -> dict[str, str]:
        """All datasets that have the most common number of rows."""
        found: list[str] = []
        pending = [("", file)]
        while pending:
            path, group = pending.pop()
            for name in sorted(group, reverse=True):
                link = group.get(name, getlink=True)
                self._refuse_external(link, f"{path}/{name}")
                if not isinstance(link, self._h5py.HardLink):
                    continue
                kind = group.get(name, getclass=True)
                if kind is self._h5py.Group and path.count("/") < 64:
                    pending.append((f"{path}/{name}", group[name]))
                elif kind is self._h5py.Dataset and group[name].shape:
                    found.append(f"{path}/{name}")
        if not found:
            raise _UNREADABLE.error("it has no dataset with rows")
        rows, _ = Counter(len(file[path]) for path in found).most_common(1)[0]
        return {_name_of(path): path for path in found if len(file[path]) == rows}

    def _dataset(self, file: Any, path: str) -> Any:
        """The dataset at a path; every link is checked before it is followed."""
        group, rest, links = file, [part for part in path.split("/") if part], 0
        while rest:
            name = rest.pop(0)
            link = group.get(name, getlink=True) if isinstance(group, self._h5py.Group) else None
            if link is None:
                raise _UNREADABLE.error(f"there is no dataset {path}", hint="see h5ls -r")
            self._refuse_external(link, path)
            if isinstance(link, self._h5py.SoftLink):
                links += 1
                if links > 16:
                    raise _UNREADABLE.error(f"cyclic soft links: {path}")
                group = file if link.path.startswith("/") else group
                rest = [part for part in link.path.split("/") if part] + rest
            else:
                group = group[name]
        if not isinstance(group, self._h5py.Dataset) or not group.shape:
            raise _UNREADABLE.error(f"{path} is not a dataset with rows")
        if group.is_virtual or group.external:
            raise _UNREADABLE.error(
                f"{path} is stored in other files", hint="copy the data into this file (h5repack)"
            )
        strings = self._h5py.check_string_dtype(group.dtype)
        return group.asstr() if strings and strings.encoding == "utf-8" else group

    def _refuse_external(self, link: Any, path: str) -> None:
        if isinstance(link, self._h5py.ExternalLink):
            raise _UNREADABLE.error(
                f"{path} is a link to {link.filename}", hint="omit it with fields=[...]"
            )


def _name_of(path: str) -> str:
    """The field's name: a well-known name for the last part of the path, otherwise that part as an
    identifier.
    """
    last = path.rsplit("/", 1)[-1]
    for meaning, names in (("image", _IMAGES), ("label", _LABELS), ("mask", ("mask", "masks"))):
        if last in names:
            return meaning
    return "".join(c if c.isalnum() or c == "_" else "_" for c in last)


def _native(value: Any) -> Any:
    """Numbers in this machine's byte order; other values unchanged."""
    if isinstance(value, (str, bytes)):
        return value
    array = np.asarray(value)
    if array.dtype.kind == "S":
        return bytes(array)
    array = array.astype(array.dtype.newbyteorder("="))
    return array if array.ndim else array[()]


def _picture(name: str, value: Any) -> Any:
    """Adds the channel axis to a grayscale image."""
    gray = name in ("image", "mask") and getattr(value, "ndim", 0) == 2
    return value[None] if gray and value.dtype == np.uint8 else value
