# SPDX-License-Identifier: Apache-2.0
"""Our dataloader for torchtitan on two ranks with its checkpoints by DCP: uninterrupted, killed,
resumed, and resumed by one rank. See forked.py.

Called with a folder.
"""

import functools
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from forked import Notes, kill_this_rank, ranks
from headrace.trainers import torchtitan

import headrace as hr

RECORDS, GLOBAL, STEPS, SAVED, KILLED = 20, 4, 8, 3, 5
folder = Path(sys.argv[1])


def make(rank: int, world_size: int, *, seq_len: int, **known: Any) -> hr.Loader:
    tokens = np.arange(RECORDS * (seq_len + 1)).reshape(RECORDS, seq_len + 1)
    options: dict[str, Any] = {"shuffle": True, "seed": 2, "shard": (rank, world_size)}
    return hr.Loader(hr.records(tokens=tokens), global_batch_size=GLOBAL, **options)


def run(name: str, resumed: str | None = None, kill: bool = False) -> None:
    dist.init_process_group("gloo")
    rank, count = dist.get_rank(), dist.get_world_size()
    config = torchtitan.DataLoader.Config(make=make)
    loader = config.build(
        dp_world_size=count, dp_rank=rank, tokenizer=None, seq_len=3, local_batch_size=2
    )
    if resumed is not None:  # as torchtitan's CheckpointManager: Stateful objects by name
        dcp.load({"dataloader": loader}, checkpoint_id=str(folder / resumed))
    notes, begun = Notes(folder, name), SAVED if resumed else 0
    for step, (inputs, labels) in enumerate(loader, begun + 1):
        assert torch.equal(inputs["input"][:, 1:], labels[:, :-1])
        assert inputs["positions"][-1].tolist() == [0, 1, 2]
        notes.add(inputs["input"][:, 0].tolist())
        if resumed is None and step == SAVED:
            dcp.save({"dataloader": loader}, checkpoint_id=str(folder / f"{name}_saved"))
        if kill and step == KILLED:
            kill_this_rank()
        if step == STEPS:
            break


torch.set_num_threads(1)
assert ranks(functools.partial(run, "whole")) == [0, 0]
assert ranks(functools.partial(run, "killed", kill=True)) == [-9, -9]
assert ranks(functools.partial(run, "resumed", "killed_saved")) == [0, 0]
assert ranks(functools.partial(run, "alone", "killed_saved"), 1) == [0]
