# SPDX-License-Identifier: Apache-2.0
"""Allocations that the system refuses, one after the other, in each of several operations."""

from __future__ import annotations

from collections import Counter

import numpy as np
import preloaded
import sets
from trial import Attempt, Trial

import headrace as hr

BATCH = 10  # refusals per operation, in one process
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
    outcomes: Counter[str] = Counter()
    calls: dict[str, int] = {}
    leaked = 0
    while attempt.goes_on():
        for operation in attempt.random.sample(OPERATIONS, len(OPERATIONS)):
            if not attempt.goes_on():
                break
            seed = attempt.random.getrandbits(32)
            words = [data, operation, seed]
            found = preloaded.run(attempt, library, "refused", words, BATCH, operation)
            calls[operation] = max(calls.get(operation, 0), found.pop("(calls)", 0))
            leaked += found.pop("(live)", 0)
            outcomes += found
    attempt.figures["outcomes"] = dict(outcomes.most_common())
    attempt.figures["allocations"] = calls
    attempt.figures["objects_left"] = leaked
    attempt.expect(leaked < max(20, attempt.inputs // 10), f"{leaked} objects are left")


TRIAL = Trial(
    "refused",
    "An allocation that the system refuses is a MemoryError: no crash, no hang, no leak, and the "
    "next call gives the same values",
    2000,
    "refusals",
    run,
    targets=("R7",),
)
