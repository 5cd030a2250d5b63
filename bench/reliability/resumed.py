# SPDX-License-Identifier: Apache-2.0
"""The state after every step of two epochs is loaded by a new loader: the rest must be the same."""

from __future__ import annotations

import json
from pathlib import Path

import loaders
import sets
from trial import Attempt, Trial

RECORDS = 100


def run(attempt: Attempt) -> None:
    photos = sets.photos(attempt.folder / "photos", RECORDS, attempt.random, (16, 40))
    runs = 0
    while attempt.goes_on():
        for kind in loaders.KINDS:
            if not attempt.goes_on():
                break
            seed = attempt.random.getrandbits(30)
            states, digests = two_epochs(kind, photos, seed)
            runs += 1
            for step, state in enumerate(states[:-1]):
                if not attempt.goes_on():
                    break
                attempt.inputs += 1
                threads = attempt.random.choice((1, 2, 4))
                attempt.expect(
                    batches_after(kind, photos, seed, threads, state, digests[step + 1 :]),
                    f"{kind}, seed {seed}, step {step + 1}: other batches follow",
                )
    attempt.figures["epochs_of_reference"] = 2 * runs


def two_epochs(kind: str, photos: Path, seed: int) -> tuple[list[str], list[str]]:
    """After each batch the loader's state, as JSON, and the batch's digest."""
    states, digests = [], []
    with loaders.loader_of(kind, photos, seed, threads=2) as loader:
        for _ in range(2):
            for batch in loader:
                states.append(json.dumps(loader.state_dict()))
                digests.append(loaders.digest(batch))
    return states, digests


def batches_after(
    kind: str, photos: Path, seed: int, threads: int, state: str, wanted: list[str]
) -> bool:
    """Whether a new loader with this state gives the expected batches."""
    found: list[str] = []
    with loaders.loader_of(kind, photos, seed, threads=threads) as loader:
        loader.load_state_dict(json.loads(state))
        for _ in range(3):  # the first may be the rest of an epoch without any
            found += [loaders.digest(batch) for batch in loader]
    return found[: len(wanted)] == wanted


TRIAL = Trial(
    "resumed",
    "After loading a state, on any number of threads, the same batches follow",
    4_000,
    "states",
    run,
    weight=2,
    targets=("R10",),
)
