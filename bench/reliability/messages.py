# SPDX-License-Identifier: Apache-2.0
"""What the error messages of damaged files contain."""

from __future__ import annotations

import itertools
import json
from collections import Counter

import child
import mutated
from trial import Attempt, Trial

BATCH = 4  # faults from one file per process


def run(attempt: Attempt) -> None:
    seeds = list(mutated.seed_files(attempt))
    attempt.figures["formats"] = len(seeds)
    lacks: Counter[str] = Counter()
    without: Counter[str] = Counter()  # an offset or a hint, by code
    for round in itertools.count():
        if not attempt.goes_on():
            break
        for seed in seeds:
            if not attempt.goes_on():
                break
            count = min(BATCH, attempt.target - attempt.inputs)
            process = child.start(
                "messages", seed, round * 1000, count, cache=attempt.folder / "cache"
            )
            code, out, errors = child.ended(process, 60 * attempt.patience)
            attempt.expect(code == 0, f"{seed.name}: ended by {code}: {child.last_lines(errors)}")
            for line in out.splitlines():
                message = json.loads(line)
                attempt.inputs += 1
                for part in ("code", "file"):
                    attempt.expect(message[part], f"{seed.name}: no {part}: {message['text']}")
                lacks.update(part for part in ("offset", "hint") if not message[part])
                without.update(
                    f"{message['code']} {part}" for part in ("offset", "hint") if not message[part]
                )
    if lacks:
        missing = " and ".join(f"{count} have no {part}" for part, count in sorted(lacks.items()))
        attempt.figures["short_of_the_target"] = missing
    attempt.figures["without"] = dict(without.most_common())


TRIAL = Trial(
    "messages",
    "The error of a damaged file has a code and the file's name; offset and hint are counted",
    100,
    "faults",
    run,
    weight=0.5,
    targets=("R24",),
)
