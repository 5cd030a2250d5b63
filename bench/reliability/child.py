# SPDX-License-Identifier: Apache-2.0
"""Python programs that a trial starts, signals and kills."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROGRAMS = Path(__file__).parent / "programs"


def start(program: str, *arguments: object, cache: Path) -> subprocess.Popen[str]:
    """A file of programs/, in a process group of its own, with a cache folder of its own."""
    command = [sys.executable, str(PROGRAMS / f"{program}.py"), *map(str, arguments)]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "HEADRACE_CACHE": str(cache)},
        start_new_session=True,
    )


def ended(process: subprocess.Popen[str], seconds: float) -> tuple[int | None, str, str]:
    """Exit code, output and errors; None if it had to be killed after this many seconds."""
    try:
        out, err = process.communicate(timeout=seconds)
        return process.returncode, out, err
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        return None, out, err


def last_lines(text: str, count: int = 6) -> str:
    """The end of a program's error output, on one line."""
    return " / ".join(line.strip() for line in text.strip().splitlines()[-count:])
