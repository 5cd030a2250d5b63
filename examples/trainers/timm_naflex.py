# SPDX-License-Identifier: Apache-2.0
"""timm's NaFlex models: `torchrun --nproc-per-node 2 examples/trainers/timm_naflex.py`.

Each batch has its own sequence length and patch size, and as many images as a budget of tokens
allows. Only the import of create_naflex_loader differs from timm; the loader's position goes into
the checkpoint.
"""

import tempfile
from pathlib import Path

import torch
from headrace.trainers.timm import create_naflex_loader  # was: from timm.data
from timm.data import create_dataset
from timm.models.naflexvit import NaFlexVit, NaFlexVitCfg
from torch import distributed

files = sorted(Path(__file__).parent.glob("../images/*.jpg"))
distributed.init_process_group("gloo")  # "nccl" with GPUs
rank, ranks = distributed.get_rank(), distributed.get_world_size()


class Training:
    """Model, optimizer and loader of one run."""

    def __init__(self, root):
        torch.manual_seed(0)
        shape = {"patch_size": 16, "embed_dim": 32, "depth": 1, "num_heads": 2}
        net = NaFlexVit(NaFlexVitCfg(**shape, embed_proj_type="linear"), num_classes=len(files))
        self.model = torch.nn.parallel.DistributedDataParallel(net)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.01)
        self.loader = create_naflex_loader(
            create_dataset("", root, split="train", is_training=True),
            patch_size=16,
            train_seq_lens=(36, 64),
            batch_size=8,  # images of 64 tokens: a budget of 512
            is_training=True,
            distributed=True,
            rank=rank,
            world_size=ranks,
            num_workers=0,
            device=torch.device("cpu"),
            verbose=False,
        )

    def state(self):
        parts = {"model": self.model, "optimizer": self.optimizer, "loader": self.loader}
        return {name: part.state_dict() for name, part in parts.items()}

    def load(self, state):
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.loader.load_state_dict(state["loader"])

    def steps(self, epochs):
        for epoch in range(self.loader.epoch, epochs):
            self.loader.dataset.set_epoch(epoch)  # as timm's train.py does
            for batch, target in self.loader:
                loss = torch.nn.functional.cross_entropy(self.model(batch), target)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                yield tuple(batch["patches"].shape), round(loss.item(), 5)


with tempfile.TemporaryDirectory() as root:
    for number, file in enumerate(files * 8):
        folder = Path(root) / "train" / file.stem
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number:03}.jpg").symlink_to(file.resolve())
    begun = Training(root)
    steps = begun.steps(epochs=2)
    next(steps), next(steps)
    torch.save(begun.state(), f"{root}/checkpoint.pt")
    rest = list(steps)

    resumed = Training(root)
    resumed.load(torch.load(f"{root}/checkpoint.pt"))
    assert list(resumed.steps(epochs=2)) == rest
    distributed.barrier()
    if rank == 0:
        print(f"{ranks} ranks resumed, the last batch has {rest[-1][0]} patches")
distributed.destroy_process_group()
