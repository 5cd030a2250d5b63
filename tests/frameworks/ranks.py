# SPDX-License-Identifier: Apache-2.0
"""Two processes read one loader: the program of each, and their expected joint result.

Each program is called with OUT [--stop FILE] [--resume FILE]: it reads EPOCHS epochs, writes the
ids of its batches to OUT/RANK.json, and saves or loads a checkpoint after STOP batches.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

RECORDS, BATCH, EPOCHS, STOP = 26, 3, 2, 3
HERE = Path(__file__).parent
TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--stop", type=Path)
    parser.add_argument("--resume", type=Path)
    return parser.parse_args()


def make_loader() -> Any:
    import numpy as np

    import headrace as hr

    records = [{"x": np.float32([number, 1])} for number in range(RECORDS)]
    return hr.Loader(records, batch_size=BATCH, shuffle=True, seed=7, fields=("x", "id"))


def make_view() -> Any:
    return make_loader().torch()


def note(out: Path, rank: int, batches: list[list[int]]) -> None:
    (out / f"{rank}.json").write_text(json.dumps(batches))


# The test's side.


def run(command: list[str], out: Path, *options: object) -> list[list[list[int]]]:
    """Batches of both ranks, in the order of arrival."""
    out.mkdir()
    done = subprocess.run(
        [sys.executable, *command, str(out), *map(str, options)],
        cwd=out, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    return [json.loads((out / f"{rank}.json").read_text()) for rank in range(2)]


def expected() -> list[list[list[int]]]:
    """The batches of one process that requests either rank's part."""
    import headrace as hr

    both = []
    for rank in range(2):
        options: dict[str, Any] = {"batch_size": BATCH, "shuffle": True, "seed": 7, "fields": "id"}
        loader = hr.Loader([{"x": 0}] * RECORDS, shard=(rank, 2), **options)
        both.append([batch.id.tolist() for _ in range(EPOCHS) for batch in loader])
    return both


def check_epochs(both: list[list[list[int]]]) -> None:
    """Over both ranks, every record comes exactly once per epoch, in the loader's order."""
    epoch = len(both[0]) // EPOCHS
    for number in range(EPOCHS):
        batches = [rank[number * epoch : (number + 1) * epoch] for rank in both]
        ids = [id for rank in batches for batch in rank for id in batch]
        assert sorted(ids) == list(range(RECORDS))
    assert both == expected()


def check_all(command: list[str], folder: Path) -> None:
    """Whole epochs, and a run that is stopped in the middle of one and resumed."""
    whole = run(command, folder / "whole")
    check_epochs(whole)
    begun = run(command, folder / "begun", "--stop", folder / "checkpoint")
    rest = run(command, folder / "rest", "--resume", folder / "checkpoint")
    assert [len(rank) for rank in begun] == [STOP, STOP]
    assert [first + second for first, second in zip(begun, rest, strict=True)] == whole
