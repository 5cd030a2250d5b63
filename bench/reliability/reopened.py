# SPDX-License-Identifier: Apache-2.0
"""Thousands of loaders are made and dropped: threads, descriptors and memory do not grow."""

from __future__ import annotations

import child
import numpy as np
import sets
from trial import Attempt, Trial

WARM = 200  # loaders until caches and allocators are warm
MOST = 1e6  # allowed growth in bytes per 1,000 loaders


def run(attempt: Attempt) -> None:
    photos = sets.photos(attempt.folder / "photos", 64, attempt.random, (64, 128))
    wanted = min(attempt.target, 10**6)
    seconds = min(attempt.seconds, 1e6)
    process = child.start("reopened", photos, wanted, seconds, cache=attempt.folder / "cache")
    code, out, errors = child.ended(process, seconds + 600)
    rows = np.array([line.split() for line in out.splitlines()], dtype=np.int64).reshape(-1, 4)
    attempt.inputs = int(rows[-1, 0]) if len(rows) else 0
    if code != 0:
        attempt.fails(f"ended by {code}: {child.last_lines(errors)}")
    warm = rows[rows[:, 0] >= WARM]
    if len(warm) < 3:
        return
    for column, what in ((1, "descriptors"), (2, "threads")):
        first, last = int(warm[0, column]), int(warm[-1, column])
        attempt.expect(last <= first, f"{what}: {first} after {warm[0, 0]} loaders, then {last}")
        attempt.figures[what] = last
    slope = float(np.polyfit(warm[:, 0], warm[:, 3], 1)[0]) * 1000
    attempt.figures["bytes_per_1000_loaders"] = round(slope)
    # The slope is meaningless for few loaders.
    if warm[-1, 0] >= 5000:
        attempt.expect(slope < MOST, f"memory grows by {slope / 1e6:.1f} MB per 1,000 loaders")


TRIAL = Trial(
    "reopened",
    "Loaders that come and go leave no thread, no descriptor and less than 1 MB per 1,000",
    10_000,
    "loaders",
    run,
    targets=("R17",),
)
