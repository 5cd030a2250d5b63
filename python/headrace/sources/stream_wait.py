# SPDX-License-Identifier: Apache-2.0
"""The wait for a stream's next record: where the iterable waits, and how the wait ends
(record_timeout=).
"""

from __future__ import annotations

import sys
import threading
import time
from typing import NamedTuple

from headrace.errors import Error, declare

LATE = declare(
    "HR0698",
    "data",
    "stream record not returned in time",
    "The iterable did not return its next record within record_timeout= seconds. Python code "
    "cannot be interrupted from another thread, so its thread is abandoned, and the stream cannot "
    "continue: on_error= does not apply. Without record_timeout= the loader waits, and warns after "
    "patience= seconds.",
)


class _Asked(NamedTuple):
    number: int  # of the record
    since: float
    thread: int


class StreamWait:
    """The wait for one record at a time; ``begin`` and ``end`` are called by the thread that waits,
    the others by any thread.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._asked: _Asked | None = None
        self._abandoned: _Asked | None = None

    def begin(self, number: int) -> None:
        self._asked = _Asked(number, time.monotonic(), threading.get_ident())

    def end(self) -> None:
        self._asked = None

    def text(self) -> str:
        """Which record the iterable is making, for how long, and where; empty if it makes none."""
        if (asked := self._asked) is None:
            return ""
        text = f"{self._name} has not returned record {asked.number:,}"
        text += f" for {int(time.monotonic() - asked.since)} s"
        frame, own_code = sys._current_frames().get(asked.thread), ""
        while frame and not str(frame.f_globals.get("__name__")).startswith("headrace."):
            code = frame.f_code  # in the end that of the iterable itself, not of what it calls
            own_code = f" (in {code.co_name}, {code.co_filename}, line {frame.f_lineno})"
            frame = frame.f_back
        return text + own_code

    def error_after(self, since: float, seconds: float) -> Error | None:
        """An error (HR0698) if the record has taken longer since that time, and is abandoned."""
        asked = self._asked
        if asked is None or time.monotonic() - max(asked.since, since) < seconds:
            return None
        if not self.hangs:
            self._abandoned = asked
            _abandoned.append(self)
        return LATE.error(
            self.text(), hint="use a longer record_timeout=, or a timeout inside the iterable"
        )

    @property
    def hangs(self) -> bool:
        """Whether the iterable is still making a record that was abandoned."""
        return self._asked is not None and self._asked is self._abandoned


_abandoned: list[StreamWait] = []


def any_hangs() -> bool:
    """Whether an iterable of this process is still making an abandoned record."""
    return any(wait.hangs for wait in _abandoned)
