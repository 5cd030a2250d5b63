# SPDX-License-Identifier: Apache-2.0
"""Runs Python programs as forks of a process that has already imported their modules: a short
program spends most of its time on imports.

For tests of a program's output and exit code. Tests of imports, of variables that are read when
Python starts, and of exits start a new interpreter.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

COMMAND_LINE = (
    "headrace.cli.app",
    *(f"headrace.cli.{name}" for name in ("bench", "cache", "doctor", "info", "scan", "index")),
    *(f"headrace.cli.{name}" for name in ("pack", "unpack", "convert", "merge", "formats")),
    *(f"headrace.cli.{name}" for name in ("operators", "explain")),
    "headrace.insight.measure.regions",
    "pydantic",  # typer imports it if it is installed
    "rich.progress",
    "rich.table",
    "typer._adapters",
)
TORCH = (*COMMAND_LINE, "torch", "torch._dynamo", "torch.utils.data")  # optimizers import dynamo


@functools.cache
def _server(modules: tuple[str, ...]) -> socket.socket:
    """A connection to this process's server that has these modules, where they are installed."""
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command = [sys.executable, __file__, str(its.fileno()), *modules]
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=[its.fileno()])
    its.close()

    def end() -> None:
        ours.close()
        try:
            server.wait(10)
        except subprocess.TimeoutExpired:
            server.kill()

    atexit.register(end)
    return ours


class Program:
    """A started ``python -c CODE WORDS``, whose standard files are these descriptors."""

    def __init__(
        self,
        modules: tuple[str, ...],
        code: str,
        words: list[str],
        files: tuple[int, int, int],
        folder: Path | None,
        environment: dict[str, str],
    ) -> None:
        request = {
            "code": code,
            "words": ["-c", *words],
            "folder": str(folder or os.getcwd()),
            "environment": environment,
        }
        self.told, its = os.pipe()  # its process, then how it ended
        socket.send_fds(_server(modules), [json.dumps(request).encode()], [*files, its])
        os.close(its)
        self.pid = int(os.read(self.told, 20))

    def wait(self) -> int:
        code = int(os.read(self.told, 20))
        os.close(self.told)
        return code


def run(
    modules: tuple[str, ...],
    code: str,
    *words: object,
    folder: Path | None = None,
    environment: dict[str, str] | None = None,
    timeout: float,
) -> subprocess.CompletedProcess[str]:
    """The program's exit code and what it printed, as by subprocess.run."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    (out, its_out), (err, its_err) = os.pipe(), os.pipe()
    texts = [str(word) for word in words]
    files = (nothing, its_out, its_err)
    program = Program(modules, code, texts, files, folder, environment or dict(os.environ))
    for file in files:
        os.close(file)
    printed = {out: b"", err: b""}
    end = time.monotonic() + timeout
    with selectors.DefaultSelector() as selector:
        for file in printed:
            selector.register(file, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(end - time.monotonic())
            if not ready:
                os.kill(program.pid, signal.SIGKILL)
                raise subprocess.TimeoutExpired(texts, timeout, printed[out], printed[err])
            for key, _ in ready:
                part = os.read(key.fd, 65536)
                printed[key.fd] += part
                if not part:
                    selector.unregister(key.fd)
                    os.close(key.fd)
    return subprocess.CompletedProcess(
        texts, program.wait(), printed[out].decode(), printed[err].decode()
    )


# The server's side.


def _requests(connection: socket.socket) -> dict[str, Any]:
    """Returns in each forked process, with what it is asked to do."""
    while True:
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        message, files, _, _ = socket.recv_fds(connection, 1 << 20, 4)
        if not message:
            with contextlib.suppress(ChildProcessError):
                while os.wait():
                    pass
            sys.exit()
        *standard, told = files
        if os.fork() == 0:
            connection.close()
            pid = os.fork()
            if pid == 0:
                os.close(told)
                for number, file in enumerate(standard):
                    os.dup2(file, number)
                    os.close(file)
                return json.loads(message)
            for file in standard:
                os.close(file)
            os.write(told, f"{pid}".encode())
            _, status = os.waitpid(pid, 0)
            os.write(told, f"{os.waitstatus_to_exitcode(status)}".encode())
            os._exit(0)
        for file in files:
            os.close(file)


def _become(request: dict[str, Any]) -> None:
    """Runs the program in this process, as its main module."""
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = request["words"]
    sys.path[0] = ""
    sys.stdout.reconfigure(line_buffering=sys.stdout.isatty())  # type: ignore[union-attr]
    main = sys.modules["__main__"].__dict__
    code = compile(request["code"], "<string>", "exec")
    for name in list(main):
        if name == "__file__" or not name.startswith("__"):
            del main[name]
    exec(code, main)


if __name__ == "__main__":
    sys.path.pop(0)  # the tests' modules are not the programs'
    sys.path.insert(0, "")
    for name in sys.argv[2:]:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    gc.freeze()
    _become(_requests(socket.socket(fileno=int(sys.argv[1]))))
