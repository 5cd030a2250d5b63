# SPDX-License-Identifier: Apache-2.0
"""Python programs that a trial starts, signals and kills."""

from __future__ import annotations

import os
import selectors
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

PROGRAMS = Path(__file__).parent / "programs"


def start(
    program: str,
    *arguments: object,
    cache: Path,
    preload: Path | None = None,
    prefix: tuple[str, ...] = (),
    python: Path = Path(sys.executable),
) -> subprocess.Popen[str]:
    """A file of programs/, in a process group of its own, with a cache folder of its own.
    preload: a library loaded before all others. prefix: a command that runs the program.
    python: the interpreter.
    """
    preloaded = {} if preload is None else {"LD_PRELOAD": str(preload)}
    command = [*prefix, str(python), str(PROGRAMS / f"{program}.py"), *map(str, arguments)]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "HEADRACE_CACHE": str(cache), **preloaded},
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


def lines_of(process: subprocess.Popen[str], patience: float) -> Iterator[str]:
    """Its output line by line; a process that prints nothing for this many seconds is killed."""
    assert process.stdout
    os.set_blocking(process.stdout.fileno(), False)
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        rest, since = "", time.monotonic()
        while True:
            if not selector.select(1.0):
                if time.monotonic() - since > patience:
                    process.kill()
                    return
                continue
            text = os.read(process.stdout.fileno(), 65536).decode()
            if not text:
                return
            since = time.monotonic()
            *whole, rest = (rest + text).split("\n")
            yield from whole


def last_lines(text: str, count: int = 6) -> str:
    """The end of a program's error output, on one line."""
    return " / ".join(line.strip() for line in text.strip().splitlines()[-count:])
