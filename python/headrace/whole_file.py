# SPDX-License-Identifier: Apache-2.0
"""Writing a file whole: where the system refuses, a full disk for one, it is as it was before."""

from __future__ import annotations

import contextlib
import os


def write_whole(path: str | os.PathLike[str], data: bytes | str) -> None:
    """Makes or replaces the file; text as UTF-8. A device or a pipe is written to as it is.

    >>> import tempfile
    >>> place = os.path.join(tempfile.mkdtemp(), "x.txt")
    >>> write_whole(place, "text")
    >>> open(place).read(), os.listdir(os.path.dirname(place))
    ('text', ['x.txt'])
    """
    name = os.fspath(path)
    there = os.path.realpath(name)  # a link goes on leading to what it names
    special = os.path.exists(there) and not os.path.isfile(there)
    place = there if special else f"{there}.partial"
    try:
        with open(place, "wb") as file:
            file.write(data.encode("utf-8", "surrogateescape") if isinstance(data, str) else data)
        if not special:
            os.replace(place, there)
    except OSError as error:
        if not special:
            with contextlib.suppress(OSError):
                os.unlink(place)
        raise OSError(error.errno, error.strerror, name) from None
