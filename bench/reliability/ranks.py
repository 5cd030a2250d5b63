# SPDX-License-Identifier: Apache-2.0
"""A run continues with different numbers of ranks: the global batches must be the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import loaders
import numpy as np
import sets
from trial import Attempt, Trial

RECORDS = 200
WORLDS = (1, 2, 3, 4, 6, 8)
# Mixed rows are in groups that 8 ranks cannot divide; the other loaders are too slow for eight
# ranks.
LEFT_OUT = ("mixed", "resident", "python")


def run(attempt: Attempt) -> None:
    photos = sets.photos(attempt.folder / "photos", RECORDS, attempt.random, (16, 32))
    largest = 0
    kinds = [kind for kind in loaders.KINDS if kind not in LEFT_OUT]
    while attempt.goes_on():
        kind = kinds[attempt.inputs % len(kinds)]
        seed = attempt.random.getrandbits(30)
        with loaders.loader_of(kind, photos, seed, shard=False, threads=1) as loader:
            wanted = [loaders.digest(batch) for batch in loader]
        worlds, found, state = [], [], None
        while len(found) < len(wanted):
            world = attempt.random.choice(WORLDS)
            steps = attempt.random.randrange(1, len(wanted) - len(found) + 1)
            digests, state = some_steps(kind, photos, seed, world, steps, state)
            largest = max(largest, len(str(state)))
            worlds.append(world)
            found += digests
        attempt.inputs += 1
        attempt.expect(found == wanted, f"{kind}, seed {seed}, ranks {worlds}: other batches")
    attempt.figures["bytes_of_the_largest_state"] = largest


def some_steps(
    kind: str, photos: Path, seed: int, world: int, steps: int, state: Any
) -> tuple[list[str], Any]:
    """Digests of the global batches, assembled from all ranks, and rank 0's state."""
    parts: list[list[Any]] = []
    states = []
    for rank in range(world):
        with loaders.loader_of(kind, photos, seed, shard=(rank, world), threads=1) as loader:
            if state is not None:
                loader.load_state_dict(state)
            mine = []
            for batch in loader:
                mine.append(type(batch)(*(np.array(value) for value in batch)))
                if len(mine) == steps:
                    break
            parts.append(mine)
            states.append(loader.state_dict())
    whole = [
        type(ranks[0])(*(np.concatenate(values) for values in zip(*ranks, strict=True)))
        for ranks in zip(*parts, strict=True)
    ]
    return [loaders.digest(batch) for batch in whole], states[0]


TRIAL = Trial(
    "ranks",
    "Whatever the number of ranks was before and is now, the global batches are the same",
    600,
    "histories",
    run,
    targets=("R11",),
)
