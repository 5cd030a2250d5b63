# SPDX-License-Identifier: Apache-2.0
"""One run of a loader over an epoch, and the end of all loaders with the process."""

from __future__ import annotations

import atexit
import os
import sys
import weakref
from typing import TYPE_CHECKING, Any

from headrace import _core

if TYPE_CHECKING:
    from headrace.loader import Loader


class Iteration:
    """One run over an epoch; a later one closes it."""

    def __init__(self, loader: Loader, generation: int) -> None:
        self._loader: Loader | None = loader
        self._generation = generation

    def __iter__(self) -> Iteration:
        return self

    def __next__(self) -> Any:
        if self._loader is None:
            raise StopIteration
        try:
            return self._loader._next(self._generation)
        except StopIteration:
            self._loader = None
            raise


# Loaders end before the interpreter does: their Python steps run on a thread that needs it.
live: weakref.WeakSet[Loader] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    try:
        _core.throw_if_forked()
    except Exception:
        return  # a forked child has none of the threads
    interrupted = isinstance(getattr(sys, "last_value", None), KeyboardInterrupt)
    try:
        for loader in list(live):
            loader.close()
        if _core.shutdown(patient=not interrupted):
            return
    except KeyboardInterrupt:
        pass
    # A step or a source in Python hangs: its thread cannot be ended, only left.
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(130)
