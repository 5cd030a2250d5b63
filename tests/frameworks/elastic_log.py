# SPDX-License-Identifier: Apache-2.0
"""The log of an elastic job's ranks, and which of its steps were committed.

The ranks of one world are a run. Each rank writes to LOG/RUN-WORLD-RANK.jsonl the position at which
it begins, which is the checkpoint's, and then its steps: epoch, batch, the valid ids, and values
that must be equal on all ranks.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import headrace as hr

RECORDS, GLOBAL, BATCHES = 44, 8, 6  # the last batch has four records


def begin_log(folder: Path, loader: Any) -> TextIO:
    """REQUIRES: a process group of torch.distributed."""
    import torch

    run = [time.time_ns()]
    torch.distributed.broadcast_object_list(run)
    rank, world = torch.distributed.get_rank(), torch.distributed.get_world_size()
    log = (folder / f"{run[0]}-{world}-{rank}.jsonl").open("w", buffering=1)
    note(log, *position(loader))
    return log


def note(log: TextIO, *values: Any) -> None:
    log.write(json.dumps(values) + "\n")


def position(loader: Any) -> tuple[int, int]:
    state = loader.state_dict()
    return state["epoch"], state["batch"]


# The test's side.


class Run(NamedTuple):
    world: int
    begin: list[int]
    steps: list[list[list[Any]]]  # logged by all ranks; indexed by step, then rank


def runs_in(folder: Path) -> list[Run]:
    """In order, without the runs that ended before all ranks had begun."""
    found: dict[tuple[int, int], list[list[list[Any]]]] = {}
    for path in sorted(folder.glob("*-*-*.jsonl")):
        run, world, _ = map(int, path.stem.split("-"))
        whole = path.read_text().rpartition("\n")[0]  # the last line may be half written
        lines = [json.loads(line) for line in whole.splitlines()]
        if lines:
            found.setdefault((run, world), []).append(lines)
    runs = []
    for (_, world), ranks in sorted(found.items()):
        if len(ranks) == world:
            begin, *steps = map(list, zip(*ranks, strict=False))
            assert all(each == begin[0] for each in begin)
            runs.append(Run(world, begin[0], steps))
    return runs


def committed(runs: list[Run]) -> list[list[list[Any]]]:
    """Steps covered by a checkpoint: in each run, those before the next run begins."""
    out: list[list[list[Any]]] = []
    for run, later in zip(runs, [*runs[1:], None], strict=True):
        assert run.begin[0] * BATCHES + run.begin[1] == len(out)
        for step in run.steps:
            if later and step[0][:2] >= later.begin:
                break
            assert len({json.dumps(rank[:2] + rank[3:]) for rank in step}) == 1
            out.append(step)
    return out


def check(steps: list[list[list[Any]]], epochs: int) -> None:
    """Each epoch's batches in order, with each record once."""
    given: dict[str, Any] = {"global_batch_size": GLOBAL, "shuffle": True, "seed": 3}
    with hr.Loader(range_of_numbers(), **given, shard=False) as alone:
        wanted = [
            [e, b, batch.number.tolist()] for e in range(epochs) for b, batch in enumerate(alone)
        ]
    got = [[*step[0][:2], [id for rank in step for id in rank[2]]] for step in steps]
    assert got[: len(wanted)] == wanted


def range_of_numbers() -> Any:
    import numpy as np

    return hr.records(x=np.arange(RECORDS, dtype=np.float32), number=np.arange(RECORDS))
