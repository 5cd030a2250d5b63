# SPDX-License-Identifier: Apache-2.0
"""Large photos, a small memory_limit and a slow consumer: the limit is respected."""

from __future__ import annotations

import child
import sets
from trial import Attempt, Trial

MARGIN = 1.05
CODE = 16 << 20  # stacks, allocator overhead and code pages, which no limit counts
LIMITS = (96 << 20, 128 << 20, 256 << 20, 512 << 20)


def run(attempt: Attempt) -> None:
    photos = sets.photos(attempt.folder / "photos", 48, attempt.random, (1500, 2500))
    nearest, refused = 0.0, 0
    while attempt.goes_on():
        limit = LIMITS[attempt.inputs % len(LIMITS)]
        threads = attempt.random.choice((1, 2, 4, 8))
        process = child.start("limited", photos, limit, threads, cache=attempt.folder / "cache")
        code, out, errors = child.ended(process, 300 * attempt.patience)
        attempt.inputs += 1
        where = f"{limit >> 20} MiB, {threads} threads"
        if code != 0:
            attempt.fails(f"{where}: ended by {code}: {child.last_lines(errors)}")
            continue
        if out.startswith("refused"):
            refused += 1
            continue
        nearest = max(nearest, int(out) / limit)
        most = limit * MARGIN + CODE
        attempt.expect(int(out) <= most, f"{where}: {int(out) >> 20} MiB resident")
    attempt.figures["refused_as_too_little"] = refused
    attempt.figures["largest_share_of_the_limit"] = round(nearest, 3)


TRIAL = Trial(
    "limited",
    "Resident memory stays within memory_limit and 5 %, regardless of what the consumer does",
    200,
    "epochs",
    run,
    targets=("R18",),
)
