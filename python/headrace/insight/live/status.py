# SPDX-License-Identifier: Apache-2.0
"""The status line: its text, and where to write it without disturbing other output."""

from __future__ import annotations

import sys
from typing import Any

from headrace.insight.live.meter import Figures
from headrace.insight.model.verdict import FED_SHARE
from headrace.insight.report.wording import number, size
from headrace.printable import printable

_APART = 60.0  # seconds between lines where lines are not overwritten


def line(recent: Figures, resident_bytes: int, name: str = "", ranks: str = "") -> str:
    """One line about the last half minute: ``headrace: fed, waits 1.2 %, 5,812 records/s, ...``

    ranks: the text about other ranks.
    """
    parts = [_word(recent)]
    share = recent.wait_share
    if share is not None and recent.batches:
        parts.append(f"waits {100 * share:.1f} %")
        parts.append(f"{number(recent.rate(recent.records))} records/s")
        parts.append(f"{number(recent.rate(recent.batches))} batches/s")
    if ranks:
        parts.append(ranks)
    if resident_bytes:
        parts.append(size(resident_bytes))
    return f"headrace{' ' + name if name else ''}: " + ", ".join(parts)


def _word(recent: Figures) -> str:
    share = recent.wait_share
    if share is None:
        return "no loop"
    if not recent.batches:
        waiting = recent.waiting
        return f"no batch for {waiting:.0f} s" if waiting else "in a long step"
    return "fed" if share <= FED_SHARE else "waits for data"


class Writer:
    """Writes lines to standard error: on a terminal replacing the last one, elsewhere one per
    minute, so that a log file stays readable. tqdm's bars are redrawn below.
    """

    def __init__(self, every: float) -> None:
        self._every = every
        self._last: float | None = None
        self._open = False  # the last line is not terminated yet

    def due(self, now: float) -> bool:
        """Whether it is time for a line; the first call only starts the clock."""
        if self._last is None:
            self._last = now
            return False
        apart = self._every if _is_terminal() and not _bars() else max(self._every, _APART)
        if now - self._last < apart:
            return False
        self._last = now
        return True

    def write(self, text: str) -> None:
        stream, text = sys.stderr, printable(text, lines=False)
        if stream is None:
            return
        try:
            if _bars():
                sys.modules["tqdm"].tqdm.write(text, file=stream)
            elif _is_terminal():
                stream.write(f"\r{text}\x1b[K")
                stream.flush()
                self._open = True
            else:
                stream.write(text + "\n")
                stream.flush()
        except (OSError, ValueError):  # closed, or without a reader
            pass

    def end(self) -> None:
        """Leaves the last line on the terminal."""
        if self._open and sys.stderr is not None:
            self._open = False
            try:
                sys.stderr.write("\n")
                sys.stderr.flush()
            except (OSError, ValueError):
                pass


def _is_terminal() -> bool:
    try:
        return sys.stderr is not None and sys.stderr.isatty()
    except ValueError:  # closed
        return False


def _bars() -> bool:
    """Whether tqdm has bars on the screen; only checked if the program has imported it."""
    tqdm: Any = sys.modules.get("tqdm")
    return bool(getattr(getattr(tqdm, "tqdm", None), "_instances", ()))
