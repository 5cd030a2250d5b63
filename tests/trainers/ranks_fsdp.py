# SPDX-License-Identifier: Apache-2.0
"""FSDP2 and tensor parallelism, with a DCP checkpoint of model, optimizer and loader: two times two
ranks, uninterrupted, killed, and resumed; then resumed by three data-parallel ranks. See forked.py.

Called with a folder.
"""

import functools
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from forked import Notes, kill_this_rank, ranks
from headrace.trainers.dcp import LoaderState
from torch.distributed import checkpoint
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)

import headrace as hr

RECORDS, GLOBAL, STEPS, SAVED, KILLED = 30, 6, 8, 3, 6
folder = Path(sys.argv[1])


class Saved:
    """The model and its optimizer, in a form that does not depend on the mesh."""

    def __init__(self, model: Any, optimizer: Any) -> None:
        self.parts = model, optimizer

    def state_dict(self) -> dict[str, Any]:
        model, optimizer = get_state_dict(*self.parts)
        return {"model": model, "optimizer": optimizer}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        model, optimizer = state["model"], state["optimizer"]
        set_state_dict(*self.parts, model_state_dict=model, optim_state_dict=optimizer)


def run(name: str, tp: int, resumed: str | None = None, kill: bool = False) -> None:
    dist.init_process_group("gloo")
    dp = dist.get_world_size() // tp
    mesh = init_device_mesh("cpu", (dp, tp), mesh_dim_names=("dp", "tp"))
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    if tp > 1:
        parallelize_module(model, mesh["tp"], {"0": ColwiseParallel(), "2": RowwiseParallel()})
    fully_shard(model, mesh=mesh["dp"])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    x = np.random.default_rng(1).standard_normal((RECORDS, 4), np.float32)
    loader = hr.Loader(
        hr.records(x=x, number=np.arange(RECORDS)),
        global_batch_size=GLOBAL,
        shuffle=True,
        seed=5,
        last_batch="drop",
        shard=mesh["dp"],
    )
    saved = {"training": Saved(model, optimizer), "loader": LoaderState(loader)}
    if resumed is not None:
        checkpoint.load(saved, checkpoint_id=str(folder / resumed))
    notes, step = Notes(folder, name), SAVED if resumed else 0
    view = loader.torch()
    while step < STEPS:
        for batch in view:
            step += 1
            notes.add(batch.number.tolist())
            optimizer.zero_grad()
            (model(batch.x) - batch.x.sum(1, keepdim=True)).square().mean().backward()
            optimizer.step()
            if resumed is None and step == SAVED:
                checkpoint.save(saved, checkpoint_id=str(folder / f"{name}_saved"))
            if kill and step == KILLED:
                kill_this_rank()
            if step == STEPS:
                break
    notes.add([parameter.full_tensor().tolist() for parameter in model.parameters()])
    dist.destroy_process_group()


torch.set_num_threads(1)
assert ranks(functools.partial(run, "whole", 2), 4) == [0] * 4
assert ranks(functools.partial(run, "killed", 2, kill=True), 4) == [-9] * 4
assert ranks(functools.partial(run, "resumed", 2, "killed_saved"), 4) == [0] * 4
assert ranks(functools.partial(run, "others", 1, "killed_saved"), 3) == [0] * 3
