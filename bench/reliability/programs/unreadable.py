# SPDX-License-Identifier: Apache-2.0
"""FILE SEED START COUNT: reads a file or folder while the engine's calls that read fail.

Prints "next" and "done" for each schedule: which calls fail, how many, and with which error.
Results that the system may return at any time (EINTR, fewer bytes than requested) must have no
effect; other failures may raise an error that names the file. Afterwards the file is read again.
"""

from __future__ import annotations

import errno
import hashlib
import random
import sys
from pathlib import Path

import numpy as np
from faults import EVER, READS, SHORT, faults

import headrace as hr

HARMLESS = {"EINTR": errno.EINTR, "fewer bytes": SHORT}
OTHERS = {name: getattr(errno, name) for name in ("EIO", "ESTALE", "ETIMEDOUT", "ENOMEM", "EACCES")}
RETRIED = 3  # consecutive temporary errors after which a read fails (kReadRetries)


def values_of(path: Path) -> str:
    found = hashlib.sha256()
    for record in hr.open(path):
        del record["key"]  # of some formats, its place where it cannot be read
        for name, value in sorted(record.items()):
            found.update(f"{name}{np.asarray(value).dtype}".encode())
            found.update(np.asarray(value).tobytes())
    return found.hexdigest()


def outcome_of(path: Path, expected: str, first: int, last: int, name: str, error: int) -> str:
    try:
        with faults(READS, first, last, error):
            found = values_of(path)
        outcome = "unnoticed" if found == expected else "WRONG: other values"
    except hr.Error as problem:
        outcome = problem.code or f"WRONG: {problem}"
        if name in HARMLESS:
            outcome = f"WRONG: noticed: {problem}"
        elif path.stem not in str(problem):
            outcome = f"WRONG: names no file: {problem}"
    except Exception as problem:
        outcome = f"WRONG: {type(problem).__name__}: {problem}"
    try:
        again = values_of(path)
    except Exception as problem:
        return f"WRONG: after {outcome}, {type(problem).__name__}: {problem}"
    return outcome if again == expected else f"WRONG: after {outcome}, other values"


def main(file: str, seed: str, start: str, count: str) -> None:
    path = Path(file)
    expected = values_of(path)
    with faults(READS, 0, 0) as counted:
        assert values_of(path) == expected
    for number in range(int(start), int(start) + int(count)):
        rng = random.Random(f"{seed} {path.name} {number}")
        name = rng.choice([*HARMLESS, *OTHERS])
        error = {**HARMLESS, **OTHERS}[name]
        first = rng.randint(1, max(1, counted.calls))
        length = rng.choice((1, 1, 2, RETRIED, RETRIED + 1, EVER))
        if name == "EINTR":  # no system interrupts forever
            length = min(length, 20)
        last = min(EVER, first + length - 1)
        many = "all" if length == EVER else length
        print("next", number, f"{name} from call {first}, {many}", flush=True)
        outcome = outcome_of(path, expected, first, last, name, error)
        print("done", number, outcome.replace("\n", " "), flush=True)


main(*sys.argv[1:])
