# SPDX-License-Identifier: Apache-2.0
"""FILE START COUNT: reads mutated copies of a file until COUNT of them were errors, and prints what
the message of each contains, as JSON."""

from __future__ import annotations

import itertools
import json
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
from read_mutated import IMAGES, SOUNDS, changed

import headrace as hr

MOST = 500  # copies


def error_of(path: Path) -> hr.Error | None:
    """The first error while the file and its records are read."""
    try:
        source = hr.open(path.parent if path.suffix in (*IMAGES, *SOUNDS) else path)
        for number in range(min(len(source), 64)):
            for value in source[number].values():
                np.asarray(value)
    except hr.Error as problem:
        return problem
    return None


def main(file: str, start: str, count: str) -> None:
    seed, found = Path(file), 0
    with tempfile.TemporaryDirectory() as folder:
        for beside in seed.parent.glob(f"{seed.stem}.*"):  # its index
            if beside.is_file() and seed.suffix not in IMAGES:
                shutil.copy(beside, folder)
        path = Path(folder) / seed.name
        for number in itertools.islice(itertools.count(int(start)), MOST):
            path.write_bytes(changed(seed.read_bytes(), number))
            problem = error_of(path)
            if problem is None:
                continue
            message = {
                "code": problem.code,
                "file": path.name in str(problem),
                "offset": problem.where.offset is not None,
                "hint": bool(problem.hint),
                "text": str(problem).splitlines()[0].replace(folder, ""),
            }
            print(json.dumps(message), flush=True)
            found += 1
            if found == int(count):
                break


main(*sys.argv[1:])
