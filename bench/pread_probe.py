# SPDX-License-Identifier: Apache-2.0
"""Runs pread_probe.cc: plain positioned reads, as fast as the system allows."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).with_suffix(".cc")


def build(folder: Path) -> Path:
    """The compiled probe. Raises RuntimeError if there is no compiler."""
    program = folder / "pread_probe"
    compiler = shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        raise RuntimeError("no C++ compiler for pread_probe.cc")
    command = [compiler, "-O2", "-std=c++20", "-pthread", str(SOURCE), "-o", str(program)]
    subprocess.run(command, check=True)
    return program


class Probe:
    """Reads pieces of `size` bytes at `number * step`, for each of `numbers` in turn."""

    def __init__(
        self, program: Path, file: Path, numbers: Any, step: int, size: int, threads: int
    ) -> None:
        self._order = tempfile.NamedTemporaryFile(suffix=".order")  # noqa: SIM115 (close() does)
        numbers.astype("<i8").tofile(self._order.name)
        arguments = [program, file, self._order.name, step, size, threads, 1]
        self._process = subprocess.Popen(
            [str(argument) for argument in arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def seconds(self, cold: bool = False) -> float:
        """Seconds of one pass."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write("cold\n" if cold else "epoch\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline())

    def __enter__(self) -> Probe:
        return self

    def __exit__(self, *error: object) -> None:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()
        self._order.close()
