# SPDX-License-Identifier: Apache-2.0
"""Damaged files among good ones: exactly these are reported, and the budget ends a run."""

from __future__ import annotations

import json
from pathlib import Path

import sets
from trial import Attempt, Trial

import headrace as hr
from headrace import transforms as T

RECORDS = 400
BUDGET = 8  # per epoch


def run(attempt: Attempt) -> None:
    photos = sets.photos(attempt.folder / "photos", RECORDS, attempt.random, (16, 32))
    files = sorted(photos.rglob("*.jpg"))
    ended = 0
    while attempt.goes_on():
        count = attempt.random.choice((0, 1, 2, 4, 8, 9, 20))
        damaged = attempt.random.sample(files, count)
        kept = {file: file.read_bytes() for file in damaged}
        for file in damaged:
            file.write_bytes(kept[file][: attempt.random.randrange(1, 40)])
        try:
            ended += epoch(attempt, photos, set(damaged))
        finally:
            for file, data in kept.items():
                file.write_bytes(data)
        attempt.inputs += 1
    attempt.figures["ended_by_the_budget"] = ended


def epoch(attempt: Attempt, photos: Path, damaged: set[Path]) -> bool:
    """One epoch under a random policy; returns whether the budget ended it."""
    policy = attempt.random.choice(("substitute", "skip"))
    listed = attempt.folder / "bad.jsonl"
    listed.unlink(missing_ok=True)
    loader = hr.Loader(
        photos,
        [T.Resize((16, 16))],
        batch_size=16,
        shuffle=True,
        seed=attempt.random.getrandbits(30),
        threads=attempt.random.choice((1, 2, 4)),
        on_error=policy,
        error_budget=BUDGET,
        quarantine=listed,
        fields=["image", "label", "key"],
    )
    seen: list[str] = []
    with loader:
        try:
            for batch in loader:
                seen += list(batch.key)
        except hr.Error as problem:
            attempt.expect(
                len(damaged) > BUDGET, f"{len(damaged)} bad records end the run: {problem}"
            )
            return True
    where = f"{policy}, {len(damaged)} bad"
    attempt.expect(len(damaged) <= BUDGET, f"{where}: the budget did not end the run")
    lines = listed.read_text().splitlines() if damaged else []
    found = {json.loads(line)["key"] for line in lines}
    names = set(map(str, damaged))
    attempt.expect(found == names, f"{where}: reported {sorted(found ^ names)[:3]} wrongly")
    good = set(map(str, photos.rglob("*.jpg"))) - names
    attempt.expect(set(seen) == good, f"{where}: {len(set(seen) ^ good)} records wrong")
    rows = RECORDS - len(damaged) * (policy == "skip")
    attempt.expect(len(seen) == rows, f"{where}: {len(seen)} rows, not {rows}")
    return False


TRIAL = Trial(
    "bad-records",
    "Exactly the damaged files are reported; every good record is delivered; the run ends when the "
    "budget is exceeded",
    300,
    "epochs of 400 records",
    run,
    targets=("R19",),
)
