# SPDX-License-Identifier: Apache-2.0
"""Each allocation of several operations is refused by the system, in a random order."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import child
import numpy as np
import preloaded
import sets
from trial import Attempt, Trial

import headrace as hr

BATCH = 20  # refusals per operation, in one process
EACH = 2  # an allocation is refused alone, and with all that follow
OPERATIONS = (
    *("open a folder", "read a tar", "epoch", "epoch of a tar", "colors", "python", "cached"),
    *("resident", "copied", "resumed", "arrays", "pack", "convert"),
)


def run(attempt: Attempt) -> None:
    data = attempt.folder / "data"
    photos = sets.photos(data / "photos", 12, attempt.random, (32, 64))
    hr.convert(photos, data / "set.tar", to="tar")
    np.savez(data / "values.npz", x=np.arange(60, dtype=np.float32).reshape(12, 5))
    library = preloaded.library(attempt.folder)
    allocations = {name: counted(attempt, library, data, name) for name in OPERATIONS}
    attempt.target = EACH * sum(allocations.values())
    seed = attempt.random.getrandbits(32)
    outcomes: Counter[str] = Counter()
    done = dict.fromkeys(OPERATIONS, 0)
    while attempt.goes_on():
        for operation in OPERATIONS:
            count = min(BATCH, EACH * allocations[operation] - done[operation])
            if not count or not attempt.goes_on():
                continue
            words = [data, operation, seed, allocations[operation]]
            first = done[operation]
            outcomes += preloaded.run(
                attempt, library, "refused", words, count, operation, first=first
            )
            done[operation] += count
    attempt.figures["outcomes"] = dict(outcomes.most_common())
    attempt.figures["allocations"] = allocations


def counted(attempt: Attempt, library: Path, data: Path, operation: str) -> int:
    """The number of allocations of an operation; it differs slightly from run to run."""
    process = child.start(
        *("refused", data, operation, 0, 0, 0, 0),
        cache=attempt.folder / "cache",
        preload=library,
    )
    code, out, errors = child.ended(process, preloaded.PATIENCE * attempt.patience)
    if code != 0:
        raise RuntimeError(f"{operation}: ended by {code}: {child.last_lines(errors)}")
    return int(out)


TRIAL = Trial(
    "refused",
    "An allocation that the system refuses, alone or with all that follow, is a MemoryError: no "
    "crash, no hang, no leak, and the next call gives the same values",
    36_000,
    "refusals",
    run,
    targets=("R7",),
)
