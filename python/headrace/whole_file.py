# SPDX-License-Identifier: Apache-2.0
"""Writes a file atomically: if the disk is full or the power fails, the previous file is unchanged.

The bytes are first written to a temporary file next to it, under a unique name. The temporary file
is removed if writing fails; files left by a killed process can be recognized by their name.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Iterator

TEMPORARY = re.compile(r"\.headrace-[0-9a-f]{32}")  # pattern of names of unfinished files


def write_whole(path: str | os.PathLike[str], data: bytes | str) -> None:
    """Makes or replaces the file; text as UTF-8. Devices and pipes are written to directly.

    >>> import tempfile
    >>> place = os.path.join(tempfile.mkdtemp(), "x.txt")
    >>> write_whole(place, "text")
    >>> open(place).read(), os.listdir(os.path.dirname(place))
    ('text', ['x.txt'])
    """
    name = os.fspath(path)
    target = os.path.realpath(name)  # a symbolic link is kept, and its target replaced
    if isinstance(data, str):
        data = data.encode("utf-8", "surrogateescape")
    try:
        if os.path.exists(target) and not os.path.isfile(target):
            with open(target, "wb") as special:
                special.write(data)
            return
        with replaced(target) as temporary, open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise OSError(error.errno, error.strerror, name) from None
    with contextlib.suppress(
        OSError
    ):  # for a folder that cannot be synchronized, or is not readable
        sync(os.path.dirname(target))


@contextlib.contextmanager
def replaced(path: str) -> Iterator[str]:
    """An empty file next to ``path``, with the same permissions, which is renamed to ``path`` at
    the end."""
    temporary = os.path.join(os.path.dirname(path), f".headrace-{os.urandom(16).hex()}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    os.close(os.open(temporary, flags, 0o666))  # fails if the name is taken
    try:
        with contextlib.suppress(OSError):
            os.chmod(temporary, os.stat(path).st_mode & 0o777 | stat.S_IWUSR)
        yield temporary
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def sync(path: str | os.PathLike[str]) -> None:
    """Waits until a file's contents, or a folder's entries, are on disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
