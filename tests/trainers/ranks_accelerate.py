# SPDX-License-Identifier: Apache-2.0
"""A loop with Accelerate on two ranks: uninterrupted, killed in mid-epoch, resumed, gathered.

Called with a folder. See forked.py.
"""

import functools
import sys
from pathlib import Path

import accelerate
import numpy as np
import torch
from forked import Notes, kill_this_rank, ranks

import headrace as hr

RECORDS, EPOCHS, SAVED, KILLED = 45, 2, 3, 5
folder = Path(sys.argv[1])


def run(name: str, resumed: str | None = None, kill: bool = False) -> None:
    accelerator = accelerate.Accelerator(cpu=True)
    source = hr.records(x=np.arange(RECORDS, dtype=np.float32)[:, None])
    train = hr.Loader(source, batch_size=4, shuffle=True, seed=3, last_batch="drop").torch()
    net = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-4)
    net, optimizer = accelerator.prepare(net, optimizer)
    accelerator.register_for_checkpointing(train)
    if resumed is not None:
        accelerator.load_state(str(folder / resumed))
    notes, step = Notes(folder, name), 0
    while train.epoch < EPOCHS:
        for batch in train:
            notes.add(batch.x[:, 0].tolist())
            accelerator.backward(net(batch.x).mean())
            optimizer.step()
            step += 1
            if resumed is None and step == SAVED:
                accelerator.save_state(str(folder / f"{name}_state"))
            if kill and step == KILLED:
                kill_this_rank()
    accelerator.end_training()


def gather() -> None:
    accelerator = accelerate.Accelerator(cpu=True)
    loader = hr.Loader(hr.records(x=np.arange(RECORDS)), batch_size=8, last_batch="pad")
    gathered: list[int] = []
    for batch in loader.torch():
        gathered += accelerator.gather_for_metrics(batch.x).tolist()
    Notes(folder, "gathered").add(gathered)
    accelerator.end_training()


assert ranks(functools.partial(run, "whole")) == [0, 0]
assert ranks(functools.partial(run, "killed", kill=True)) == [-9, -9]
assert ranks(functools.partial(run, "resumed", "killed_state")) == [0, 0]
assert ranks(gather) == [0, 0]
