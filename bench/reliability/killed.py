# SPDX-License-Identifier: Apache-2.0
"""SIGKILL at a random moment, then resume: in committed steps, nothing is lost or duplicated."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import child
import sets
from trial import Attempt, Trial

RECORDS, EPOCHS = 400, 4
LONGEST = 0.8  # seconds from a program's first line to its end


def run(attempt: Attempt) -> None:
    photos = sets.photos(attempt.folder / "photos", RECORDS, attempt.random, (200, 300))
    cache = attempt.folder / "cache"
    reference = attempt.folder / "reference"
    process = child.start("train", photos, reference, EPOCHS, cache=cache)
    code, _, errors = child.ended(process, 600)
    if code != 0:
        attempt.fails(f"the reference ended by {code}: {child.last_lines(errors)}")
        return
    wanted = (reference / "seen").read_text()
    before = leftovers()
    runs = 0
    while attempt.goes_on():
        runs += 1
        one_run(attempt, photos, attempt.folder / f"run-{runs}", cache, wanted)
    attempt.figures["completed_runs"] = runs
    left = [path for path in cache.rglob("*") if path.name.endswith((".tmp", ".new", ".part"))]
    attempt.expect(not left, f"left in the cache: {left[:3]}")
    attempt.expect(leftovers() == before, f"left in /dev/shm: {sorted(leftovers() - before)[:3]}")


def one_run(attempt: Attempt, photos: Path, folder: Path, cache: Path, wanted: str) -> None:
    """Kills and restarts it until it has finished."""
    while True:
        process = child.start("train", photos, folder, EPOCHS, cache=cache)
        assert process.stdout
        first = process.stdout.readline()
        if attempt.goes_on():
            time.sleep(attempt.random.random() * LONGEST)
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                attempt.inputs += 1
        code, _, errors = child.ended(process, 120 * attempt.patience)
        if code == -signal.SIGKILL:
            continue
        if code != 0 or first != "ready\n":
            attempt.fails(f"it cannot continue, ended by {code}: {child.last_lines(errors)}")
        break
    seen = (folder / "seen").read_text() if (folder / "seen").exists() else ""
    attempt.expect(seen == wanted, f"{folder.name}: lost or doubled after kills")


def leftovers() -> set[str]:
    return set(os.listdir("/dev/shm"))


TRIAL = Trial(
    "killed",
    "After SIGKILL and resume every record is delivered once per epoch, and no processes or files "
    "remain",
    1_000,
    "kills",
    run,
    weight=2,
    targets=("R12",),
)
