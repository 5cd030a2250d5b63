# SPDX-License-Identifier: Apache-2.0
"""The cost of bad records: epochs with some, alternating with epochs without.

A share of the files is truncated. An epoch's CPU time per delivered record is compared with that of
the intact files, in the same process and in turn, so that other programs slow down both. The ratio
is reported, and not judged; what is judged is which records are delivered.
"""

from __future__ import annotations

import statistics
import time
from pathlib import Path

import sets
from trial import Attempt, Trial

import headrace as hr
from headrace import transforms as T

RECORDS = 2000
BAD = 2  # of these: 0.1 %
POLICIES = ("skip", "substitute")


def loader_of(photos: Path, policy: str) -> hr.Loader:
    steps = [T.Resize((64, 64)), T.RandomHorizontalFlip()]  # a crop may be of intact rows alone
    return hr.Loader(
        photos, steps, batch_size=64, shuffle=True, seed=1, threads=1, on_error=policy,
        error_budget=RECORDS, fields=["image", "label", "id"],
    )  # fmt: skip


def epoch(loader: hr.Loader) -> tuple[float, int, int]:
    """CPU seconds of the process, rows and distinct records."""
    begun = time.process_time()
    ids = [int(each) for batch in loader for each in batch.id]
    return time.process_time() - begun, len(ids), len(set(ids))


def run(attempt: Attempt) -> None:
    intact = sets.photos(attempt.folder / "intact", RECORDS, attempt.random, (100, 160))
    damaged = attempt.folder / "damaged"
    files = sorted(intact.rglob("*.jpg"))
    chosen = set(attempt.random.sample(files, BAD))
    for file in files:
        copy = damaged / file.relative_to(intact)
        copy.parent.mkdir(parents=True, exist_ok=True)
        data = file.read_bytes()
        copy.write_bytes(data[: len(data) // 2] if file in chosen else data)
    loaders = {
        policy: (loader_of(intact, policy), loader_of(damaged, policy)) for policy in POLICIES
    }
    for good, bad in loaders.values():  # files and code are in memory afterwards
        epoch(good)
        epoch(bad)
    ratios: dict[str, list[float]] = {policy: [] for policy in POLICIES}
    while attempt.goes_on():
        policy = POLICIES[attempt.inputs % len(POLICIES)]
        without, with_bad = (epoch(loader) for loader in loaders[policy])
        attempt.inputs += 1
        ratios[policy].append((with_bad[0] / with_bad[1]) / (without[0] / without[1]))
        rows = RECORDS - BAD * (policy == "skip")
        attempt.expect(without[1:] == (RECORDS, RECORDS), f"{policy}: intact {without[1:]}")
        attempt.expect(with_bad[1:] == (rows, RECORDS - BAD), f"{policy}: {with_bad[1:]}")
    for policy, found in ratios.items():
        if found:
            name = f"CPU_time_per_record_with_0.1_%_bad,_{policy}"
            attempt.figures[name] = round(statistics.median(found), 3)


TRIAL = Trial(
    "bad-cost",
    "With 0.1 % of bad records an epoch delivers all others; what a record costs is compared with "
    "an epoch without",
    40,
    "pairs of epochs",
    run,
    weight=0.5,
    targets=("R19",),
)
