# SPDX-License-Identifier: Apache-2.0
"""One run of a loader over an epoch, and the end of all loaders with the process."""

from __future__ import annotations

import atexit
import os
import sys
import weakref
from typing import TYPE_CHECKING, Any, Protocol

from headrace import _core
from headrace.errors import declare

if TYPE_CHECKING:
    from headrace.delivered import Form
    from headrace.loader import Loader

_IN_A_WORKER = declare(
    "HR0800",
    "config",
    "a loader inside a worker process of torch's DataLoader",
    "A Headrace loader takes the place of a DataLoader: it has threads of its own and divides each "
    "epoch over the ranks. Inside a worker process every worker would make all batches anew and "
    "pickle them to the parent. Iterate loader.torch() where the DataLoader was; if something "
    "insists on a DataLoader, give it num_workers=0 and batch_size=None.",
)


class Iteration:
    """One run over an epoch; a later one closes it."""

    def __init__(self, loader: Loader, generation: int, form: Form) -> None:
        self._loader: Loader | None = loader
        self._generation = generation
        self._form = form

    def __iter__(self) -> Iteration:
        return self

    def __next__(self) -> Any:
        if self._loader is None:
            raise StopIteration
        try:
            return self._loader._next(self._generation, self._form)
        except StopIteration:
            self._loader = None
            raise


def refuse_dataloader_worker() -> None:
    """ConfigError HR0800 in a worker process; a process that never imported torch is none."""
    data = sys.modules.get("torch.utils.data")
    worker = data.get_worker_info() if hasattr(data, "get_worker_info") else None  # type: ignore[union-attr]
    if worker is not None:
        raise _IN_A_WORKER.error(
            f"worker {worker.id} of {worker.num_workers} iterates it",
            hint="iterate loader.torch() itself, without a DataLoader around it",
        )


class Closing(Protocol):
    """What has threads, which may need the interpreter."""

    def close(self) -> None: ...


# Loaders end before the interpreter does: their Python steps run on a thread that needs it.
live: weakref.WeakSet[Closing] = weakref.WeakSet()


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
