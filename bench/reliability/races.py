# SPDX-License-Identifier: Apache-2.0
"""Loaders under ThreadSanitizer (races.cc), with several numbers of threads."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import child
import sets
from built import ROOT, build
from trial import Attempt, Trial

RECORDS = 120
THREADS = (1, 2, 4, 8, 16)
TURN = 20  # seconds
EACH = 30 * 60


def run(attempt: Attempt) -> None:
    photos = sets.photos(attempt.folder / "photos", RECORDS, attempt.random, (32, 96))
    for file in attempt.random.sample(sorted(photos.rglob("*.jpg")), RECORDS // 20):
        file.write_bytes(file.read_bytes()[:200])  # damaged ones take other paths
    program = compiled(attempt.folder)
    rounds = 0
    while attempt.goes_on():
        for threads in THREADS:
            turn = max(1, int(min(TURN, attempt.seconds / len(THREADS))))
            words = [str(program), str(photos), str(threads), str(turn)]
            seed = attempt.random.getrandbits(32)
            done = subprocess.run(
                [*words, str(seed)],
                capture_output=True,
                text=True,
                env={
                    **os.environ,
                    "HEADRACE_CACHE": str(attempt.folder / "cache"),
                    "TSAN_OPTIONS": "halt_on_error=1",
                },
            )
            attempt.inputs += turn
            if done.returncode:
                found = first_lines(done.stderr)
                attempt.fails(f"{threads} threads, seed {seed}: {done.returncode}: {found}")
            else:
                rounds += int(done.stdout)
    attempt.figures["loaders"] = rounds


def first_lines(text: str, count: int = 8) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip("= ")]
    return " / ".join(lines[:count])


def compiled(folder: Path) -> Path:
    """races.cc with the engine, both instrumented."""
    engine = build("tsan", "headrace")
    program = folder / "races"
    command = [
        *(os.environ.get("CXX", "g++"), "-std=c++20", "-O1", "-g1", "-fsanitize=thread"),
        *(f"-I{ROOT}", str(Path(__file__).with_name("races.cc")), f"-L{engine}", "-lheadrace"),
        *(f"-Wl,-rpath,{engine}", "-o", str(program)),
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(child.last_lines(done.stderr))
    return program


TRIAL = Trial(
    "races",
    "No data race in loaders that are advanced, observed, resumed and closed, with 1 to 16 threads",
    EACH * len(THREADS),
    "seconds under ThreadSanitizer",
    run,
    weight=3,
    targets=("R16",),
)
