# SPDX-License-Identifier: Apache-2.0
"""A plain loop under torchrun. See ranks.py."""

import json

import torch
from ranks import EPOCHS, STOP, arguments, make_view, note

given = arguments()
torch.distributed.init_process_group("gloo")
rank = torch.distributed.get_rank()
train = make_view()
if given.resume:
    train.load_state_dict(json.loads(given.resume.read_text()))
batches = []
while train.epoch < EPOCHS and not (given.stop and len(batches) == STOP):
    for batch in train:
        batches.append(batch.id.tolist())
        if given.stop and len(batches) == STOP:
            if rank == 0:
                given.stop.write_text(json.dumps(train.state_dict()))
            break
note(given.out, rank, batches)
torch.distributed.destroy_process_group()
