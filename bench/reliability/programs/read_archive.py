# SPDX-License-Identifier: Apache-2.0
"""FOLDER OUT: opens each file in a folder, and the folder itself, reads all records and converts
them to OUT; prints the outcomes and whether the secret was among the values, as JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

import headrace as hr

SECRET = b"root:x:0:0:not for you"


def outcome_of(problem: Exception) -> str:
    code = getattr(problem, "code", None) if isinstance(problem, hr.Error) else None
    return code or f"UNNAMED {type(problem).__name__}: {problem}".splitlines()[0]


def read(path: Path, out: Path) -> tuple[list[str], bool]:
    outcomes, leaked = [], False
    try:
        source = hr.open(path)
    except Exception as problem:
        return [outcome_of(problem)], False
    for number in range(min(len(source), 16)):
        try:
            for value in source[number].values():
                data = np.asarray(value).tobytes()
                leaked = leaked or SECRET[:8] in data
            outcomes.append("read")
        except Exception as problem:
            outcomes.append(outcome_of(problem))
    for to in ("folder", "tar"):
        try:
            hr.convert(source, out / path.name / to, to=to)
            outcomes.append("converted")
        except Exception as problem:
            outcomes.append(outcome_of(problem))
    return outcomes, leaked


def main(folder: str, out: str) -> None:
    found, leaked = [], False
    for path in (Path(folder), *sorted(Path(folder).iterdir())):
        outcomes, delivered = read(path, Path(out))
        found += outcomes
        leaked = leaked or delivered
    print(json.dumps({"outcomes": found, "leaked": leaked}))


main(*sys.argv[1:])
