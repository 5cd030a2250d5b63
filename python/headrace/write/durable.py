# SPDX-License-Identifier: Apache-2.0
"""A disk that refuses is an error with a code; and all files of a folder made safe at once."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
from collections.abc import Iterator

from headrace.errors import Error, declare

_NOT_WRITTEN = declare(
    "HR0275",
    "storage",
    "could not write the conversion",
    "The operating system failed to write: the disk or a quota is full, the folder does not exist "
    "or is not writable, or the disk fails. Nothing was written at the destination itself. "
    "Finished data is in DEST.partial: the same command resumes from there once the cause is "
    "fixed.",
)


@contextlib.contextmanager
def written_to(path: str | os.PathLike[str]) -> Iterator[None]:
    """Around writing below ``path``: what the system refuses becomes HR0275."""
    try:
        yield
    except Error:
        raise
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        hint = "make room on the disk" if full else "look at the folder and its permissions"
        raise _NOT_WRITTEN.error(
            f"{error.strerror or error} ({os.fspath(path)})",
            hint=f"{hint}, then run the same command again: it goes on",
        ) from error


def sync_all_below(folder: str | os.PathLike[str]) -> None:
    """Waits for all that was written on the folder's disk: one call for any number of files."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if ctypes.CDLL(None, use_errno=True).syncfs(descriptor) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), os.fspath(folder))
    finally:
        os.close(descriptor)
