# SPDX-License-Identifier: Apache-2.0
"""FOLDER OPERATION SEED ALLOCATIONS START COUNT: an operation in which allocations are refused.

With a COUNT of 0, prints how many allocations it makes. Otherwise these are refused in a random
order, each alone and with all that follow: number START and the following in this order. Prints a
line for each refusal: number, outcome. After each the operation is repeated.
"""

from __future__ import annotations

import contextlib
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

REPEATED = 3
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


def leaked(operation: Callable[[], str], number: int, last: int, before: int) -> bool:
    """Whether objects are left each time that the allocation is refused; what is made once, such as
    a table of errors, is not a leak."""
    for _ in range(REPEATED):
        now = live()
        if now <= before:
            return False
        before = now
        with contextlib.suppress(Exception), faults(ALLOCATIONS, number, last):
            operation()
        operation()
        gc.collect()
    return live() > before


def main(name: str, seed: str, allocations: str, start: str, count: str) -> None:
    operation = OPERATIONS[name]
    expected = operation()
    for _ in range(2):
        with faults(ALLOCATIONS, 0, 0) as counted:
            assert operation() == expected
    if count == "0":
        print(counted.calls, flush=True)
        return
    chosen = [(number, ever) for number in range(1, int(allocations) + 1) for ever in (False, True)]
    random.Random(f"{seed} {name}").shuffle(chosen)
    gc.collect()
    before = live()
    for number in range(int(start), int(start) + int(count)):
        refused, ever = chosen[number]
        more = " and all that follow" if ever else ""
        print("next", number, f"allocation {refused}{more} refused", flush=True)
        last = EVER if ever else refused
        outcome = outcome_of(operation, refused, last, expected).replace("\n", " ")
        gc.collect()
        if leaked(operation, refused, last, before):
            outcome = f"WRONG: after {outcome}, objects are left"
        before = live()
        print("done", number, outcome, flush=True)


if __name__ == "__main__":
    main(*sys.argv[2:])
