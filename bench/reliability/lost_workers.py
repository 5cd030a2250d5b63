# SPDX-License-Identifier: Apache-2.0
"""Actors of a Ray cluster that make a loader's rows, and are killed at random moments."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import child
import numpy as np
import sets
from built import ROOT
from trial import Attempt, Trial

RECORDS = 96
LONGEST = 2.0  # seconds that 99 % of batches may take
PYTHON = ROOT / "build" / "frameworks" / "ray" / "bin" / "python"


def run(attempt: Attempt) -> None:
    interpreter = python_with_ray()
    if interpreter is None:
        attempt.figures["not_run"] = "Ray is not installed (./dev test --frameworks installs it)"
        return
    photos = sets.photos(attempt.folder / "photos", RECORDS, attempt.random, (300, 400))
    seconds = min(attempt.seconds, 1e6)
    seed = attempt.random.getrandbits(32)
    process = child.start(
        *("lost_workers", photos, attempt.target, seconds, seed),
        cache=attempt.folder / "cache",
        python=interpreter,
    )
    waits, wrong = [], 0
    for line in child.lines_of(process, 300 * attempt.patience):
        kind, _, value = line.partition(" ")
        if kind == "killed":
            attempt.inputs += 1
        elif kind == "batch":
            waits.append(float(value))
        elif kind == "wrong":
            wrong += 1
            attempt.fails(f"after {attempt.inputs} kills: other batches in epoch {value}")
    code, _, errors = child.ended(process, 120 * attempt.patience)
    attempt.expect(code == 0, f"ended by {code}: {child.last_lines(errors)}")
    attempt.figures["batches"] = len(waits)
    if waits:
        slow = float(np.quantile(waits, 0.99))
        attempt.figures["wait_of_99_%_below_s"] = round(slow, 2)
        attempt.expect(slow <= LONGEST * attempt.patience, f"1 % of batches take {slow:.1f} s")


def python_with_ray() -> Path | None:
    if importlib.util.find_spec("ray"):
        return Path(sys.executable)
    return PYTHON if PYTHON.exists() else None


TRIAL = Trial(
    "lost-workers",
    "Remote workers may be killed at any time: the batches are the same, 99 % of them within 2 s",
    1_000,
    "kills",
    run,
    targets=("R21",),
)
