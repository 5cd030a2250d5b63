# SPDX-License-Identifier: Apache-2.0
"""DeepSpeed: `torchrun --nproc-per-node 2 examples/trainers/deepspeed_checkpoint.py`.

`deepspeed.initialize` gets the model, not the data: the loader divides each global batch over the
engine's data-parallel group. Its position is in the engine's checkpoint.
"""

import shutil
import tempfile
from pathlib import Path

import deepspeed
import torch

import headrace as hr

files = sorted(Path(__file__).parent.glob("../images/*.jpg"))
source = hr.records(image=[str(file) for file in files], label=list(range(len(files))))
source = hr.subset(source, list(range(len(files))) * 8)

deepspeed.init_distributed("gloo")  # "nccl" with GPUs
model = torch.nn.Sequential(
    torch.nn.Conv2d(3, 16, 8, stride=8),
    torch.nn.AdaptiveAvgPool2d(2),
    torch.nn.Flatten(),
    torch.nn.Linear(64, len(files)),
)
engine, *_ = deepspeed.initialize(
    model=model,
    optimizer=torch.optim.Adam(model.parameters(), lr=0.01),
    config={
        "train_batch_size": 32,
        "gradient_accumulation_steps": 1,
        "zero_optimization": {"stage": 1},
        "zero_allow_untested_optimizer": True,
    },
)


def make_loader():
    return hr.Loader(
        source,
        hr.presets.imagenet_train(64),
        fields=("image", "label", "id"),
        batch_size=engine.train_micro_batch_size_per_gpu(),
        shuffle=True,
        shard=engine.data_parallel_group,
    )


def steps(loader):
    for batch in loader.torch(engine.device):
        engine.backward(torch.nn.functional.cross_entropy(engine(batch.image), batch.label))
        engine.step()
        yield batch.id.tolist()


folder = [tempfile.mkdtemp() if torch.distributed.get_rank() == 0 else ""]
torch.distributed.broadcast_object_list(folder)
begun = make_loader()
first = steps(begun)
next(first)
engine.save_checkpoint(folder[0], client_state={"loader": begun.state_dict()})
rest = list(first)

resumed = make_loader()
_, client = engine.load_checkpoint(folder[0])
resumed.load_state_dict(client["loader"])
assert list(steps(resumed)) == rest
torch.distributed.barrier()
if torch.distributed.get_rank() == 0:
    print(f"resumed with the next batch, {engine.global_steps} steps done")
    shutil.rmtree(folder[0])
torch.distributed.destroy_process_group()
