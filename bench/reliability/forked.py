# SPDX-License-Identifier: Apache-2.0
"""Processes started while a loader runs: they work or report an error; none hangs."""

from __future__ import annotations

import child
import sets
from trial import Attempt, Trial

RECORDS = 40
WAYS = ("fork", "spawn", "forkserver")


def run(attempt: Attempt) -> None:
    photos = sets.photos(attempt.folder / "photos", RECORDS, attempt.random, (32, 64))
    answers: dict[str, int] = {}
    while attempt.goes_on():
        way = WAYS[attempt.inputs % len(WAYS)]
        process = child.start("forked", photos, way, cache=attempt.folder / "cache")
        code, out, errors = child.ended(process, 60 * attempt.patience)
        attempt.inputs += 1
        words = out.split()
        if code != 0 or len(words) != 2:
            attempt.fails(f"{way}: ended by {code}: {child.last_lines(errors)}")
            continue
        answer, rows = words
        answers[f"{way}: {answer}"] = answers.get(f"{way}: {answer}", 0) + 1
        attempt.expect(rows == str(RECORDS), f"{way}: the parent's epoch has {rows} rows")
        works = answer == str(RECORDS) or (way == "fork" and answer.startswith("HR"))
        attempt.expect(works, f"{way}: the child answers {answer}")
    attempt.figures["answers"] = answers


TRIAL = Trial(
    "forked",
    "A process started in the middle of an epoch works, or gets an error with the reason; the "
    "epoch continues",
    300,
    "processes",
    run,
    targets=("R15",),
)
