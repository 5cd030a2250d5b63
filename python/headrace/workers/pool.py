# SPDX-License-Identifier: Apache-2.0
"""Processes for Python transforms that hold the GIL: ``Loader(..., python_workers=N)``.

The engine calls a step with many records; with workers, each call goes to one of N processes, so N
calls run at once. Processes are spawned, so only the steps are copied, by pickle. Arrays are passed
in anonymous shared memory (shared_block.py).
"""

from __future__ import annotations

import contextlib
import os
import pickle
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from headrace import _core
from headrace.errors import ConfigError, declare
from headrace.library_steps import Kinds, Words
from headrace.steps import Step, can_be_read
from headrace.workers.shared_block import Block, Channel

# multiprocessing, socket and subprocess take as long to import as all of this package, so only code
# that starts processes imports them. multiprocessing records the current folder on import.
_FOLDER = getattr(sys.modules.get("multiprocessing.process"), "ORIGINAL_DIR", None)
with contextlib.suppress(OSError):
    _FOLDER = _FOLDER or os.getcwd()

_NOT_PICKLABLE = declare(
    "HR0830",
    "config",
    "Python transform cannot be pickled",
    "python_workers= runs Python transforms in other processes, which find them by module and "
    "function name. A lambda, a nested function, and an object that holds an open file or a lock "
    "cannot be found that way: define the transform at the top level of a module, or as a class "
    "there with a __call__ method and plain attributes.",
)
_NOT_FOUND = declare(
    "HR0831",
    "config",
    "Python worker could not start",
    "A process of python_workers= imports the main script (under another name, so that code under "
    "`if __name__ == '__main__':` does not run) and the modules of the transforms. One of these "
    "imports failed; the message shows the exception.",
)
_NO_GUARD = declare(
    "HR0832",
    "config",
    "importing the script starts workers",
    "Processes of python_workers= import the main script to find the transforms it defines. If "
    "the import starts processes again, this never ends. Put code that should run once, above "
    "all the loop over the loader, under `if __name__ == '__main__':`.",
)
_ENDED = declare(
    "HR0833",
    "storage",
    "Python worker ended",
    "A process of python_workers= ended while it worked on records. SIGKILL usually comes from "
    "the system running out of memory; SIGSEGV is a bug in a library used by the transform, with "
    "a Python traceback in the program's output. The records are probably not the cause, so "
    "on_error= does not apply. The next iteration starts another process.",
)

Record = tuple[list[Any], Words]

_MESSAGE_BYTES = 4 << 20  # bytes of arrays per message, unless one record has more
_PATIENCE = 0.5  # seconds within which an idle worker should exit


class Worker:
    """One worker process, as seen by the loader."""

    def __init__(self, number: int, setup: Block) -> None:
        import socket
        import subprocess

        self.number = number
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        lifeline, self._lifeline = os.pipe()
        outgoing, incoming = Block(), Block()
        self._channel = Channel(ours, outgoing, incoming)
        try:
            self.process = subprocess.Popen(
                _command(theirs.fileno(), lifeline),
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(), lifeline),
                env=_environment(),
            )
            if cores := _core.cores_beyond_inherited():
                with contextlib.suppress(OSError):  # gone already; await_ready reports it
                    os.sched_setaffinity(self.process.pid, cores)
            descriptors = [setup.descriptor, outgoing.descriptor, incoming.descriptor]
            socket.send_fds(ours, [b"\0"], descriptors)
        except BaseException:
            self._close_ends()
            raise
        finally:
            theirs.close()
            os.close(lifeline)
        self.broken = False

    def await_ready(self) -> None:
        """Raises ConfigError if the process cannot find the steps."""
        try:
            failure = self._channel.receive()
        except EOFError:
            raise _NOT_FOUND.error(
                f"its process {self._how_it_ended()}", hint="see its output"
            ) from None
        if not failure:
            return
        if _NO_GUARD.id in failure[0]:
            raise _NO_GUARD.error(
                f"{sys.argv[0] or 'the main script'} iterates over a loader with python_workers=",
                hint="put it under if __name__ == '__main__':, or in a function that is called "
                "there",
            )
        raise _NOT_FOUND.error(
            failure[0],
            hint="define the transforms in a module that can be imported, not at a prompt",
        )

    def run(self, number: int, step: Step, records: list[Record], kinds: Kinds) -> list[Any]:
        """The step's results for the records."""
        try:
            self._channel.send([(number, records, kinds)])
            return self._channel.receive()
        except (EOFError, ConnectionError):
            self.broken = True
            raise _ENDED.error(
                f"[{step.name}] worker {self.number} (process {self.process.pid}) "
                f"{self._how_it_ended()} while it worked on {len(records)} records",
                hint="python_workers=0 runs the transform in this process",
            ) from None
        except BaseException:  # Ctrl-C: its pending answer would not be received
            self.broken = True
            self.process.kill()
            raise

    def _how_it_ended(self) -> str:
        from signal import Signals
        from subprocess import TimeoutExpired

        try:
            status = self.process.wait(_PATIENCE)
        except TimeoutExpired:
            self.process.kill()
            return "closed its socket"
        if status >= 0:
            return f"exited with status {status}"
        try:
            return f"was ended by {Signals(-status).name}"
        except ValueError:
            return f"was ended by signal {-status}"

    @property
    def shared_bytes(self) -> int:
        return self._channel.extent

    def end(self, *, patiently: bool) -> None:
        """Ends the process; callers of run() get an error."""
        if patiently and not self.broken:
            self._channel.end()
        else:
            self.process.kill()

    def dispose(self, patience: float = 0) -> None:
        """Waits for the process to end and closes everything. REQUIRES: run() is not active."""
        from subprocess import TimeoutExpired

        try:
            self.process.wait(patience)
        except TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._close_ends()

    def _close_ends(self) -> None:
        self._channel.close()
        if self._lifeline >= 0:
            os.close(self._lifeline)
        self._lifeline = -1


class Pool:
    """A loader's workers. They start with its first iteration and end with close()."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._steps: list[Step] = []
        self._pickled: list[bytes] = []
        self._owner = os.getpid()
        self._changed = threading.Condition()  # guards everything below
        self._workers: list[Worker] = []
        self._idle: list[Worker] = []
        self._closed = False
        self._messages = 0
        self._records = 0

    def runner(self, step: Step) -> Callable[[list[Record], Kinds], Iterable[Any]]:
        """The engine's function for the step. Raises ConfigError if the step cannot be pickled."""
        known = [number for number, each in enumerate(self._steps) if each is step]
        if not known:
            self._pickled.append(_pickled(step))
            self._steps.append(step)
        number = known[0] if known else len(self._steps) - 1
        return lambda records, kinds: self._run(number, records, kinds)

    @property
    def processes(self) -> int:
        """The number of processes: 0 without Python steps."""
        return self.count if self._steps else 0

    def start(self) -> None:
        """Starts the processes and waits until all are ready; does nothing if they are running."""
        with self._changed:
            if self._closed or self._workers or not self._steps:
                return
            from headrace.workers import process

            if process.importing_main:
                raise _NO_GUARD.error(
                    "a loader with python_workers= is iterated while the script is imported"
                )
            self._workers = self._spawn(range(1, self.count + 1))
            self._idle = list(self._workers)

    def _spawn(self, numbers: Iterable[int]) -> list[Worker]:
        setup = Block()
        message = pickle.dumps((_main_module(), self._pickled))
        started: list[Worker] = []
        try:
            setup.memory(len(message))[: len(message)] = message
            for number in numbers:
                started.append(Worker(number, setup))
            for worker in started:
                worker.await_ready()
        except BaseException:
            for worker in started:
                worker.end(patiently=False)
                worker.dispose()
            raise
        finally:
            setup.close()
        return started

    def _run(self, number: int, records: list[Record], kinds: Kinds) -> Iterable[Any]:
        step = self._steps[number]
        step.check(kinds)
        if not all(map(can_be_read, records[0][0])):
            return step.run(records, kinds)  # which reports the reason for each record
        self.start()
        worker = self._take(step)
        try:
            if worker.broken:
                worker = self._replaced(worker, step)
            results: list[Any] = []
            for message in _messages(records):
                results += worker.run(number, step, message, kinds)
                with self._changed:
                    self._messages += 1
                    self._records += len(message)
            return results
        finally:
            self._put_back(worker)

    def _take(self, step: Step) -> Worker:
        with self._changed:
            while not self._idle and not self._closed:
                self._changed.wait()
            if self._closed:
                raise _ENDED.error(f"[{step.name}] its loader was closed")
            return self._idle.pop()

    def _put_back(self, worker: Worker) -> None:
        with self._changed:
            if not self._closed:
                self._idle.append(worker)
            else:
                worker.dispose()
                self._workers.remove(worker)
            self._changed.notify_all()

    def _replaced(self, worker: Worker, step: Step) -> Worker:
        worker.dispose()
        try:
            (fresh,) = self._spawn([worker.number])
        except ConfigError as failure:
            raise _ENDED.error(f"[{step.name}] cannot start another worker: {failure}") from failure
        with self._changed:
            self._workers[self._workers.index(worker)] = fresh
        return fresh

    def counters(self) -> dict[str, Any]:
        """Process ids, numbers of messages and records so far, bytes of shared memory."""
        with self._changed:
            workers = [worker for worker in self._workers if not worker.broken]
            return {
                "processes": [worker.process.pid for worker in workers],
                "messages": self._messages,
                "records": self._records,
                "shared_bytes": sum(worker.shared_bytes for worker in workers),
            }

    def close(self) -> None:
        """Ends the processes: idle ones exit, those inside a step are killed."""
        if os.getpid() != self._owner:
            return  # a forked child has none of the threads, and the workers are not its children
        with self._changed:
            self._closed = True
            leaving, self._idle = self._idle, []
            for worker in self._workers:
                worker.end(patiently=worker in leaving)
            deadline = time.monotonic() + _PATIENCE
            for worker in leaving:
                worker.dispose(max(0, deadline - time.monotonic()))
                self._workers.remove(worker)
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._workers, _PATIENCE)


def _messages(records: list[Record]) -> Iterator[list[Record]]:
    """The records in messages of a few MiB, with values in a form that can be pickled."""
    message: list[Record] = []
    size = 0
    for values, words in records:
        crossing = [np.asarray(v) if isinstance(v, _core.Array) else v for v in values]
        message.append((crossing, words))
        size += sum(v.nbytes if isinstance(v, np.ndarray) else len(v) for v in crossing)
        if size >= _MESSAGE_BYTES:
            yield message
            message, size = [], 0
    if message:
        yield message


def _pickled(step: Step) -> bytes:
    hint = "define it at the top of a module: def, or a class with __call__ and plain attributes"
    if step.home == "__main__" and _main_module().keys().isdisjoint(_MAIN_KEYS):
        raise _NOT_PICKLABLE.error(
            f"[{step.name}] is defined at a prompt, where other processes cannot find it",
            hint=hint,
        )
    try:
        return pickle.dumps(step, protocol=5)
    except Exception as failure:
        text = f"{type(failure).__name__}: {failure}"
        raise _NOT_PICKLABLE.error(f"[{step.name}] {text}", hint=hint) from None


_MAIN_KEYS = ("init_main_from_name", "init_main_from_path")


def _main_module() -> dict[str, Any]:
    """What multiprocessing.spawn.prepare() needs to import the main script. That module's function
    would also set the process's start method, which is up to the user."""
    data: dict[str, Any] = {
        "name": "headrace Python worker",
        "sys_path": [path or _FOLDER or os.getcwd() for path in sys.path],
        "sys_argv": sys.argv,
        "orig_dir": _FOLDER,
        "dir": os.getcwd(),
    }
    main = sys.modules["__main__"]
    name = getattr(main.__spec__, "name", None)
    file = getattr(main, "__file__", None)
    if name is not None:
        data[_MAIN_KEYS[0]] = name
    elif file is not None and os.path.exists(os.path.join(_FOLDER or "", file)):
        data[_MAIN_KEYS[1]] = os.path.normpath(os.path.join(_FOLDER or "", file))
    return data


def _environment() -> dict[str, str]:
    # Keeps OpenMP from binding each worker to the first core.
    kept = {k: v for k, v in os.environ.items() if k not in ("GOMP_CPU_AFFINITY", "KMP_AFFINITY")}
    return {"OMP_NUM_THREADS": "1", **kept, "OMP_PROC_BIND": "false"}


def _command(end: int, lifeline: int) -> list[str]:
    import multiprocessing.spawn
    import multiprocessing.util

    # The folder with this package first; the rest of sys.path is sent with the first message.
    code = (
        f"import sys; sys.path.insert(0, {str(Path(_core.__file__).parents[1])!r}); "
        f"from headrace.workers.process import main; main({end}, {lifeline})"
    )
    flags = multiprocessing.util._args_from_interpreter_flags()  # type: ignore[attr-defined]
    return [os.fsdecode(multiprocessing.spawn.get_executable()), *flags, "-c", code]
