# SPDX-License-Identifier: Apache-2.0
"""Changes a byte of a file with checksums: the result must be an error, or the same values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import sets
from trial import Attempt, Trial

import headrace as hr


def run(attempt: Attempt) -> None:
    photos = sets.photos(attempt.folder / "photos", 16, attempt.random, (24, 48))
    source = hr.open(photos)
    hr.pack(source, attempt.folder / "fast.hrpack")
    hr.pack(source, attempt.folder / "dense.hrpack", level="dense")
    hr.convert(source, attempt.folder / "set" / "a.tfrecord", to="tfrecord")
    values = np.random.default_rng(attempt.random.getrandbits(32)).random((16, 20))
    np.savez_compressed(attempt.folder / "values.npz", x=values)
    files = [attempt.folder / name for name in ("fast.hrpack", "dense.hrpack", "values.npz")]
    files += sorted((attempt.folder / "set").glob("*.tfrecord"))
    intact = {file: values_of(file) for file in files}
    detected = 0
    while attempt.goes_on():
        file = files[attempt.inputs % len(files)]
        detected += flip(attempt, file, intact[file])
        attempt.inputs += 1
    attempt.figures["detected"] = detected
    attempt.figures["without_effect"] = attempt.inputs - detected - attempt.failed


def flip(attempt: Attempt, file: Path, intact: list[Any]) -> bool:
    """Whether it was detected."""
    data = file.read_bytes()
    at = attempt.random.randrange(len(data))
    changed = bytearray(data)
    changed[at] ^= attempt.random.randrange(1, 256)
    file.write_bytes(changed)
    try:
        found = values_of(file)
    except hr.Error:
        return True
    finally:
        file.write_bytes(data)
    # If a record's length is damaged, a single error represents it and all records after it.
    pairs = zip(found, intact, strict=False)
    silent = [number for number, (a, b) in enumerate(pairs) if a not in (None, b)]
    lost = len(found) != len(intact) and None not in found
    if silent or lost:
        what = f"{len(found)} records of {len(intact)}, other values in {silent[:3]}"
        attempt.fails(f"{file.name}, byte {at}: {what}, no error")
        return False
    return None in found


def values_of(file: Path) -> list[Any]:
    """The values of each record as bytes; None for an error."""
    source = hr.open(file)
    return [attempted(lambda n=number: as_bytes(source[n])) for number in range(len(source))]


def attempted(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except hr.Error:
        return None


def as_bytes(record: Any) -> list[Any]:
    return [(name, np.asarray(value).tobytes()) for name, value in sorted(record.items())]


TRIAL = Trial(
    "flipped",
    "A changed byte in a file that has checksums is never delivered as a value",
    5_000,
    "changed bytes",
    run,
    targets=("R4",),
)
