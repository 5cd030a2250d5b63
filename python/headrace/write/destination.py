# SPDX-License-Identifier: Apache-2.0
"""A conversion's destination: what it may replace, its working folder, and the final rename. Only
files written by a conversion, recognized by their names, are deleted, and never files of the
source. Replaced files are moved aside first.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from headrace import write
from headrace.errors import declare
from headrace.sources import Source
from headrace.whole_file import TEMPORARY, sync, write_whole

_TAKEN = declare(
    "HR0415",
    "config",
    "destination exists",
    "convert() replaces files only if overwrite=True (--force) is given, and then only a file, or "
    "a folder in which everything was written by a conversion: never other files, its own source, "
    "or a parent folder of it. Files of an interrupted conversion in DEST.partial are reused if "
    "source and options are the same.",
)
BUSY = declare(
    "HR0277",
    "config",
    "destination is being written",
    "Another process is converting to this destination. Wait for it, stop it, or write to another "
    "name.",
)

# The names that conversions give to files.
SUMS = "SHA256SUMS"
_SUMS = re.compile(SUMS)
_NOTE = re.compile(rf"(plan|journal-\d{{5}})\.json|{TEMPORARY.pattern}")
_PICTURE = re.compile(r"\d{9,}-.*\.\w+", re.DOTALL)


def write_sums(folder: Path, files: Iterable[Mapping[str, Any]]) -> None:
    """SHA256SUMS of these files ("file", "sha256"), by which a later conversion recognizes them as
    written by one."""
    sums = "".join(f"{each['sha256']}  {each['file']}\n" for each in files)
    write_whole(folder / SUMS, sums)


class Destination:
    """The path that a conversion writes to, and related paths next to it (an index)."""

    def __init__(self, target: Path, overwrite: bool, beside: Sequence[str] = ()) -> None:
        self.target, self.overwrite = target, overwrite
        self.work = target.with_name(target.name + ".partial")
        self._read_from: set[str] | None = None  # found when needed
        self.beside = {suffix: target.with_suffix(suffix) for suffix in beside}
        if target in self.beside.values():
            raise _TAKEN.error(
                f"{target} is the name of its own index file", hint="choose another name"
            )

    def check(self, src: Source, of_files: bool = False) -> None:
        """Raises HR0415 if something exists there that must not be replaced."""
        if of_files:  # they would become part of the source the next time it is listed
            for folder in map(os.path.realpath, src.paths):
                if os.path.isdir(folder) and _lies_in(os.path.realpath(self.target), folder):
                    raise _TAKEN.error(
                        f"{self.target} is inside the source {folder}", hint="write next to it"
                    )
        for path in self._replaced():
            if not self.overwrite:
                raise _TAKEN.error(f"{path} already exists", hint="overwrite=True (--force)")
            if path.is_dir() and not path.is_symlink() and (foreign := _foreign_in(path)):
                raise _TAKEN.error(
                    f"{foreign} was not written by a conversion, so {path} is not replaced",
                    hint="choose another name, or move it away yourself",
                )
            self._refuse_source(path, src)

    def _replaced(self) -> list[Path]:
        """Existing files at the destination, without those of an interrupted run."""
        own = self.work / "data-00000-of-00001"
        return [
            path
            for suffix, path in {**self.beside, "": self.target}.items()
            if os.path.lexists(path) and not (suffix and _same(own.with_suffix(suffix), path))
        ]

    def _refuse_source(self, path: Path, src: Source) -> None:
        real = {os.path.abspath(path), os.path.realpath(path)}
        if self._read_from is None:
            self._read_from = _files_of(src)
        for name in self._read_from:
            if any(_lies_in(name, each) for each in real):
                raise _TAKEN.error(
                    f"{path} contains the source's own files ({name})",
                    hint="choose another name; remove the source yourself after checking the "
                    "result",
                )

    @contextlib.contextmanager
    def working_folder(self) -> Iterator[Path]:
        """The working folder, locked against other processes until the end. Raises ConfigError
        HR0415 if it holds other files, HR0277 while another process has the lock. The lock is on
        the folder, and is held until it has its final name.
        """
        while True:
            descriptor = self._open_work()
            try:
                if not locks(descriptor, self.work):
                    continue
                if foreign := _foreign_in_work(self.work):
                    raise _TAKEN.error(
                        f"{foreign} was not written by a conversion, so {self.work} is not used",
                        hint="move it away, or choose another name",
                    )
                yield self.work
                return
            finally:
                with contextlib.suppress(OSError):
                    if _is_named(descriptor, self.work):
                        self.work.rmdir()  # nothing was begun
                os.close(descriptor)

    def _open_work(self) -> int:
        self.target.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            self.work.mkdir()
        try:
            return os.open(self.work, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except NotADirectoryError:
            raise _TAKEN.error(
                f"{self.work} is not a folder, and was not written by a conversion",
                hint="move it away, or choose another name",
            ) from None

    def clear_work(self) -> None:
        """Removes the files of another plan. REQUIRES: within working_folder()."""
        for path in list(self.work.iterdir()):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()

    def clear_notes(self) -> None:
        """Removes everything except the shards and their checksums. REQUIRES: within
        working_folder().
        """
        for path in list(self.work.iterdir()):
            if _is_file(path, _NOTE):
                path.unlink()

    def take_place(self, made: Path) -> None:
        """Gives `made`, which is the working folder or in it, the destination's name.

        REQUIRES: check() has just passed, within working_folder().
        """
        for suffix, path in self.beside.items():
            own = made.with_suffix(suffix)
            if own.exists():  # otherwise an interrupted run has moved it
                _put(own, path, self.overwrite)
        aside = self._move_aside() if self.target.is_dir() or made.is_dir() else None
        _put(made, self.target, self.overwrite)
        if made != self.work:
            shutil.rmtree(self.work)
        sync(self.target.parent)
        if aside and aside.is_dir() and not aside.is_symlink():
            shutil.rmtree(aside)
        elif aside:
            aside.unlink()

    def _move_aside(self) -> Path | None:
        if not os.path.lexists(self.target):
            return None
        aside, number = self.target.with_name(f"{self.target.name}.old"), 1
        while os.path.lexists(aside):
            number += 1
            aside = self.target.with_name(f"{self.target.name}.old{number}")
        return self.target.rename(aside)


def _put(made: Path, path: Path, overwrite: bool) -> None:
    """Renames; if nothing may be replaced, a file is linked first, which never replaces."""
    if made.is_dir() or overwrite:
        made.rename(path)
        return
    try:
        os.link(made, path)
    except FileExistsError:
        if not _same(made, path):
            raise _TAKEN.error(f"{path} was written in the meantime", hint="move it away") from None
    except OSError:  # a file system without links
        if os.path.lexists(path):
            raise _TAKEN.error(f"{path} was written in the meantime", hint="move it away") from None
        made.rename(path)


@functools.cache
def _shard() -> re.Pattern[str]:
    """Names of the files that containers consist of."""
    records = [write.container(name) for name in write.names()]
    endings = {suffix for each in records for suffix in (each.suffix, *each.beside) if suffix}
    return re.compile(rf"data-\d{{5}}-of-\d{{5}}({'|'.join(map(re.escape, sorted(endings)))})")


def _foreign_in(folder: Path) -> str:
    """The first entry of a folder that no conversion wrote; empty if all entries are from
    conversions."""
    if (folder / SUMS).is_file():
        listed = {line[66:] for line in (folder / SUMS).read_text().splitlines()}
        if any("/" in name for name in listed):
            return _foreign_to_layouts(folder, listed | {SUMS})
        own = (path for path in sorted(folder.iterdir()) if path.name != SUMS)
        return next((str(path) for path in own if not _is_file(path, _shard())), "")
    return _no_picture(folder, classes=True)


def _foreign_in_work(work: Path) -> str:
    for path in sorted(work.iterdir()):
        if path.name == "data" and path.is_dir() and not path.is_symlink():
            if _foreign_to_layouts(path) and (foreign := _no_picture(path, classes=True)):
                return foreign
        elif not any(_is_file(path, names) for names in (_shard(), _NOTE, _SUMS)):
            return str(path)
    return ""


def _foreign_to_layouts(folder: Path, listed: set[str] | None = None) -> str:
    """The first file that is in no container's layout of a folder, or not listed; None: all may
    be."""
    layouts = [write.container(name).own_files for name in write.names()]
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_dir() and not path.is_symlink():
            continue
        known = name == SUMS or any(layout and layout.fullmatch(name) for layout in layouts)
        is_own = known or TEMPORARY.fullmatch(path.name)
        if not is_own or path.is_symlink() or (listed is not None and name not in listed):
            return str(path)
    return ""


def _no_picture(folder: Path, classes: bool) -> str:
    for path in sorted(folder.iterdir()):
        if classes and path.is_dir() and not path.is_symlink():
            if foreign := _no_picture(path, classes=False):
                return foreign
        elif not _is_file(path, _PICTURE):
            return str(path)
    return ""


def _is_file(path: Path, names: re.Pattern[str]) -> bool:
    return bool(names.fullmatch(path.name)) and path.is_file() and not path.is_symlink()


def _files_of(src: Source) -> set[str]:
    """The files that a source is read from: their paths, and the targets of links."""
    given = {*src.paths, *(src.engine.file(number) for number in range(len(src)))} - {""}
    names = set(map(os.path.abspath, given))
    folders = {folder: os.path.realpath(folder) for folder in set(map(os.path.dirname, names))}
    for name in list(names):
        folder, last = os.path.split(name)
        real = os.path.realpath(name) if os.path.islink(name) else None
        names.add(real or os.path.join(folders[folder], last))
    return names


def _lies_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(os.path.join(folder, ""))


def _same(one: Path, other: Path) -> bool:
    return one.exists() and other.exists() and os.path.samefile(one, other)


def locks(descriptor: int, path: Path) -> bool:
    """Locks the opened file or folder until it is closed; false if the path now refers to another
    one, which must be opened instead. Raises HR0277 while another process has the lock.
    """
    with contextlib.suppress(OSError):  # a file system without locks
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BUSY.error(f"another process is writing {path}", hint="wait for it") from None
    return _is_named(descriptor, path)


def _is_named(descriptor: int, path: Path) -> bool:
    try:
        named = os.lstat(path)
    except FileNotFoundError:
        return False
    return os.path.samestat(os.fstat(descriptor), named)
