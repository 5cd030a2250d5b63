# SPDX-License-Identifier: Apache-2.0
"""Records of the logger "headrace", for programs that use logging.

Importing Headrace does not import logging. A program without it has no handlers, so nothing is
lost if no record is made.
docs/guide/looking.md lists the events.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

INFO, WARNING = 20, 30  # logging's own numbers


def is_heard() -> bool:
    """Whether the program has imported logging; only then a record may have a reader."""
    # The name is one of the last that the module defines: another thread may be importing it.
    return hasattr(sys.modules.get("logging"), "captureWarnings")


def log(
    level: int,
    event: str,
    message: str,
    *,
    code: str = "",
    file: str = "",
    record: int | None = None,
    **more: Any,
) -> None:
    """A record from the line that called Headrace. Every record has ``event``, ``code``, ``file``
    and ``record``, so that a format string may use them; ``more``: additional attributes. Text is
    made printable, because handlers fail on names that are not valid UTF-8.
    """
    if not is_heard():
        return
    import logging

    from headrace.printable import printable

    logger = logging.getLogger("headrace")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())  # nothing is printed unless the program wants it
    if not logger.isEnabledFor(level):
        return
    fields = {"event": event, "code": code, "file": file, "record": record, **more}
    for name, value in fields.items():
        if isinstance(value, str):
            fields[name] = printable(value)
    stacklevel = frames_up(sys._getframe())
    logger.log(level, "%s", printable(message), extra=fields, stacklevel=stacklevel)


def frames_up(frame: FrameType | None) -> int:
    """The stacklevel of the first frame outside of Headrace; 1 is ``frame``."""
    level = 1
    while frame and frame.f_back and frame.f_globals["__name__"].startswith("headrace."):
        frame, level = frame.f_back, level + 1
    return level
