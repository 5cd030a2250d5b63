# SPDX-License-Identifier: Apache-2.0
"""A device that is lost at its k-th call: an error with a code, and the epoch continues
elsewhere."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import sets
from trial import Attempt, Trial

import headrace as hr
from headrace import _core
from headrace import transforms as T

RECORDS = 24
CALLS = 200  # a device is lost at one of these


def loader_of(photos: Any, **more: Any) -> hr.Loader:
    steps = [T.RandomResizedCrop(16), *hr.presets.normalized()]
    return hr.Loader(photos, steps, batch_size=4, shuffle=True, seed=3, threads=2, **more)


def values_of(batch: Any) -> bytes:
    return b"".join(np.ascontiguousarray(value).tobytes() for value in batch)


def run(attempt: Attempt) -> None:
    photos = sets.photos(attempt.folder / "photos", RECORDS, attempt.random, (32, 64))
    expected = [values_of(batch) for batch in loader_of(photos)]
    outcomes: Counter[str] = Counter()
    while attempt.goes_on():
        k = attempt.inputs % CALLS + 1
        depth = attempt.random.randint(1, 4)
        device = _core.simulated_device(attempt.random.getrandbits(16), fails_at=k)
        loader = loader_of(photos)
        received, rest = 0, []
        outcome = "not reached"
        try:
            for _ in loader.dlpack(device=device, depth=depth):
                received += 1  # their bytes are lost together with the device
        except hr.Error as problem:
            outcome = problem.code
            other = loader_of(photos)
            other.load_state_dict(loader.state_dict())
            rest = [values_of(batch) for batch in other]
        attempt.inputs += 1
        outcomes[outcome] += 1
        what = f"call {k}, depth {depth}, {outcome} after {received} batches"
        attempt.expect(rest == expected[received:], f"{what}: other batches follow")
        loader.close()
    attempt.figures["outcomes"] = dict(outcomes.most_common())


TRIAL = Trial(
    "device-lost",
    "A device may be lost at any call (simulated): an error with a code, and the rest of the epoch "
    "follows on the host after loading the state",
    2000,
    "losses",
    run,
    weight=0.5,
    targets=("R9",),
)
