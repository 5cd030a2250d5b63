#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests guarantees under stress a given number of times, and counts failures.

    python bench/reliability [TRIAL...] [--hours N] [--seed N] [--json FILE] [--keep] [--page FILE]

Without --hours each trial runs to its full number. With it the time is divided among the trials,
and the result states both the target and the number reached. Exit code 1: something failed.
``--keep`` also writes the result of each trial to bench/results/reliability, and ``--page`` writes
a page of all kept results, docs/internals/reliability.md.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))

import bad_cost
import bad_records
import bombs
import device_lost
import exits
import flipped
import forked
import full_disk
import fuzzed
import hostile
import interrupted
import killed
import limited
import lost_workers
import messages
import mutated
import page
import pixels
import races
import ranks
import refused
import reopened
import resumed
import soak
import unreadable
from headrace.insight.measure import instructions
from trial import Attempt, Trial

import headrace as hr

TRIALS: tuple[Trial, ...] = tuple(
    module.TRIAL
    for module in (
        *(mutated, fuzzed, flipped, bombs, hostile, bad_records, bad_cost, unreadable, full_disk),
        *(messages, pixels, refused, device_lost),
        *(resumed, ranks, killed, interrupted, exits, forked, reopened, soak, limited),
        *(races, lost_workers),
    )
)
UNLIMITED = 1e9
KEPT = "bench/results/reliability"


def main() -> int:
    given = arguments()
    chosen = [trial for trial in TRIALS if not given.trials or trial.name in given.trials]
    weights = sum(trial.weight for trial in chosen)
    results = []
    for trial in chosen:
        share = given.hours * 3600 * trial.weight / weights if given.hours else UNLIMITED
        results.append(tried(trial, share, given))
        print(line(results[-1]), flush=True)
    report = {**circumstances(given), "trials": results}
    if given.json:
        given.json.write_text(json.dumps(report, indent=2) + "\n")
    if given.keep:
        for result in results:
            page.keep({**circumstances(given), **result})
    if given.page:
        given.page.write_text(page.text(TRIALS, page.kept()))
    return 1 if any(result["failed"] for result in results) else 0


def tried(trial: Trial, seconds: float, given: argparse.Namespace) -> dict[str, Any]:
    """Runs a trial in a temporary folder."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix=f"headrace-{trial.name}-") as folder:
        numbers = random.Random(f"{given.seed} {trial.name}")
        attempt = Attempt(Path(folder), trial.target, seconds, numbers, given.patience)
        try:
            trial.run(attempt)
        except Exception as problem:
            attempt.fails(f"the trial itself ended: {type(problem).__name__}: {problem}")
    return {
        "name": trial.name,
        "promise": trial.promise,
        "unit": trial.unit,
        "inputs": attempt.inputs,
        "target": attempt.target,
        "failed": attempt.failed,
        "failures": attempt.failures,
        "figures": attempt.figures,
        "seconds": round(time.monotonic() - begun, 1),
    }


def circumstances(given: argparse.Namespace) -> dict[str, Any]:
    words = ["./dev reliability", *given.trials, f"--seed {given.seed}"]
    if given.hours:
        words.append(f"--hours {given.hours:g}")
    return {
        "command": " ".join(words),
        "headrace": hr.__version__,
        "commit": commit(),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "python": platform.python_version(),
        "instructions": instructions.in_force(),
        "seed": given.seed,
        "hours": given.hours,
    }


def commit() -> str | None:
    """The checkout's; with a plus if files differ from it."""

    def git(*words: str) -> str:
        command = ["git", "-C", str(Path(__file__).parent), *words]
        return subprocess.run(command, capture_output=True, text=True).stdout.strip()

    changed = git("status", "--porcelain", "--", ":/", ":!/bench/results", ":!/docs")
    return git("rev-parse", "--short=12", "HEAD") + "+" * bool(changed) or None


def line(result: dict[str, Any]) -> str:
    text = (
        f"{result['name']:12} {result['inputs']:>8,} of {result['target']:,} {result['unit']}, "
        f"{result['failed']} failed, {result['seconds']:,.0f} s"
    )
    return "\n".join([text, *(f"    {failure}" for failure in result["failures"])])


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="reliability", description=__doc__.partition("\n")[0])
    names = [trial.name for trial in TRIALS]
    parser.add_argument("trials", nargs="*", metavar="TRIAL", help=f"default: all of {names}")
    parser.add_argument("--hours", type=float, help="time limit for all of them together")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--patience", type=float, default=1, metavar="FACTOR", help="multiplies limits of seconds"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the results here")
    parser.add_argument("--keep", action="store_true", help=f"also write them to {KEPT}")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write kept results as Markdown")
    given = parser.parse_args()
    for name in given.trials:
        if name not in names:
            parser.error(f"no trial {name!r}; there are {', '.join(names)}")
    return given


if __name__ == "__main__":
    sys.exit(main())
