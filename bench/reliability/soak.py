# SPDX-License-Identifier: Apache-2.0
"""One loader for millions of records: its memory, threads and descriptors do not grow."""

from __future__ import annotations

import child
import numpy as np
import sets
from trial import Attempt, Trial

WARM = 0.25  # of the run, until caches and allocators are warm
ENOUGH = 300_000  # records for which a slope means something
MOST = 1e6  # allowed growth in bytes per million records


def run(attempt: Attempt) -> None:
    photos = sets.photos(attempt.folder / "photos", 256, attempt.random, (24, 48))
    seconds = min(attempt.seconds, 1e6)
    process = child.start("soak", photos, attempt.target, seconds, cache=attempt.folder / "cache")
    code, out, errors = child.ended(process, seconds + 600)
    rows = np.array([line.split() for line in out.splitlines()], dtype=np.int64).reshape(-1, 4)
    attempt.inputs = int(rows[-1, 0]) if len(rows) else 0
    if code != 0:
        attempt.fails(f"ended by {code}: {child.last_lines(errors)}")
    warm = rows[:-1][rows[:-1, 0] >= WARM * attempt.inputs]
    if len(warm) < 3:
        return
    for column, what in ((1, "descriptors"), (2, "threads")):
        first, last = int(warm[0, column]), int(warm[-1, column])
        attempt.expect(last <= first, f"{what}: {first}, after {attempt.inputs:,} records {last}")
        attempt.figures[what] = last
    slope = float(np.polyfit(warm[:, 0], warm[:, 3], 1)[0]) * 1e6
    attempt.figures["bytes_per_million_records"] = round(slope)
    if attempt.inputs >= ENOUGH:
        attempt.expect(slope < MOST, f"memory grows by {slope / 1e6:.1f} MB per million records")


TRIAL = Trial(
    "soak",
    "A loader may run for as long as it likes: threads, descriptors and memory do not grow",
    10_000_000,
    "records",
    run,
    weight=2,
    targets=("R17",),
)
