# SPDX-License-Identifier: Apache-2.0
"""Disks and network file systems in trouble: reads that fail, are interrupted or come up short."""

from __future__ import annotations

from collections import Counter

import mutated
import preloaded
import sets
from trial import Attempt, Trial

BATCH = 10  # schedules per file, in one process
SOUNDS = (".wav", ".flac", ".ogg", ".mp3")  # read as a folder of recordings: by its path


def run(attempt: Attempt) -> None:
    photos = sets.photos(attempt.folder / "photos", 8, attempt.random, (20, 40))
    (attempt.folder / "seeds").mkdir()
    seeds = mutated.containers(attempt, attempt.folder / "seeds")
    files = [photos, *(file for file in seeds if file.suffix not in SOUNDS)]
    library = preloaded.library(attempt.folder)
    outcomes: Counter[str] = Counter()
    attempt.figures["readers"] = len(files)
    while attempt.goes_on():
        for file in files:
            if not attempt.goes_on():
                break
            words = [file, attempt.random.getrandbits(32)]
            outcomes += preloaded.run(attempt, library, "unreadable", words, BATCH, file.name)
    attempt.figures["outcomes"] = dict(outcomes.most_common(12))


TRIAL = Trial(
    "unreadable",
    "Interrupted and short reads are not noticed, failing ones are repeated or are an error that "
    "names the file; the next call gives the same values",
    2400,
    "schedules",
    run,
    targets=("R8",),
)
