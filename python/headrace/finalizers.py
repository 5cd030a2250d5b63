# SPDX-License-Identifier: Apache-2.0
"""Finalizers that do not lose a Ctrl-C. Python calls finalizers between two statements of the
running program and ignores their exceptions, even a KeyboardInterrupt: the program would continue
as if Ctrl-C had not been pressed.
"""

from __future__ import annotations

import sys
import threading
import time
import weakref
from collections.abc import Callable
from types import FrameType

_PAUSE = 0.02  # seconds between two checks of what the main thread runs


def on_drop(owner: object, function: Callable[..., object], *arguments: object) -> None:
    """Calls the function when ``owner`` is dropped, or when the interpreter exits. If a Ctrl-C ends
    the call, it is repeated, and KeyboardInterrupt is raised in the program after it.
    """
    weakref.finalize(owner, _whole, function, *arguments)


def _whole(function: Callable[..., object], *arguments: object) -> None:
    try:
        function(*arguments)
    except KeyboardInterrupt:
        threading.Thread(target=_interrupt_after_finalizers, daemon=True).start()
        function(*arguments)


def _interrupt_after_finalizers() -> None:
    import signal  # imported when needed: few programs get here

    main = threading.main_thread().ident
    assert main is not None
    while _finalizes(sys._current_frames().get(main)):
        time.sleep(_PAUSE)
    # A real signal: _thread.interrupt_main() does not end a system call such as time.sleep.
    signal.pthread_kill(main, signal.SIGINT)


_FINALIZERS = {_whole.__code__, weakref.finalize.__call__.__code__}


def _finalizes(frame: FrameType | None) -> bool:
    while frame and frame.f_code not in _FINALIZERS:
        frame = frame.f_back
    return frame is not None
