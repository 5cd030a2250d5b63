# SPDX-License-Identifier: Apache-2.0
"""FSDP2: `torchrun --nproc-per-node 2 examples/trainers/fsdp_checkpoint.py`.

One checkpoint of torch.distributed.checkpoint holds the model, the optimizer and the loader's
position. It can be loaded on a different number of ranks.
"""

import shutil
import tempfile
from pathlib import Path

import torch
from headrace.trainers.dcp import LoaderState
from torch import distributed
from torch.distributed import checkpoint
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

import headrace as hr

files = sorted(Path(__file__).parent.glob("../images/*.jpg"))
source = hr.records(image=[str(file) for file in files], label=list(range(len(files))))
source = hr.subset(source, list(range(len(files))) * 8)

distributed.init_process_group("gloo")  # "nccl" with GPUs
ranks = distributed.get_world_size()
mesh = init_device_mesh("cpu", (ranks, 1), mesh_dim_names=("dp", "tp"))


class Training:
    """Model, optimizer and loader of one run."""

    def __init__(self):
        torch.manual_seed(0)
        self.model = torch.nn.Sequential(
            torch.nn.Conv2d(3, 16, 8, stride=8),
            torch.nn.AdaptiveAvgPool2d(2),
            torch.nn.Flatten(),
            torch.nn.Linear(64, len(files)),
        )
        fully_shard(self.model, mesh=mesh["dp"])
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.01)
        self.loader = hr.Loader(
            source,
            hr.presets.imagenet_train(64),
            fields=("image", "label", "id"),
            global_batch_size=32,
            shuffle=True,
            shard=mesh["dp"],  # ranks of one tensor-parallel group get the same batches
        )

    def state(self):
        model, optimizer = get_state_dict(self.model, self.optimizer)
        return {"model": model, "optimizer": optimizer, "loader": LoaderState(self.loader)}

    def load(self, folder):
        state = self.state()
        checkpoint.load(state, checkpoint_id=folder)  # the loader is resumed by this
        set_state_dict(
            self.model,
            self.optimizer,
            model_state_dict=state["model"],
            optim_state_dict=state["optimizer"],
        )

    def steps(self):
        for batch in self.loader.torch():
            loss = torch.nn.functional.cross_entropy(self.model(batch.image), batch.label)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            yield batch.id.tolist()


folder = [tempfile.mkdtemp() if distributed.get_rank() == 0 else ""]
distributed.broadcast_object_list(folder)
begun = Training()
steps = begun.steps()
next(steps)
checkpoint.save(begun.state(), checkpoint_id=folder[0])
rest = list(steps)

resumed = Training()
resumed.load(folder[0])
assert list(resumed.steps()) == rest
distributed.barrier()
if distributed.get_rank() == 0:
    print(f"{ranks} ranks resumed with the next batch")
    shutil.rmtree(folder[0])
distributed.destroy_process_group()
