# SPDX-License-Identifier: Apache-2.0
"""Other processes: Python code, the command line, and the command line on a terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

from headrace import _core

COMMAND = [sys.executable, "-c", "from headrace.cli import main; main()"]
LIMIT = 120  # seconds; only a hang comes near it


def run_code(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Python code in an interpreter of its own."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)


def printed_at_each_simd_level(code: str, *arguments: object) -> set[str]:
    """The lines that Python code prints at the levels that this CPU has, each once."""
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


def run_command(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """``headrace ARGUMENTS``, as a script sees it."""
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=LIMIT,
        env={**os.environ, **environment},
    )


def run_on_terminal(
    *arguments: object,
    columns: int = 100,
    folder: Path | None = None,
    with_errors: bool = True,
    **environment: str,
) -> tuple[int, str]:
    """The exit code of ``headrace ARGUMENTS`` and what a person would see, colors and all."""
    leader, follower = pty.openpty()
    size = {"TERM": "xterm-256color", "COLUMNS": str(columns), "LINES": "24"}
    process = subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        stdin=follower,
        stdout=follower,
        stderr=follower if with_errors else subprocess.DEVNULL,
        cwd=folder,
        env={**os.environ, **size, **environment},
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
    return process.wait(LIMIT), seen.decode()
