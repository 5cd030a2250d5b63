# SPDX-License-Identifier: Apache-2.0
"""Runs a function in a forked child process, where it may crash, hang or exit.

The child sees all objects of the program without changing the parent's. It has a single thread; a
lock that another thread of the parent held is never released in the child, so the child has a time
limit, and is killed if it does not answer.
"""

from __future__ import annotations

import faulthandler
import fcntl
import gc
import os
import pickle
import signal
import stat
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

from headrace.readable import is_readable

SILENCE = 10.0  # seconds of silence after which the child is killed
_WORD = 0.2  # seconds between progress messages
_FIRST = 2.0  # seconds after which the remaining time is predicted
_FEW = 8  # minimum number of records for the prediction

Say = Callable[[int, int], None]  # the child's progress: (done, of)


class Ended(NamedTuple):
    """What the child process returned, or why it did not."""

    value: Any = None
    problem: str = ""


def can_fork() -> bool:
    return hasattr(os, "fork") and sys.platform != "darwin"


def run(work: Callable[[Say], Any], limit: float, raise_limit: str = "") -> Ended:
    """Runs ``work(say)`` and returns its result. It must call ``say(done, of)`` often; if it would
    not finish within ``limit`` seconds, it is killed. raise_limit: text on how to raise the
    limit."""
    reader, writer = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python 3.12's warning about forks with threads
        child = os.fork()
    if child == 0:
        os.close(reader)
        _be_child(work, writer)
    os.close(writer)
    try:
        ended = _answer_of(reader, limit, raise_limit)
    finally:
        status = _end(child)
        os.close(reader)
    if ended is None:
        how = f"by {signal.Signals(status).name}" if status else "without a message"
        return Ended(problem=f"the child process that ran it ended {how}")
    return ended


def _be_child(work: Callable[[Say], Any], writer: int) -> None:
    code = 1
    try:
        faulthandler.disable()  # it would write to the descriptor that it was enabled with
        gc.freeze()  # keeps the garbage collector from touching the parent's objects, so that their
        # pages stay shared
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the parent, which ends the
        # child
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)
        _reopen_files(nothing)
        torch = sys.modules.get("torch")
        if torch:
            torch.set_num_threads(1)  # OpenMP's other threads do not exist in the child
        last = 0.0

        def say(done: int, of: int) -> None:
            nonlocal last
            now = time.monotonic()
            if now - last > _WORD:
                last = now
                _send(writer, (done, of))

        _send(writer, Ended(work(say)))
        code = 0
    finally:
        os._exit(code)


def _reopen_files(nothing: int) -> None:
    """Gives open files separate positions, so that reads do not move the parent's. Writes to them
    are discarded."""
    for name in os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else ():
        number = int(name)
        try:
            if number <= 2 or not stat.S_ISREG(os.fstat(number).st_mode):
                continue
            if fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE == os.O_WRONLY:
                os.dup2(nothing, number)
                continue
            again = os.open(f"/proc/self/fd/{number}", os.O_RDONLY)
            os.lseek(again, os.lseek(number, 0, os.SEEK_CUR), os.SEEK_SET)
            os.dup2(again, number)
            os.close(again)
        except OSError:
            continue


def _answer_of(reader: int, limit: float, raise_limit: str) -> Ended | None:
    """The child's answer; None if it ended without one."""
    began = time.monotonic()
    done = 0
    while True:
        try:
            word = _received(reader)
        except TimeoutError:
            return Ended(problem=f"record {done} gave no answer for {SILENCE:g} s")
        if word is None or isinstance(word, Ended):
            return word
        done, of = word
        passed = time.monotonic() - began
        expected = passed * of / max(done, 1)
        known = done >= _FEW or passed > limit  # the first ones import modules
        if known and passed > min(_FIRST, limit) and expected > limit:
            return Ended(
                problem=f"tracing {of:,} records would take about {expected:.0f} s, and the limit "
                f"is {limit:g} s{raise_limit}"
            )


def _end(child: int) -> int:
    """Ends the child, and returns the signal that had already ended it; 0 if none had."""
    for _ in range(100):  # a child that has closed its pipe is about to exit
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return 0


def _send(writer: int, value: Any) -> None:
    data = pickle.dumps(value, protocol=5)
    left = memoryview(len(data).to_bytes(8, "little") + data)
    while left:
        left = left[os.write(writer, left) :]


def _received(reader: int) -> Any:
    """The next value; None at the end. Raises TimeoutError after ``SILENCE`` seconds."""
    size = _bytes(reader, 8)
    data = _bytes(reader, int.from_bytes(size, "little")) if size else b""
    return pickle.loads(data) if data else None


def _bytes(reader: int, count: int) -> bytes:
    parts = []
    while count:
        if not is_readable(reader, SILENCE):
            raise TimeoutError
        part = os.read(reader, min(count, 1 << 20))
        if not part:
            return b""
        parts.append(part)
        count -= len(part)
    return b"".join(parts)
