# SPDX-License-Identifier: Apache-2.0
"""Inputs of code from outside the program: environment variables and files. A table of records is
valid as long as these do not change, so they are recorded while the code runs in a child process:
the environment by replacing its dictionary, files by Python's audit events and ``os.stat``. Code
that writes files, starts processes or uses the network ends the attempt, because its results may
change.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import stat
import sys
from collections.abc import Callable, Iterator
from typing import Any

from headrace.migrate.look.marks import Attempt
from headrace.migrate.modules import is_installed

_MOST = 100_000  # maximum number of files to check for changes, which takes 0.2 s
_ALL = "os.environ"

Stamp = tuple[int, ...] | None  # properties that change with a file; None: the file does not exist


@dataclasses.dataclass
class Outside:
    """Inputs from outside that were read, and their values."""

    environ: dict[str, str | None] = dataclasses.field(default_factory=dict)
    files: dict[str, Stamp] = dataclasses.field(default_factory=dict)
    folders: dict[str, Stamp] = dataclasses.field(
        default_factory=dict
    )  # folders that were enumerated
    left_out: list[str] = dataclasses.field(default_factory=list)

    def first(self) -> str:
        """The name of one input that was read; empty if nothing was read."""
        names = (f"os.environ[{key!r}]" for key in self.environ)
        return next(iter([*names, *self.files, *self.folders]), "")

    def change(self) -> str:
        """A sentence about an input that has changed; empty if none has."""
        for key, before in self.environ.items():
            if (now := _variable(key)) != before:
                return f"os.environ[{key!r}] is now {_set(now)}, was {_set(before)}"
        for stamp_of, stamps in ((_stamp, self.files), (_listing, self.folders)):
            for path, was in stamps.items():
                if (is_ := stamp_of(path)) != was:
                    how = "is new" if was is None else "is gone" if is_ is None else "has changed"
                    return f"{path}, which __getitem__ reads, {how}"
        return ""


def _variable(key: str) -> str | None:
    return repr(sorted(os.environ.items())) if key == _ALL else os.environ.get(key)


def _set(value: str | None) -> str:
    return "not set" if value is None else repr(value) if len(value) < 80 else "another one"


_real_stat = os.stat


def _stamp(path: str) -> Stamp:
    """For a folder, that it exists; for a file, properties that change with it."""
    try:
        found = _real_stat(path)
    except (OSError, ValueError):
        return None
    if stat.S_ISDIR(found.st_mode):
        return (0,)
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _listing(path: str) -> Stamp:
    try:
        return (_real_stat(path).st_mtime_ns,)
    except (OSError, ValueError):
        return None


class Watch:
    """Records what is read inside ``with watch:``. REQUIRES: a child process that ends soon."""

    def __init__(self, attempt: Attempt) -> None:
        self.read = Outside()
        self._attempt = attempt
        self._depth = 0
        own = _Environment(os.environ._data, self._variable)  # type: ignore[attr-defined]
        os.environ._data = own  # type: ignore[attr-defined]
        if hasattr(os, "environb"):
            os.environb._data = own  # type: ignore[attr-defined]
        sys.addaudithook(self._event)

    @contextlib.contextmanager
    def __call__(self) -> Iterator[None]:
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1

    def replacements(self) -> dict[tuple[str, str], Callable[[Any], Any]]:
        """Wraps functions that read files without an audit event."""
        by_path = {
            "os": ("stat", "lstat", "access", "readlink"),
            "pathlib": ("_normal_accessor.stat",),  # of Python 3.10
            "lmdb": ("open", "Environment"),
            "h5py": ("h5f.open",),
        }
        names = [(module, name) for module, names in by_path.items() for name in names]
        # also for a generator seeded without a value
        entropy = [("os", "urandom"), ("random", "_urandom")]
        return {**dict.fromkeys(names, self._noting), **dict.fromkeys(entropy, self._drawing)}

    def _drawing(self, real: Any) -> Any:
        def call(size: int) -> Any:
            if self._depth:
                raise self._leave("draws from the system's generator")
            return real(size)

        return call

    def _noting(self, real: Any) -> Any:
        def call(path: Any, *more: Any, **named: Any) -> Any:
            if self._depth:
                self._file(path)
            return real(path, *more, **named)

        return call

    def _variable(self, key: Any) -> None:
        if self._depth:
            name = _ALL if key is None else os.fsdecode(key)
            with self._paused():
                self.read.environ.setdefault(name, _variable(name))

    @contextlib.contextmanager
    def _paused(self) -> Iterator[None]:
        depth, self._depth = self._depth, 0
        try:
            yield
        finally:
            self._depth = depth

    def _event(self, event: str, args: tuple[Any, ...]) -> None:
        if not self._depth or (act := _EVENTS.get(event.partition(".")[0])) is None:
            return
        if event == "open":
            path, _, flags = args
            if isinstance(flags, int) and flags & _WRITING:
                raise self._leave(f"writes to {path}")
            self._file(path)
        elif event in ("os.listdir", "os.scandir"):
            self._note(self.read.folders, args[0] or ".", _listing)
        elif event == "sqlite3.connect":
            self._file(args[0])
        elif event not in _HARMLESS:
            raise self._leave(act.format(event))

    def _leave(self, what: str) -> BaseException:
        with self._paused():
            return self._attempt.leave(f"{self._attempt.caller} {what}".strip())

    def _file(self, path: Any) -> None:
        self._note(self.read.files, path, _stamp)

    def _note(self, notes: dict[str, Stamp], path: Any, stamp_of: Callable[[str], Stamp]) -> None:
        if not isinstance(path, (str, bytes, os.PathLike)):
            return  # a descriptor of an open file
        with self._paused():
            name = os.path.join(os.getcwd(), os.fsdecode(path))
            if name in notes or name.startswith(_SYSTEM) or name.endswith(_CODE):
                return
            if is_installed(name):
                return
            if len(notes) >= _MOST:
                self.read.left_out = [f"more than {_MOST:,} files that __getitem__ reads"]
            else:
                notes[name] = stamp_of(name)


class _Environment(dict):  # type: ignore[type-arg]
    """A dictionary of the environment that records accesses; None stands for all of it."""

    def __init__(self, data: dict[Any, Any], note: Callable[[Any], None]) -> None:
        super().__init__(data)
        self._note = note

    def __getitem__(self, key: Any) -> Any:
        self._note(key)
        return super().__getitem__(key)

    def __iter__(self) -> Iterator[Any]:
        self._note(None)
        return super().__iter__()


_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_SYSTEM = ("/proc/", "/dev/", "/sys/")
_CODE = (".py", ".pyc", ".so")
# First parts of names of audit events, and the corresponding actions.
_EVENTS = {
    "open": "",
    "os": "calls {}()",
    "shutil": "calls {}()",
    "tempfile": "calls {}()",
    "sqlite3": "",
    "subprocess": "starts a process",
    "pty": "starts a process",
    "socket": "uses the network",
    "urllib": "uses the network",
    "http": "uses the network",
    "ftplib": "uses the network",
}
_HARMLESS = (
    *("os.walk", "os.fwalk", "os.listxattr", "os.getxattr", "os.add_dll_directory"),
    *("socket.__new__", "sqlite3.connect/handle", "sqlite3.enable_load_extension"),
)
