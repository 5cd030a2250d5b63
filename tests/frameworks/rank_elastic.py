# SPDX-License-Identifier: Apache-2.0
"""A training loop under torchrun whose ranks may be killed, and which then continues with another
number of ranks.

Called with OUT [STEP]: rank 1 is killed after STEP steps; without STEP, epochs follow one another
until OUT/end exists. Steps are logged as in elastic_log, with the weight after each.
"""

import os
import signal
import sys
import time
from pathlib import Path

import torch
from elastic_log import GLOBAL, begin_log, note, position, range_of_numbers

import headrace as hr

out, die = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
torch.distributed.init_process_group("gloo")
rank, world = torch.distributed.get_rank(), torch.distributed.get_world_size()
loader = hr.Loader(
    range_of_numbers(), global_batch_size=GLOBAL, shuffle=True, seed=3, uneven=True,
    shard=torch.distributed.group.WORLD,
).torch()  # fmt: skip
weight = torch.zeros(1, requires_grad=True)
checkpoint = out / "checkpoint"
if checkpoint.exists():
    saved = torch.load(checkpoint)
    weight.data = saved["weight"]
    loader.load_state_dict(saved["loader"])
steps, ends = 0, False
with begin_log(out, loader) as log:
    while not ends:
        for batch in loader:
            loss = batch.weight * ((weight * batch.x - 1) ** 2).mean()
            (gradient,) = torch.autograd.grad(loss, weight)
            told = torch.cat([gradient, torch.tensor([float((out / "end").exists())])])
            torch.distributed.all_reduce(told)
            weight.data -= 1e-4 * told[:1] / world
            ends = bool(told[1])
            steps += 1
            epoch, number = position(loader)
            note(log, epoch, number - 1, batch.number.tolist(), weight.item())
            if steps % 2 == 0 and rank == 0:
                torch.save({"weight": weight.data, "loader": loader.state_dict()}, out / "new")
                os.replace(out / "new", checkpoint)
            torch.distributed.barrier()
            if steps == die and rank == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            if not die:
                time.sleep(0.05)
torch.distributed.destroy_process_group()
