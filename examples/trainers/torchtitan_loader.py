# SPDX-License-Identifier: Apache-2.0
"""torchtitan's dataloader: `torchrun --nproc-per-node 2 examples/trainers/torchtitan_loader.py`.

A configuration takes a function that makes a loader. As in torchtitan, the dataloader is built for
a data-parallel rank, iterated over epochs without an end, and saved with the model by
torch.distributed.checkpoint, here with one state for all ranks.
"""

import shutil
import tempfile

import numpy as np
import torch
from headrace.trainers import torchtitan
from torch import distributed
from torch.distributed import checkpoint

import headrace as hr

SEQ_LEN, GLOBAL_BATCH = 16, 8
tokens = np.random.default_rng(0).integers(0, 50, 40 * (SEQ_LEN + 1))  # np.load(..., mmap_mode="r")

distributed.init_process_group("gloo")  # "nccl" with GPUs
rank, ranks = distributed.get_rank(), distributed.get_world_size()


def make(rank, world_size, *, seq_len, **known):
    rows = tokens[: len(tokens) // (seq_len + 1) * (seq_len + 1)].reshape(-1, seq_len + 1)
    return hr.Loader(
        hr.records(tokens=rows),
        global_batch_size=GLOBAL_BATCH,
        shuffle=True,
        last_batch="drop",
        shard=(rank, world_size),
    )


class Training:
    """Model, optimizer and dataloader of one run."""

    def __init__(self):
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Embedding(50, 16), torch.nn.Linear(16, 50))
        self.model = torch.nn.parallel.DistributedDataParallel(net)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.01)
        config = torchtitan.DataLoader.Config(make=make)  # config.dataloader in torchtitan
        self.dataloader = config.build(
            dp_world_size=ranks,
            dp_rank=rank,
            tokenizer=None,
            seq_len=SEQ_LEN,
            local_batch_size=GLOBAL_BATCH // ranks,
        )

    def state(self):
        parts = {"model": self.model, "optimizer": self.optimizer}
        return {
            **{name: part.state_dict() for name, part in parts.items()},
            "dataloader": self.dataloader,
        }

    def load(self, folder):
        for batch in self.dataloader:  # an optimizer has no state before its first step
            self.step(batch)
            break
        state = self.state()
        checkpoint.load(state, checkpoint_id=folder)  # the dataloader is resumed by this
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])

    def step(self, batch):
        inputs, labels = batch
        logits = self.model(inputs["input"])
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return inputs["input"][:, 0].tolist(), loss.item()

    def steps(self, count):
        for _, batch in zip(range(count), self.dataloader, strict=False):
            yield self.step(batch)


folder = [tempfile.mkdtemp() if rank == 0 else ""]
distributed.broadcast_object_list(folder)
begun = Training()
steps = begun.steps(12)  # an epoch has 5
for _ in range(3):
    next(steps)
checkpoint.save(begun.state(), checkpoint_id=folder[0])
rest = list(steps)

resumed = Training()
resumed.load(folder[0])
assert list(resumed.steps(9)) == rest
distributed.barrier()
if rank == 0:
    print(f"{ranks} ranks resumed, last loss {rest[-1][1]:.3f}")
    shutil.rmtree(folder[0])
distributed.destroy_process_group()
