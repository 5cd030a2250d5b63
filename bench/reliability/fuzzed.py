# SPDX-License-Identifier: Apache-2.0
"""The fuzz targets of every decoder and container (ASan, UBSan), which are built first."""

from __future__ import annotations

import re
import subprocess
import time
from pathlib import Path

import child
from built import ROOT, build
from trial import Attempt, Trial

SECONDS = 60  # per target and round
MEMORY = 512  # MB
SLOWEST = 1  # seconds for one input


def run(attempt: Attempt) -> None:
    """Counts the inputs of the target with the fewest."""
    folder = build("fuzz")
    targets = sorted(file for file in folder.glob("*_fuzz") if file.is_file())
    if not targets:
        attempt.fails(f"no fuzz targets in {folder}")
    attempt.figures["targets"] = len(targets)
    seconds = int(max(1, min(SECONDS, attempt.seconds / max(1, len(targets)))))
    runs = dict.fromkeys(targets, 0)
    unfinished = set(targets)
    is_first = True
    while unfinished and (is_first or time.monotonic() < attempt.until):
        for target in sorted(unfinished):
            if not is_first and time.monotonic() >= attempt.until:
                break
            count, is_good = fuzz(attempt, target, seconds)
            runs[target] += count
            if not is_good or runs[target] >= attempt.target:
                unfinished.remove(target)
        is_first = False
    attempt.inputs = min(runs.values(), default=0)
    attempt.figures["all_targets"] = sum(runs.values())
    if runs:
        attempt.figures["least_tried"] = min(runs, key=lambda target: runs[target]).name


def fuzz(attempt: Attempt, target: Path, seconds: int) -> tuple[int, bool]:
    """One round of a target: its number of runs, and whether it found nothing."""
    found = attempt.folder / f"corpus-{target.name}"
    found.mkdir(exist_ok=True)
    kept = ROOT / "fuzz" / target.name.removesuffix("_fuzz")
    slowest = round(SLOWEST * attempt.patience)
    command = [
        *(target, f"-max_total_time={seconds}", f"-seed={attempt.random.getrandbits(31)}"),
        *(f"-rss_limit_mb={MEMORY}", f"-timeout={slowest}", "-max_len=262144"),
        *("-print_final_stats=1", f"-artifact_prefix={target.parent}/", found),
        *([kept] if kept.is_dir() else []),
    ]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    executed = re.search(r"number_of_executed_units: (\d+)", done.stderr)
    if done.returncode:
        attempt.fails(f"{target.name}: {child.last_lines(done.stderr)}")
    return int(executed[1]) if executed else 0, done.returncode == 0


TRIAL = Trial(
    "fuzzed",
    "No input makes a decoder or a container's reader break a rule of C++, take 512 MB or a second",
    100_000_000,
    "runs of the least-tried target",
    run,
    weight=3,
    targets=("R1", "R2"),
)
