# SPDX-License-Identifier: Apache-2.0
"""The fuzz targets of every decoder and container, as `./dev fuzz` builds them (ASan, UBSan)."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import child
from trial import Attempt, Trial

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "fuzz"
SECONDS = 10  # per target and round
LIMITS = ("-rss_limit_mb=2048", "-timeout=10", "-max_len=262144")


def run(attempt: Attempt) -> None:
    targets = sorted(file for file in BUILD.glob("*_fuzz") if file.is_file())
    attempt.figures["targets"] = len(targets)
    if not targets:
        attempt.figures["not_run"] = "no fuzz targets are built here (./dev fuzz builds them)"
        return
    runs = dict.fromkeys((target.name for target in targets), 0)
    while attempt.goes_on():
        for target in targets:
            if not attempt.goes_on():
                break
            runs[target.name] += fuzz(attempt, target)
    attempt.figures["runs_of_the_least_tried"] = min(runs.values())


def fuzz(attempt: Attempt, target: Path) -> int:
    """One round of a target; its number of runs."""
    found = attempt.folder / f"corpus-{target.name}"
    found.mkdir(exist_ok=True)
    kept = ROOT / "fuzz" / target.name.removesuffix("_fuzz")
    seconds = max(1, min(SECONDS, int(attempt.seconds)))
    command = [
        *(target, f"-max_total_time={seconds}", f"-seed={attempt.random.getrandbits(31)}"),
        *(*LIMITS, "-print_final_stats=1", f"-artifact_prefix={BUILD}/", found),
        *([kept] if kept.is_dir() else []),
    ]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    executed = re.search(r"number_of_executed_units: (\d+)", done.stderr)
    count = int(executed[1]) if executed else 0
    attempt.inputs += count
    if done.returncode:
        attempt.fails(f"{target.name}: {child.last_lines(done.stderr)}")
    return count


TRIAL = Trial(
    "fuzzed",
    "No input makes a decoder or a container's reader break a rule of C++ or exceed its limits",
    100_000_000,
    "runs",
    run,
    weight=3,
    targets=("R1", "R2"),
)
