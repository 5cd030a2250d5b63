# SPDX-License-Identifier: Apache-2.0
"""Files that a script writes while it is examined: listed afterwards; overwritten ones are
restored.

Python reports every file that is opened, renamed or removed (PEP 578), before it happens. A file
that is about to lose its content is copied first. Writes by native code (a database, a tracker's
process) are not seen.
"""

from __future__ import annotations

import contextlib
import filecmp
import os
import shutil
import stat
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from typing import Any

from headrace.whole_file import replaced

_MOST = 4 << 30  # maximum bytes of files kept for restoring
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
SAVED = "torch.save"  # our own event, because torch raises none
_NOT_FILES = ("/dev/", "/proc/", "/sys/")


class Journal:
    """Paths that were written while it was open; ``folder`` is for copies."""

    def __init__(self, folder: str, ignored: tuple[str, ...] = ()) -> None:
        self._folder = folder
        self._pid = os.getpid()
        self._inside = threading.local()
        self._ignored = (*_NOT_FILES, *(_folder(path) for path in ignored))
        self._temporary, self._here = _folder(tempfile.gettempdir()), _folder(os.getcwd())
        self._written: dict[str, None] = {}
        self._removed: dict[str, None] = {}
        self._copies: dict[str, str] = {}
        self._bytes = 0
        self.put_back: list[str] = []
        self._lost: list[str] = []  # files that could not be restored

    def take(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Handles an audit event of Python; called on any thread, before the event happens."""
        answer = _EVENTS.get(event)
        if answer is None or os.getpid() != self._pid or getattr(self._inside, "now", False):
            return
        self._inside.now = True
        try:
            answer(self, *arguments)
        except (OSError, TypeError, ValueError):
            pass  # the script's call will report the error
        finally:
            self._inside.now = False

    def _path(self, given: Any) -> str:
        """The absolute path; "" if it is not a path, or irrelevant."""
        if isinstance(given, int) or given is None:
            return ""
        path = os.path.abspath(os.fsdecode(given))
        path = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
        if path.startswith(self._ignored) or "/__pycache__/" in path:
            return ""
        # Temporary files are ignored, unless the script works among them.
        if path.startswith(self._temporary) and not path.startswith(self._here):
            return ""
        return path

    def opened(self, given: Any, mode: Any, flags: int) -> None:
        if isinstance(flags, int) and flags & _WRITES:
            self.wrote(given, lost=bool(flags & os.O_TRUNC))

    def wrote(self, given: Any, *_: Any, lost: bool = False) -> None:
        path = self._path(given)
        if path:
            if lost:
                self._keep(path)
            self._written.setdefault(path)

    def moved(self, source: Any, target: Any, *_: Any) -> None:
        self.removed(source)
        self.wrote(target, lost=True)

    def removed(self, given: Any, *_: Any) -> None:
        path = self._path(given)
        if path:
            self._keep(path)
            if path in self._written:
                del self._written[path]
            else:
                self._removed.setdefault(path)

    def _keep(self, path: str) -> None:
        """Copies, once, a file that existed before the script wrote it."""
        if path in self._written or path in self._copies or not os.path.isfile(path):
            return
        size = os.path.getsize(path)
        if self._bytes + size > _MOST or size > shutil.disk_usage(self._folder).free / 2:
            return
        self._bytes += size
        copy = os.path.join(self._folder, f"{len(self._copies)}")
        shutil.copy2(path, copy)
        self._copies[path] = copy

    def restore(self) -> None:
        """Restores the contents of overwritten files, as far as they were kept."""
        for path, copy in self._copies.items():
            try:
                if os.path.isfile(path) and filecmp.cmp(path, copy, shallow=False):
                    continue
                with replaced(path) as temporary:
                    shutil.copy2(copy, temporary)
                self.put_back.append(path)
            except OSError:
                self._lost.append(path)

    @property
    def left(self) -> list[str]:
        """Files that the script created or deleted, and empty folders."""
        found = [p for p in self._written if os.path.lexists(p) and p not in self._copies]
        gone = [p for p in self._removed if not os.path.lexists(p)]
        folders = {p for p in found if stat.S_ISDIR(os.lstat(p).st_mode)}
        files = [p for p in found if p not in folders]
        empty = [d for d in folders if not any(p.startswith(d + "/") for p in files)]
        return sorted({*files, *empty, *gone, *self._lost})


def _folder(path: str) -> str:
    return os.path.join(os.path.realpath(path), "")


_EVENTS: dict[str, Callable[..., None]] = {
    "open": Journal.opened,
    "os.rename": Journal.moved,
    "os.mkdir": Journal.wrote,
    "os.remove": Journal.removed,
    "os.rmdir": Journal.removed,
    "os.truncate": lambda journal, path, *_: journal.wrote(path, lost=True),
    "os.link": lambda journal, source, target, *_: journal.wrote(target),
    "os.symlink": lambda journal, source, target, *_: journal.wrote(target),
    "sqlite3.connect": Journal.wrote,
    SAVED: lambda journal, path, *_: journal.wrote(path, lost=True),
}
_open_journal: Journal | None = None
_hooked = False


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if _open_journal is not None:
        _open_journal.take(event, arguments)


@contextlib.contextmanager
def journal(folder: str, ignored: tuple[str, ...] = ()) -> Iterator[Journal]:
    """Keeps a journal until the end, then restores files. One at a time in a process."""
    global _open_journal, _hooked
    if not _hooked:
        sys.addaudithook(_hook)  # permanently: Python has no way to remove it
        _hooked = True
    kept = _open_journal = Journal(folder, ignored)
    try:
        yield kept
    finally:
        _open_journal = None
        kept.restore()
