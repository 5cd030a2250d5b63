# SPDX-License-Identifier: Apache-2.0
"""A loop and checkpoints of Accelerate. See ranks.py."""

import accelerate
import torch
from ranks import EPOCHS, STOP, arguments, make_view, note

given = arguments()
accelerator = accelerate.Accelerator(cpu=True)
assert accelerator.num_processes == 2
train = make_view()
net = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), 1e-3)
net, optimizer, prepared = accelerator.prepare(net, optimizer, train)
assert prepared is train, "left as it is"
accelerator.register_for_checkpointing(train)
if given.resume:
    accelerator.load_state(given.resume)
batches: list[list[int]] = []
while train.epoch < EPOCHS and not (given.stop and len(batches) == STOP):
    for batch in train:
        batches.append(batch.id.tolist())
        accelerator.backward(net(batch.x).mean())
        optimizer.step()
        if given.stop and len(batches) == STOP:
            accelerator.save_state(given.stop)
            break
note(given.out, accelerator.process_index, batches)
accelerator.end_training()
