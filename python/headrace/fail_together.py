# SPDX-License-Identifier: Apache-2.0
"""Ranks that fail together: an error of one of them ends all, with its message, instead of leaving
them in a collective that it will never join.

Each rank has a thread that looks twice a second for a message in the process group's store. What
waits in Python is interrupted; what waits in a collective gets ``grace`` seconds to notice that its
peer is gone, and is ended with the message on standard error after that.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from types import TracebackType
from typing import Any

from headrace.arguments import seconds
from headrace.errors import Error, declare
from headrace.process_group import shared_store

_FAILED = declare(
    "HR0732",
    "data",
    "another rank has failed",
    "In a process group each rank needs all others: where one raises an error, the others would "
    "wait in their next collective until its timeout. Inside of hr.fail_together() they end, too, "
    "with that rank's message, which is the one to look at.",
)
_POLL = 0.5  # seconds
_MOST_TEXT = 4000  # characters of a message


class FailTogether:
    """``with hr.fail_together():`` around the training loop of each rank.

    Where the loop of one rank ends by an error (a bad record with on_error="raise", out of memory,
    anything), those of all others end, with headrace.Error HR0732 and that rank's message. Without
    a process group of torch.distributed, or with one rank, it does nothing.

    grace: seconds that a rank in a collective has to come out of it by itself; after them its
    process ends with exit status 1, its message on standard error. Ranks enter it at the same
    place, equally often.
    """

    def __init__(self, grace: float = 10.0) -> None:
        self._grace = seconds("grace", grace)
        self._store: Any = None
        self._rank, self._ranks = 0, 1
        self._left = threading.Event()
        self._message = ""
        self._main = False  # whether it can be interrupted in Python

    def __enter__(self) -> FailTogether:
        if (group := shared_store("fail_together")) is None:
            return self
        self._rank, self._ranks, self._store = group
        self._main = threading.current_thread() is threading.main_thread()
        threading.Thread(target=self._watch, name="headrace-ranks", daemon=True).start()
        return self

    def _watch(self) -> None:
        while not self._left.wait(_POLL):
            try:
                found = self._look()
            except Exception:
                return  # the store went with the rank that held it: collectives fail by themselves
            if found:
                self._interrupt()
                return

    def _look(self) -> bool:
        """Whether another rank has failed; its message is kept then, and it is told so."""
        if not self._message and self._store.check(["failed"]):
            self._message = self._store.get("failed").decode()
            self._store.add("seen", 1)
        return bool(self._message)

    def _interrupt(self) -> None:
        main = threading.main_thread().ident
        if self._main and main is not None:
            import signal

            signal.pthread_kill(main, signal.SIGINT)  # a real signal: it ends a sleep, too
        if self._left.wait(self._grace):
            return
        print(f"headrace: {self._error()}", file=sys.stderr, flush=True)
        os._exit(1)

    def _error(self) -> Error:
        told = _FAILED.error(
            self._message, note=f"this is rank {self._rank}, which has failed with it"
        )
        return Error(str(told), code=told.code, note=told.note)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._left.set()
        if self._store is None or error is None:
            return
        with contextlib.suppress(Exception):  # the store may be gone, with the rank that held it
            if not self._look() and isinstance(error, Exception):
                self._tell(error)
        if self._message:
            raise self._error() from error

    def _tell(self, error: Exception) -> None:
        """Leaves the message, and waits until the others have it: the store may end with us."""
        text = f"rank {self._rank}: {type(error).__name__}: {error}"[:_MOST_TEXT]
        self._store.set("failed", text)
        stop = time.monotonic() + self._grace
        while self._store.add("seen", 0) < self._ranks - 1 and time.monotonic() < stop:
            time.sleep(_POLL / 10)


def fail_together(grace: float = 10.0) -> FailTogether:
    return FailTogether(grace)


fail_together.__doc__ = FailTogether.__doc__
