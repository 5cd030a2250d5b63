# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C at a random moment: KeyboardInterrupt within a second, and the process remains usable."""

from __future__ import annotations

import signal
import time

import child
import sets
from trial import Attempt, Trial

RECORDS = 120
LATEST = 1.0  # seconds from the signal to KeyboardInterrupt
WAYS = ("plain", "consumer", "python")


def run(attempt: Attempt) -> None:
    photos = sets.photos(attempt.folder / "photos", RECORDS, attempt.random, (100, 200))
    worst = 0.0
    while attempt.goes_on():
        way = WAYS[attempt.inputs % len(WAYS)]
        process = child.start("interrupted", photos, way, cache=attempt.folder / "cache")
        assert process.stdout
        process.stdout.readline()
        time.sleep(attempt.random.random() * 0.5)
        sent = time.monotonic()
        process.send_signal(signal.SIGINT)
        code, out, errors = child.ended(process, 30 * attempt.patience)
        attempt.inputs += 1
        lines = dict(line.split(" ", 1) for line in out.splitlines() if " " in line)
        if code != 0 or set(lines) != {"interrupted", "again"}:
            attempt.fails(f"{way}: ended by {code}: {child.last_lines(errors)}")
            continue
        took = float(lines["interrupted"]) - sent
        worst = max(worst, took)
        is_soon = took <= LATEST * attempt.patience
        attempt.expect(is_soon, f"{way}: KeyboardInterrupt came after {took:.2f} s")
        attempt.expect(lines["again"] == f"{RECORDS} 0", f"{way}: then {lines['again']}")
    attempt.figures["slowest_seconds"] = round(worst, 3)


TRIAL = Trial(
    "interrupted",
    "Ctrl-C raises KeyboardInterrupt within a second; a loader made afterwards works",
    500,
    "signals",
    run,
    targets=("R14",),
)
