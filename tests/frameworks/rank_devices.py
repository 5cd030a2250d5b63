# SPDX-License-Identifier: Apache-2.0
"""A loop under torchrun in which each process has two simulated devices. See ranks.py."""

import json

import numpy as np
import torch
from ranks import EPOCHS, STOP, arguments, make_loader, note

from headrace import _core

given = arguments()
torch.distributed.init_process_group("gloo")
rank = torch.distributed.get_rank()
train = make_loader().dlpack([_core.simulated_device(seed=2 * rank + i) for i in range(2)])
if given.resume:
    train.load_state_dict(json.loads(given.resume.read_text()))
batches = []
while train.epoch < EPOCHS and not (given.stop and len(batches) == STOP):
    for parts in train:
        batches.append([int(number) for part in parts for number in np.asarray(part.id)])
        if given.stop and len(batches) == STOP:
            if rank == 0:
                given.stop.write_text(json.dumps(train.state_dict()))
            break
note(given.out, rank, batches)
torch.distributed.destroy_process_group()
