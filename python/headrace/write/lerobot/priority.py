# SPDX-License-Identifier: Apache-2.0
"""Restores the thread priorities that a video encoder changes."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

_THREADS = "/proc/self/task"


@contextlib.contextmanager
def kept_priority() -> Iterator[None]:
    """Undoes what libsvtav1 does when it is opened by root, as in most containers: it makes the
    calling thread and its own threads real-time threads, which leave other threads of the machine
    hardly any time. Processes that the thread starts later would inherit this.
    """
    if not os.path.isdir(_THREADS):
        yield
        return
    policy, parameters = os.sched_getscheduler(0), os.sched_getparam(0)
    others = set(os.listdir(_THREADS))
    try:
        yield
    finally:
        if os.sched_getscheduler(0) != policy:
            for thread in (0, *map(int, set(os.listdir(_THREADS)) - others)):
                with contextlib.suppress(ProcessLookupError):
                    os.sched_setscheduler(thread, policy, parameters)
