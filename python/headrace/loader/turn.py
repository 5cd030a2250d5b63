# SPDX-License-Identifier: Apache-2.0
"""Lets only one thread at a time advance a loader or a prefetcher."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from headrace.errors import Error, declare

_Done = TypeVar("_Done")

_TAKEN = declare(
    "HR0190",
    "config",
    "iterator already in use",
    "A thread requested a batch while another thread, or a signal handler of the same thread, was "
    "waiting for one. Which of them gets which batch would be arbitrary, so it is an error, as "
    "with generators. Let one thread take the batches and pass them on, with a queue.Queue for "
    "instance.",
)
CLOSED = declare(
    "HR0161",
    "config",
    "iteration has ended",
    "A loader has one iteration at a time: a new iter(), load_state_dict(), set_epoch() or "
    "close() ends the previous one. Use two loaders to read a source twice at the same time; they "
    "share their threads.",
)


class Turn:
    """Coordinates consumers. A consumer takes its turn in __next__ and never waits for it. A call
    that ends the iteration takes the turn over: it increments ``number``, and a waiting consumer
    then leaves. A signal handler may do so inside its own thread's __next__.
    """

    def __init__(self) -> None:
        self.number = 0  # number of the present iteration; those with other numbers have ended
        # The thread whose turn it is. A consumer checks for None and sets it without a call in
        # between, during which another thread or a signal handler could run, and resets it in a
        # finally.
        self.holder: int | None = None

    def taken(self) -> Error:
        """The exception for a consumer whose turn is taken."""
        return _TAKEN.error(
            "another call waits for its next batch",
            hint="take batches in one thread, and pass them on",
        )

    def take_over(self, work: Callable[[], _Done], patience: float = math.inf) -> _Done:
        """Runs ``work`` once no consumer is active, or after this many seconds, and returns its
        result.
        """
        self.number += 1
        own = threading.get_ident()
        deadline = time.monotonic() + patience
        while self.holder not in (None, own) and time.monotonic() < deadline:
            time.sleep(0.005)  # signals are handled
        before, self.holder = self.holder, own
        try:
            self.number += 1  # also ends an iteration that another thread has begun
            return work()
        finally:
            # A consumer that exceeded the time limit may have left in the meantime.
            self.holder = before if before == own else None
