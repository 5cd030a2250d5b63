# SPDX-License-Identifier: Apache-2.0
"""A training loop under torchrun that may be killed, and goes on with another number of ranks.

Called with OUT [STEP]: rank 1 is killed after so many steps. Each rank notes its steps in
OUT/WORLD-RANK.jsonl: epoch, batch, ids, and the weight after it.
"""

import json
import os
import signal
import sys
from pathlib import Path

import numpy as np
import torch

import headrace as hr

out, die = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
torch.distributed.init_process_group("gloo")
rank, world = torch.distributed.get_rank(), torch.distributed.get_world_size()
loader = hr.Loader(
    hr.records(x=np.arange(44, dtype=np.float32), number=np.arange(44)),
    global_batch_size=8, shuffle=True, seed=3, uneven=True, shard=torch.distributed.group.WORLD,
).torch()  # fmt: skip
weight = torch.zeros(1, requires_grad=True)
checkpoint = out / "checkpoint"
if checkpoint.exists():
    saved = torch.load(checkpoint)
    weight.data = saved["weight"]
    loader.load_state_dict(saved["loader"])
steps = 0
with (out / f"{world}-{rank}.jsonl").open("w", buffering=1) as log:
    while loader.epoch < 2:
        for batch in loader:
            loss = batch.weight * ((weight * batch.x - 1) ** 2).mean()
            (gradient,) = torch.autograd.grad(loss, weight)
            torch.distributed.all_reduce(gradient)
            weight.data -= 1e-4 * gradient / world
            state, steps = loader.state_dict(), steps + 1
            step = [state["epoch"], state["batch"] - 1, batch.number.tolist(), weight.item()]
            log.write(json.dumps(step) + "\n")
            if steps % 2 == 0 and rank == 0:
                torch.save({"weight": weight.data, "loader": state}, out / "new")
                os.replace(out / "new", checkpoint)
            torch.distributed.barrier()
            if steps == die and rank == 1:
                os.kill(os.getpid(), signal.SIGKILL)
torch.distributed.destroy_process_group()
