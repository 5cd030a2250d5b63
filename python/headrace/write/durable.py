# SPDX-License-Identifier: Apache-2.0
"""Turns disk errors into errors with a code; makes all files of a folder durable at once."""

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
    "or is not writable, or the disk fails. The destination itself is unchanged. "
    "Finished data is in DEST.partial: the same command resumes from there once the cause is "
    "fixed. HDF5 files and LeRobot datasets start over.",
)


@contextlib.contextmanager
def written_to(path: str | os.PathLike[str], resumes: bool = True) -> Iterator[None]:
    """Converts the system's errors while writing below ``path`` to HR0275. resumes: whether the
    next run continues with the existing files.
    """
    try:
        yield
    except Error:
        raise
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        hint = "free disk space" if full else "check the folder and its permissions"
        raise _NOT_WRITTEN.error(
            f"{error.strerror or error} ({os.fspath(path)})",
            hint=f"{hint}, then run the same command again"
            + (": it resumes" if resumes else "; unfinished files start over"),
        ) from error


def sync_all_below(folder: str | os.PathLike[str]) -> None:
    """Waits until everything written to the folder's disk is durable: one call for any number of
    files."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if ctypes.CDLL(None, use_errno=True).syncfs(descriptor) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), os.fspath(folder))
    finally:
        os.close(descriptor)
