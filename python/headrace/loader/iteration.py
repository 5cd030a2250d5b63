# SPDX-License-Identifier: Apache-2.0
"""One run of a loader over an epoch, and the shutdown of all loaders at process exit."""

from __future__ import annotations

import atexit
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from headrace import _core
from headrace.errors import Error, declare
from headrace.loader.form import Form
from headrace.loader.turn import CLOSED, Turn
from headrace.profiled import WAIT, region

_IN_A_WORKER = declare(
    "HR0800",
    "config",
    "loader inside a DataLoader worker",
    "A Headrace loader replaces a DataLoader: it has its own threads and divides each epoch over "
    "the ranks. Inside DataLoader workers, every worker would make all batches again and pickle "
    "them to the parent. Iterate loader.torch() instead of the DataLoader; if something requires "
    "a DataLoader, give it num_workers=0, batch_size=None and an IterableDataset whose __iter__ "
    "returns iter(loader.torch()).",
)


class Iteration:
    """One iteration over an epoch, on one thread at a time; the next one closes it. take: returns
    the next batch, None at the end, and keeps its owner alive until then.
    """

    def __init__(self, take: Callable[[Iteration], Any], turn: Turn, form: Form) -> None:
        self._take: Callable[[Iteration], Any] | None = take
        self._turn = turn
        self._number = turn.number
        self.form = form

    def __iter__(self) -> Iteration:
        return self

    def has_ended(self) -> bool:
        """Whether a later call of the loader ended it."""
        return self._turn.number != self._number

    def ended(self) -> Error:
        """The exception that __next__ raises once the iteration has ended."""
        return CLOSED.error(
            "this iterator was closed",
            hint="a later iter(), set_epoch(), load_state_dict() or close() ended it",
        )

    def __next__(self) -> Any:
        own = threading.get_ident()
        if self._turn.holder is not None:
            raise self.ended() if self.has_ended() else self._turn.taken()
        self._turn.holder = own
        try:
            with region(WAIT):
                batch = None if self._take is None else self._take(self)
            if batch is None:
                self._take = None
                raise StopIteration
            return batch
        finally:
            self._turn.holder = None


def refuse_dataloader_worker() -> None:
    """Raises ConfigError HR0800 in a worker process; a process that has not imported torch is not
    one.
    """
    data = sys.modules.get("torch.utils.data")
    worker = data.get_worker_info() if hasattr(data, "get_worker_info") else None  # type: ignore[union-attr]
    if worker is not None:
        raise _IN_A_WORKER.error(
            f"worker {worker.id} of {worker.num_workers} iterates it",
            hint="iterate loader.torch() directly, without a DataLoader around it",
        )


class Closing(Protocol):
    """An object whose threads may need the interpreter."""

    def close(self) -> None: ...


class _Live:
    """The live objects. Not a WeakSet: its callbacks are Python code in which a Ctrl-C would be
    lost.
    """

    def __init__(self) -> None:
        self._all: list[weakref.ref[Closing]] = []

    def add(self, one: Closing) -> None:
        self._all = [each for each in self._all if each() is not None]
        self._all.append(weakref.ref(one))

    def __iter__(self) -> Iterator[Closing]:
        return iter([one for each in self._all if (one := each()) is not None])


# Loaders end before the interpreter: their Python transforms run on a thread that needs it.
live = _Live()
_exiting = False


def exiting() -> bool:
    """Whether the interpreter is exiting, so that consumers on other threads are abandoned."""
    return _exiting


def _stream_hangs() -> bool:
    waits = sys.modules.get("headrace.sources.stream_wait")
    return waits is not None and bool(waits.any_hangs())


@atexit.register
def _close_all() -> None:
    global _exiting
    try:
        _core.throw_if_forked()
    except Exception:
        return  # a forked child has none of the threads
    _exiting = True
    interrupted = isinstance(getattr(sys, "last_value", None), KeyboardInterrupt)
    patient = not interrupted and not _stream_hangs()
    _core.begin_exit(patient=patient)
    try:
        for loader in live:
            loader.close()
        if _core.shutdown(patient=patient):
            return
    except KeyboardInterrupt:
        interrupted = True
    # A transform or a source in Python hangs: its thread cannot be stopped, only abandoned.
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(130 if interrupted else 1)
