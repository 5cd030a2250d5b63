# SPDX-License-Identifier: Apache-2.0
"""Makes ranks fail together: an error in one rank ends all ranks, with its message, instead of
leaving the others in a collective that the failed rank will never join.

Each rank has a thread that looks twice a second for a message in the process group's store. A rank
that waits in Python is interrupted; one that waits in a collective gets ``grace`` seconds to notice
that its peer is gone, then its process ends with the message on standard error.
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
    "The ranks of a process group wait for each other: if one rank raises an error, the others "
    "would hang in their next collective until it times out. Inside hr.fail_together() they end "
    "too, with that rank's message, which names the cause.",
)
_POLL = 0.5  # seconds
_MOST_TEXT = 4000  # characters of a message


class FailTogether:
    """``with hr.fail_together():`` around the training loop of each rank.

    If the loop of one rank ends with an error (a bad record with on_error="raise", out of memory,
    anything), the loops of all other ranks end too, with headrace.Error HR0732 and that rank's
    message. Without a process group of torch.distributed, or with one rank, it does nothing.

    grace: seconds that a rank may remain in a collective; after that its process ends with exit
    status 1 and a message on standard error. All ranks must enter it at the same point of the
    program.
    """

    def __init__(self, grace: float = 10.0) -> None:
        self._grace = seconds("grace", grace)
        self._store: Any = None
        self._rank, self._ranks = 0, 1
        self._left = threading.Event()
        self._message = ""
        self._main = False  # whether Python code can be interrupted there

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
                return  # the store is gone with its rank, which makes collectives fail
            if found:
                self._interrupt()
                return

    def _look(self) -> bool:
        """Whether another rank has failed; if so, stores its message and acknowledges it."""
        if not self._message and self._store.check(["failed"]):
            self._message = self._store.get("failed").decode()
            self._store.add("seen", 1)
        return bool(self._message)

    def _interrupt(self) -> None:
        main = threading.main_thread().ident
        if self._main and main is not None:
            import signal

            signal.pthread_kill(main, signal.SIGINT)  # a real signal, which also interrupts a sleep
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
        with contextlib.suppress(Exception):  # the store may be gone with the rank that held it
            if self._look():
                self._wait_for_the_others()
            elif isinstance(error, Exception):
                text = f"rank {self._rank}: {type(error).__name__}: {error}"[:_MOST_TEXT]
                self._store.set("failed", text)
                self._wait_for_the_others()
        if self._message:
            raise self._error() from error

    def _wait_for_the_others(self) -> None:
        """Waits until all ranks have the message, since the store ends with the rank that holds
        it."""
        stop = time.monotonic() + self._grace
        while self._store.add("seen", 0) < self._ranks - 1 and time.monotonic() < stop:
            time.sleep(_POLL / 10)


def fail_together(grace: float = 10.0) -> FailTogether:
    return FailTogether(grace)


fail_together.__doc__ = FailTogether.__doc__
