# SPDX-License-Identifier: Apache-2.0
"""What is done when an object is dropped, without losing a Ctrl-C that arrives meanwhile.

Python calls finalizers between two statements of whatever program runs, and ignores what they
raise: a KeyboardInterrupt, too, after which a loop goes on as if nobody had pressed Ctrl-C.
"""

from __future__ import annotations

import sys
import threading
import time
import weakref
from collections.abc import Callable
from types import FrameType

_PAUSE = 0.02  # seconds between two looks at what the main thread runs


def on_drop(owner: object, function: Callable[..., object], *arguments: object) -> None:
    """Calls the function when ``owner`` is dropped, or when the interpreter exits. If a Ctrl-C
    ends the call, it is made again, and KeyboardInterrupt is raised in the program after it."""
    weakref.finalize(owner, _whole, function, *arguments)


def _whole(function: Callable[..., object], *arguments: object) -> None:
    try:
        function(*arguments)
    except KeyboardInterrupt:
        threading.Thread(target=_interrupt_after_finalizers, daemon=True).start()
        function(*arguments)


def _interrupt_after_finalizers() -> None:
    import signal  # loaded when needed: few programs get here

    main = threading.main_thread().ident
    assert main is not None
    while _finalizes(sys._current_frames().get(main)):
        time.sleep(_PAUSE)
    # A real one: _thread.interrupt_main() does not end a wait in the system, such as time.sleep.
    signal.pthread_kill(main, signal.SIGINT)


_FINALIZERS = {_whole.__code__, weakref.finalize.__call__.__code__}


def _finalizes(frame: FrameType | None) -> bool:
    while frame and frame.f_code not in _FINALIZERS:
        frame = frame.f_back
    return frame is not None
