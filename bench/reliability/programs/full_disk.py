# SPDX-License-Identifier: Apache-2.0
"""OPERATION SOURCE DISK ELSEWHERE: writes SOURCE to DISK, which is too small, and again when it has
grown; or reads it with a cache there. Prints the outcome and what was wrong, as JSON."""

from __future__ import annotations

import errno
import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

import headrace as hr

READERS = ("listing", "index", "unpacked")


def files_of(path: Path) -> list[Path]:
    return sorted(each for each in [path, *path.rglob("*")] if each.is_file())


def digest(path: Path) -> str:
    found = hashlib.sha256()
    for file in files_of(path):
        found.update(str(file.relative_to(path.parent)).encode() + file.read_bytes())
    return found.hexdigest()


def write(operation: str, source: str, to: Path) -> None:
    if operation == "pack":
        hr.pack(hr.open(source), to)
    else:
        hr.convert(hr.open(source), to, to=operation)


def values_of(source: str) -> str:
    found = hashlib.sha256()
    for record in hr.open(source):
        found.update(np.asarray(record["image"]).tobytes())
    return found.hexdigest()


def outcome_of(problem: Exception, problems: list[str]) -> str:
    """The error's code; it has to say that there is no space."""
    text = str(problem)
    full = isinstance(problem, OSError) and problem.errno == errno.ENOSPC
    if not full and "No space left" not in text and " free, after " not in text:
        problems.append(f"does not say that the disk is full: {type(problem).__name__}: {text}")
    code = getattr(problem, "code", "") if isinstance(problem, hr.Error) else ""
    return code or type(problem).__name__


def written(operation: str, source: str, disk: Path, elsewhere: Path) -> dict[str, Any]:
    problems: list[str] = []
    name = f"out.{'hrpack' if operation == 'pack' else operation}"
    wanted = elsewhere / name
    if not wanted.exists():
        elsewhere.mkdir(exist_ok=True)
        write(operation, source, wanted)
    try:
        write(operation, source, disk / name)
        outcome = "written"
    except Exception as problem:
        outcome = outcome_of(problem, problems)
        if (disk / name).exists():
            problems.append("an unfinished output has its final name")
        grow(disk)
        write(operation, source, disk / name)
    if digest(disk / name) != digest(wanted):
        problems.append("other bytes than on a disk with space")
    return {"outcome": outcome, "problems": problems}


def read(source: str, disk: Path) -> dict[str, Any]:
    problems: list[str] = []
    try:
        first = values_of(source)
        outcome = "read"
    except Exception as problem:
        first, outcome = "", outcome_of(problem, problems)
        if not source.endswith(".gz"):  # which must be unpacked somewhere
            problems.append(f"cannot be read without a cache: {outcome}")
    grow(disk)
    if values_of(source) != first and first:
        problems.append("other values than with a cache")
    return {"outcome": outcome, "problems": problems}


def grow(disk: Path) -> None:
    """Copies that are unpacked leave a gigabyte free. Pages of a tmpfs are taken when written."""
    subprocess.run(["mount", "-o", "remount,size=8g", disk], check=True)


def main(operation: str, source: str, disk: str, elsewhere: str) -> None:
    if operation in READERS:
        report = read(source, Path(disk))
    else:
        report = written(operation, source, Path(disk), Path(elsewhere))
    print(json.dumps(report))


main(*sys.argv[1:])
