# SPDX-License-Identifier: Apache-2.0
"""Other processes: Python code, the command line, and the command line on a terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import fork_server

from headrace import _core

MAIN = "from headrace.cli import main; main()"
COMMAND = [sys.executable, "-c", MAIN]
LIMIT = 600  # seconds; only reached if something hangs


def run_code(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Runs Python code in a separate interpreter."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)


def printed_at_each_simd_level(code: str, *arguments: object) -> set[str]:
    """The lines that Python code prints at each SIMD level of this CPU, each once."""
    lines: set[str] = set()
    for level in _core.simd_levels():
        done = subprocess.run(
            [sys.executable, "-c", code, *map(str, arguments)],
            env={**os.environ, "HEADRACE_SIMD": level},
            capture_output=True,
            text=True,
            timeout=LIMIT,
        )
        assert done.returncode == 0, f"{level}: {done.stderr}"
        lines.update(done.stdout.splitlines())
    return lines


def run_command(*arguments: object, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """``headrace ARGUMENTS``, as run by a script."""
    return fork_server.run(fork_server.COMMAND_LINE, MAIN, *arguments, folder=folder, timeout=LIMIT)


def run_on_terminal(
    *arguments: object,
    columns: int = 100,
    folder: Path | None = None,
    with_errors: bool = True,
    **environment: str,
) -> tuple[int, str]:
    """The exit code of ``headrace ARGUMENTS`` and its output for a person, colors included."""
    leader, follower = pty.openpty()
    size = {"TERM": "xterm-256color", "COLUMNS": str(columns), "LINES": "24"}
    words = [str(argument) for argument in arguments]
    with open(os.devnull, "w") as nowhere:
        process = fork_server.Program(
            fork_server.COMMAND_LINE,
            MAIN,
            words,
            (follower, follower, follower if with_errors else nowhere.fileno()),
            folder,
            {**os.environ, **size, **environment},
        )
    os.close(follower)
    seen = b""
    while True:
        try:
            part = os.read(leader, 65536)
        except OSError:  # the other side is closed
            break
        if not part:
            break
        seen += part
    os.close(leader)
    return process.wait(), seen.decode()
