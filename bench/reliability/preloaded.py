# SPDX-License-Identifier: Apache-2.0
"""Programs whose engine meets failing calls (faults.cc), input after input until one crashes."""

from __future__ import annotations

import os
import signal
import subprocess
from collections import Counter
from pathlib import Path

import child
from trial import Attempt

PATIENCE = 30.0  # seconds for one input; only a hang exceeds it


def library(folder: Path) -> Path:
    """faults.cc, compiled."""
    built = folder / "faults.so"
    source = Path(__file__).with_name("faults.cc")
    command = [os.environ.get("CXX", "g++"), "-std=c++20", "-O1", "-shared", "-fPIC", str(source)]
    subprocess.run([*command, "-o", str(built), "-ldl"], check=True)
    return built


def run(
    attempt: Attempt,
    preload: Path,
    program: str,
    words: list[object],
    count: int,
    what: str,
    first: int = 0,
) -> Counter[str]:
    """`count` inputs of a program, which prints "next NUMBER TEXT" before each and "done NUMBER
    OUTCOME" after it, and other lines. After a crash a new process continues. The outcomes, and
    the other lines by their first word, summed.
    """
    found: Counter[str] = Counter()
    number, end = first, first + count
    while number < end:
        process = child.start(
            program, *words, number, end - number,
            cache=attempt.folder / "cache", preload=preload,
        )  # fmt: skip
        begun = "the start"
        for line in child.lines_of(process, PATIENCE * attempt.patience):
            kind, _, rest = line.partition(" ")
            if kind == "next":
                begun = rest
            elif kind == "done":
                number, outcome = int(rest.split(" ", 1)[0]) + 1, rest.split(" ", 1)[1]
                if outcome.startswith("WRONG"):
                    attempt.fails(f"{what}, {begun}: {outcome}")
                found[outcome.partition(":")[0]] += 1
            else:
                found[f"({kind})"] += int(rest)
        code, _, errors = child.ended(process, 5 * attempt.patience)
        if code == 0 and number >= end:
            break
        how = "hangs" if code in (None, -signal.SIGKILL) else f"ends by {code}"
        attempt.fails(f"{what}, {begun}: {how}: {child.last_lines(errors)}")
        found[how] += 1
        if begun == "the start":
            break  # of each of them
        number = int(begun.split()[0]) + 1
    attempt.inputs += count
    return found
