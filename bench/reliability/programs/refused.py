# SPDX-License-Identifier: Apache-2.0
"""FOLDER OPERATION SEED START COUNT: an operation in which allocation after allocation is refused.

Prints how many it makes, then a line for each refusal: number, outcome. Odd numbers refuse one
allocation, even numbers also all that follow. After each refusal the operation is repeated.
"""

from __future__ import annotations

import gc
import hashlib
import random
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from faults import ALLOCATIONS, EVER, faults, live

import headrace as hr
from headrace import _core
from headrace import transforms as T

FOLDER = Path(sys.argv[1])
PHOTOS, TAR = FOLDER / "photos", FOLDER / "set.tar"


def digest(*values: Any) -> str:
    found = hashlib.sha256()
    for value in values:
        found.update(value if isinstance(value, bytes) else np.ascontiguousarray(value).tobytes())
    return found.hexdigest()[:12]


def epoch(source: Any = PHOTOS, steps: Any = (), **more: Any) -> str:
    steps = [T.RandomResizedCrop(16), T.RandomHorizontalFlip(), *steps]
    given = {"batch_size": 4, "shuffle": True, "threads": 2, "seed": 1, **more}
    with hr.Loader(source, steps, **given) as loader:
        return digest(*(part for batch in loader for part in batch))


def copied() -> str:
    loader = hr.Loader(PHOTOS, [T.Resize((16, 16))], batch_size=4)
    with loader:
        batches = loader.dlpack(device=_core.simulated_device(1))
        return digest(*(np.asarray(batch[0].bits()) for batch in batches))


def resumed() -> str:
    loader = hr.Loader(PHOTOS, [T.Resize((16, 16))], batch_size=4, shuffle=True, seed=1)
    next(iter(loader))
    other = hr.Loader(PHOTOS, [T.Resize((16, 16))], batch_size=4, shuffle=True, seed=1)
    other.load_state_dict(loader.state_dict())
    return digest(*(batch.image for batch in other))


def written(write: Callable[[Path], Any], name: str) -> str:
    folder = Path(tempfile.mkdtemp(dir=FOLDER))
    try:
        write(folder / name)
        return digest(*(record["image"] for record in hr.open(folder / name)))
    finally:
        shutil.rmtree(folder)


def inverted(image: Any) -> Any:
    return np.uint8(255) - image


OPERATIONS: dict[str, Callable[[], str]] = {
    "open a folder": lambda: str(len(hr.open(PHOTOS))),
    "read a tar": lambda: digest(*(record["image"] for record in hr.open(TAR))),
    "epoch": epoch,
    "epoch of a tar": lambda: epoch(TAR),
    "colors": lambda: epoch(steps=[T.ColorJitter(0.4, 0.4, 0.4), T.RandAugment()]),
    "python": lambda: epoch(steps=[inverted]),
    "cached": lambda: epoch(cache=1 << 22),
    "resident": lambda: epoch(resident=True),
    "copied": copied,
    "resumed": resumed,
    "arrays": lambda: digest(*(r["x"] for r in hr.open(FOLDER / "values.npz"))),
    "pack": lambda: written(lambda path: hr.pack(PHOTOS, path), "set.hrpack"),
    "convert": lambda: written(lambda path: hr.convert(PHOTOS, path, to="tfrecord"), "s.tfrecord"),
}


def outcome_of(operation: Callable[[], str], number: int, last: int, expected: str) -> str:
    try:
        with faults(ALLOCATIONS, number, last):
            found = operation()
        outcome = "survives" if found == expected else "WRONG: other values"
    except MemoryError:
        outcome = "MemoryError"
    except hr.Error as problem:
        outcome = problem.code or f"WRONG: {problem}"
    except Exception as problem:
        outcome = f"WRONG: {type(problem).__name__}: {problem}"
    gc.collect()
    try:
        again = operation()
    except Exception as problem:
        return f"WRONG: after {outcome}, {type(problem).__name__}: {problem}"
    return outcome if again == expected else f"WRONG: after {outcome}, other values"


def main(name: str, seed: str, start: str, count: str) -> None:
    operation = OPERATIONS[name]
    expected = operation()
    for _ in range(2):
        with faults(ALLOCATIONS, 0, 0) as counted:
            assert operation() == expected
    if start == "0":
        print("calls", counted.calls, flush=True)
    rng = random.Random(f"{seed} {name}")
    chosen = [rng.randint(1, max(1, counted.calls)) for _ in range(int(start) + int(count))]
    before = live()
    for number in range(int(start), int(start) + int(count)):
        refused = chosen[number]
        last = refused if number % 2 else EVER
        more = "" if number % 2 else " and all that follow"
        print("next", number, f"allocation {refused}{more} refused", flush=True)
        outcome = outcome_of(operation, refused, last, expected).replace("\n", " ")
        print("done", number, outcome, flush=True)
    gc.collect()
    print("live", live() - before, flush=True)


main(*sys.argv[2:])
