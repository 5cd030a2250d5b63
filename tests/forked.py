# SPDX-License-Identifier: Apache-2.0
"""Runs the ranks of a trainer as forked processes, so that several runs import the trainer once.

Each program imports its trainer, makes no loader, and calls ``ranks`` for each run. A run appends
its results to a file one by one, so that those from before a SIGKILL are preserved.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
OFFLINE = {  # no network requests, and nothing is written into the user's home
    "HF_HUB_OFFLINE": "1",
    "NO_ALBUMENTATIONS_UPDATE": "1",
    "YOLO_CONFIG_DIR": tempfile.gettempdir(),
    "YOLO_OFFLINE": "1",
}
for name, value in OFFLINE.items():
    os.environ.setdefault(name, value)


_alive = (-1, -1)  # a pipe whose writing end each rank of this run holds


def free_port() -> int:
    """Not of the range from which the system gives ports to others, meanwhile too."""
    while True:
        port = random.SystemRandom().randrange(10_000, 30_000)
        with socket.socket() as found, contextlib.suppress(OSError):
            found.bind(("127.0.0.1", port))
            return port


def ranks(run: Callable[[], None], count: int = 2, timeout: int = 900) -> list[int]:
    """Runs it in this many processes with torchrun's variables, or for 0 in one without them.
    Returns exit codes; -9: killed.
    """
    global _alive
    port = str(free_port())
    reader, writer = _alive = os.pipe()
    address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "TORCHELASTIC_RUN_ID": port}
    processes = []
    for rank in range(max(count, 1)):
        pid = os.fork()
        if pid == 0:
            where = {
                "RANK": rank,
                "LOCAL_RANK": rank,
                "WORLD_SIZE": count,
                "LOCAL_WORLD_SIZE": count,
            }
            if count:
                os.environ.update(address | {name: str(value) for name, value in where.items()})
            _run_and_exit(run, timeout)
        processes.append(pid)
    os.close(reader)
    os.close(writer)
    return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in processes]


def _run_and_exit(run: Callable[[], None], timeout: int) -> None:
    signal.alarm(timeout)
    code = 1
    try:
        run()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError):
                stream.flush()
        os._exit(code)


def kill_this_rank() -> None:
    """All ranks at the same time: one that notices that its peer is gone would fail instead."""
    reader, writer = _alive
    os.close(writer)
    os.read(reader, 1)  # returns when every rank has closed its end
    os.kill(os.getpid(), signal.SIGKILL)


class Notes:
    """Lines of a rank of a run."""

    def __init__(self, folder: Path, name: str) -> None:
        self._path = folder / f"{name}.{os.environ.get('RANK', '0')}.jsonl"

    def add(self, value: Any) -> None:
        with self._path.open("a") as file:
            print(json.dumps(value), file=file)


def notes_of(folder: Path, name: str, rank: int) -> list[Any]:
    return [json.loads(line) for line in (folder / f"{name}.{rank}.jsonl").read_text().splitlines()]


# The test's side.


def joined(batches: Iterable[list[Any]]) -> list[Any]:
    """The records of several batches, or of the parts of one that ranks have."""
    return list(itertools.chain.from_iterable(batches))


def output_of(program: str, *arguments: object, cwd: Path) -> str:
    """Standard output and error of a program below this folder, which must exit with 0."""
    code = (
        "import conftest, runpy, sys; sys.argv.pop(0);"  # declares what torchvision's wheel lacks
        "runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    paths = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH", "")]))
    done = subprocess.run(
        [sys.executable, "-c", code, str(HERE / program), *map(str, arguments)],
        cwd=cwd, env={**os.environ, "PYTHONPATH": paths, "PYTHONUTF8": "1"}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=2700,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-6000:]
    return done.stdout
