# SPDX-License-Identifier: Apache-2.0
"""Filesystem objects of other libraries as storage: fsspec, obstore, pyarrow.fs, and clients of
multi-storage-client. The engine requests listings, sizes and ranges from them on separate threads.

>>> import fsspec, headrace as hr
>>> fs = fsspec.filesystem("memory")
>>> fs.pipe("/words/train.jsonl", b'{"n": 1}\\n{"n": 2}\\n')
>>> [record["n"] for record in hr.open("/words/train.jsonl", filesystem=fs)]
[1, 2]
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from importlib import import_module
from typing import Any, NamedTuple

from headrace import _core
from headrace.errors import declare
from headrace.log import WARNING, log
from headrace.steps import describe

_NOT_A_FILESYSTEM = declare(
    "HR0198",
    "config",
    "not a filesystem object",
    "filesystem= takes an object of fsspec (fsspec.filesystem(...)), a store of obstore, a "
    "filesystem of pyarrow.fs, or a StorageClient of multi-storage-client.",
)


class Found(NamedTuple):
    """The object at a path. version: text that changes with the content; empty if unknown."""

    is_folder: bool
    size: int = 0
    version: str = ""
    modified_ns: int = 0


class Files:
    """One filesystem object, with the interface that the engine calls (bindings/python_files.cc).
    Paths are the object's own, except for a leading "/", which is in `prefix`.
    """

    name = ""
    prefix = ""

    def __init__(self, fs: Any) -> None:
        self.fs = fs

    def own(self, path: str) -> str:
        """A user's path in the object's form."""
        return path

    def look_at(self, path: str) -> Found | None:
        """None if nothing exists there."""
        raise NotImplementedError

    def entries(self, path: str) -> Iterable[tuple[str, bool]]:
        """The names in a folder, and whether each is a folder."""
        raise NotImplementedError

    def read(self, path: str, begin: int, end: int | None) -> Any:
        """Bytes, or an object that exports them as a buffer. end: None means the end of the
        file."""
        raise NotImplementedError


class FsspecFiles(Files):
    """An fsspec.AbstractFileSystem."""

    def __init__(self, fs: Any) -> None:
        super().__init__(fs)
        protocol = fs.protocol if isinstance(fs.protocol, str) else fs.protocol[0]
        self.name = str(protocol)

    def own(self, path: str) -> str:
        return str(self.fs._strip_protocol(path))

    def look_at(self, path: str) -> Found | None:
        try:
            self.fs.invalidate_cache(_folder(path))
            info = self.fs.info(path)
        except FileNotFoundError:
            return None
        if info["type"] == "directory":
            return Found(True)
        modified = _first(info, "mtime", "LastModified", "last_modified", "modified", "updated")
        if modified is None:
            try:
                modified = self.fs.modified(path)
            except (NotImplementedError, KeyError):
                modified = _first(info, "created")
        version = _first(info, "ETag", "etag", "e_tag", "generation", "md5", "md5Hash", "ino")
        return Found(False, info["size"], _text(version), _nanoseconds(modified))

    def entries(self, path: str) -> Iterable[tuple[str, bool]]:
        self.fs.invalidate_cache(path)
        for info in self.fs.ls(path, detail=True):
            name = info["name"].rstrip("/").rpartition("/")[2]
            if name and info["name"].strip("/") != path.strip("/"):  # some list the folder itself
                yield name, info["type"] == "directory"

    def read(self, path: str, begin: int, end: int | None) -> Any:
        return self.fs.cat_file(path, start=begin or None, end=end)


class ObstoreFiles(Files):
    """A store of obstore."""

    def __init__(self, fs: Any) -> None:
        super().__init__(fs)
        self.name = type(fs).__name__.removesuffix("Store").lower()

    def own(self, path: str) -> str:
        return path.strip("/")

    def look_at(self, path: str) -> Found | None:
        try:
            meta = self.fs.head(path) if path else None
        except FileNotFoundError:
            meta = None
        if meta is not None:
            version = meta.get("e_tag") or meta.get("version") or ""
            return Found(False, meta["size"], version, _nanoseconds(meta["last_modified"]))
        inside = self.fs.list_with_delimiter(path or None)
        return Found(True) if inside["objects"] or inside["common_prefixes"] else None

    def entries(self, path: str) -> Iterable[tuple[str, bool]]:
        inside = self.fs.list_with_delimiter(path or None)
        for prefix in inside["common_prefixes"]:
            yield prefix.rstrip("/").rpartition("/")[2], True
        for meta in inside["objects"]:
            yield meta["path"].rpartition("/")[2], False

    def read(self, path: str, begin: int, end: int | None) -> Any:
        if end is None:
            return self.fs.get(path).bytes()
        return self.fs.get_range(path, start=begin, end=end)


class ArrowFiles(Files):
    """A pyarrow.fs.FileSystem."""

    def __init__(self, fs: Any) -> None:
        super().__init__(fs)
        self.name = str(fs.type_name).partition("::")[0]

    def look_at(self, path: str) -> Found | None:
        fs: Any = import_module("pyarrow.fs")
        info = self.fs.get_file_info(path)
        if info.type == fs.FileType.NotFound:
            return None
        if info.type == fs.FileType.Directory:
            return Found(True)
        return Found(False, info.size, "", info.mtime_ns or 0)

    def entries(self, path: str) -> Iterable[tuple[str, bool]]:
        fs: Any = import_module("pyarrow.fs")
        for info in self.fs.get_file_info(fs.FileSelector(path)):
            yield info.base_name, info.type == fs.FileType.Directory

    def read(self, path: str, begin: int, end: int | None) -> Any:
        with self.fs.open_input_file(path) as file:
            if end is None:
                return file.read_buffer()
            file.seek(begin)
            return file.read_buffer(end - begin)


class MultiStorageFiles(Files):
    """A StorageClient of multi-storage-client."""

    def __init__(self, fs: Any) -> None:
        super().__init__(fs)
        self.name = str(getattr(fs, "profile", "msc"))

    def own(self, path: str) -> str:
        if path.startswith("msc://"):
            path = path.removeprefix("msc://").partition("/")[2]
        return path.strip("/")

    def look_at(self, path: str) -> Found | None:
        try:
            meta = self.fs.info(path)
        except FileNotFoundError:
            return None
        if meta.type == "directory":
            return Found(True)
        return Found(False, meta.content_length, meta.etag or "", _nanoseconds(meta.last_modified))

    def entries(self, path: str) -> Iterable[tuple[str, bool]]:
        folder = f"{path}/" if path else ""
        for meta in self.fs.list(path=folder, include_directories=True):
            name = meta.key.rstrip("/").rpartition("/")[2]
            if name:
                yield name, meta.type == "directory"

    def read(self, path: str, begin: int, end: int | None) -> Any:
        if end is None:
            return self.fs.read(path)
        types: Any = import_module("multistorageclient.types")
        return self.fs.read(path, byte_range=types.Range(offset=begin, size=end - begin))


# The objects passed in, by id: they are kept alive, since any source may still read from them.
_known: dict[int, Files] = {}


def path_on(filesystem: Any, path: str) -> str:
    """An object's path in the engine's form: "filesystem://NAME/train.tar"."""
    files = _known.get(id(filesystem))
    if files is None:
        files = _files(filesystem)
        names = {each.name for each in _known.values()}
        base, number = "".join(c if c.isalnum() else "-" for c in files.name) or "object", 1
        files.name = base
        while files.name in names:
            number += 1
            files.name = f"{base}-{number}"
        _core.add_filesystem(files.name, files)
        _known[id(filesystem)] = files
    own = files.own(path)
    if own.startswith("/"):
        files.prefix = "/"
    return f"filesystem://{files.name}/{own.lstrip('/')}"


def _files(fs: Any) -> Files:
    modules = {base.__module__.partition(".")[0] for base in type(fs).__mro__}
    if hasattr(fs, "cat_file") and hasattr(fs, "_strip_protocol"):
        return FsspecFiles(fs)
    if "pyarrow" in modules and hasattr(fs, "get_file_info"):
        return ArrowFiles(fs)
    if hasattr(fs, "get_range") and hasattr(fs, "list_with_delimiter"):
        return ObstoreFiles(fs)
    if "multistorageclient" in modules and hasattr(fs, "read"):
        return MultiStorageFiles(fs)
    raise _NOT_A_FILESYSTEM.error(
        f"{type(fs).__module__}.{type(fs).__name__} is not supported",
        hint='hr.open("bucket/train", filesystem=fsspec.filesystem("s3"))',
    )


# Permanent errors, which are not retried.
_OWN_FAULTS = (
    *(TypeError, ValueError, AttributeError, LookupError, NameError, AssertionError),
    *(NotImplementedError, ImportError),
)
_NUMBERS = (
    (FileNotFoundError, errno.ENOENT),
    (PermissionError, errno.EACCES),
    (IsADirectoryError, errno.EISDIR),
    (NotADirectoryError, errno.ENOTDIR),
    (TimeoutError, errno.ETIMEDOUT),
    (ConnectionError, errno.ECONNRESET),
    (MemoryError, errno.ENOMEM),
)


_PERMANENT = (0, errno.ENOENT, errno.EACCES, errno.EISDIR, errno.ENOTDIR, errno.ENOMEM)


def error_number(raised: BaseException) -> int:
    """The error as an errno for the engine; 0 for a failure that should not be retried."""
    number = _number_of(raised)
    if number not in _PERMANENT:
        file = getattr(raised, "filename", None)
        text = f"a filesystem object failed; trying again: {describe(raised)}"
        log(WARNING, "retry", text, file=str(file or ""))
    return number


def _number_of(raised: BaseException) -> int:
    for kind, number in _NUMBERS:
        if isinstance(raised, kind):
            return number
    if isinstance(raised, OSError) and raised.errno:
        return raised.errno
    if isinstance(raised, _OWN_FAULTS) or not isinstance(raised, Exception):
        return 0
    return errno.EREMOTEIO  # a class of the client: most likely a connection error


def _folder(path: str) -> str:
    return path.rstrip("/").rpartition("/")[0]


def _first(info: Mapping[str, Any], *names: str) -> Any:
    return next((info[name] for name in names if info.get(name) is not None), None)


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _nanoseconds(value: Any) -> int:
    """Converts seconds, a datetime, or ISO text."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.replace("Z", "+00:00"))
        except ValueError:
            return 0
    if isinstance(value, datetime):
        if value.tzinfo is None:
            value = value.replace(tzinfo=timezone.utc)
        value = value.timestamp()
    return int(value * 1e9) if isinstance(value, (int, float)) else 0
