# SPDX-License-Identifier: Apache-2.0
"""The loop of torchvision's reference script for classification: `torchrun --nproc-per-node 2
examples/trainers/torchvision_reference.py`.

One line follows the script's DataLoader, and the loader's position goes into the script's
checkpoint. The script's sampler, its set_epoch() and its loop are unchanged.
"""

import tempfile
from pathlib import Path

import torch
import torchvision
from torch import distributed
from torchvision.transforms import v2

import headrace as hr

files = sorted(Path(__file__).parent.glob("../images/*.jpg"))
distributed.init_process_group("gloo")  # "nccl" with GPUs


def load_data(root):
    preset = v2.Compose(
        [
            v2.RandomResizedCrop(64, antialias=True),
            v2.RandomHorizontalFlip(0.5),
            v2.TrivialAugmentWide(),
            v2.PILToTensor(),
            v2.ToDtype(torch.float, scale=True),
            v2.Normalize(mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225)),
        ]
    )
    dataset = torchvision.datasets.ImageFolder(root, preset)
    return dataset, torch.utils.data.distributed.DistributedSampler(dataset)


class Training:
    def __init__(self, root):
        torch.manual_seed(0)
        dataset, self.train_sampler = load_data(root)
        data_loader = torch.utils.data.DataLoader(
            dataset, batch_size=8, sampler=self.train_sampler, num_workers=0, pin_memory=True
        )
        self.data_loader = hr.from_dataloader(data_loader, verbose=False).torch()  # the new line
        net = torch.nn.Sequential(
            torch.nn.Conv2d(3, 8, 8, stride=8),
            torch.nn.AdaptiveAvgPool2d(2),
            torch.nn.Flatten(),
            torch.nn.Linear(32, len(files)),
        )
        self.model = torch.nn.parallel.DistributedDataParallel(net)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        self.lr_scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, step_size=1, gamma=0.9)

    @property
    def parts(self):
        names = "model", "optimizer", "lr_scheduler", "data_loader"
        return {name: getattr(self, name) for name in names}

    def train_one_epoch(self):
        for image, target in self.data_loader:
            loss = torch.nn.functional.cross_entropy(self.model(image), target)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            yield loss.item()

    def train(self, start_epoch, epochs):
        for epoch in range(start_epoch, epochs):
            self.train_sampler.set_epoch(epoch)
            yield from self.train_one_epoch()
            self.lr_scheduler.step()


with tempfile.TemporaryDirectory() as root:
    for number, file in enumerate(files * 8):
        folder = Path(root) / "train" / file.stem
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number:03}.jpg").symlink_to(file.resolve())
    begun = Training(f"{root}/train")
    losses = begun.train(0, epochs=2)
    next(losses), next(losses)  # the checkpoint is from the middle of epoch 0
    checkpoint = {name: part.state_dict() for name, part in begun.parts.items()}
    torch.save({**checkpoint, "epoch": 0}, f"{root}/checkpoint.pth")
    rest = list(losses)

    resumed = Training(f"{root}/train")
    checkpoint = torch.load(f"{root}/checkpoint.pth")
    for name, part in resumed.parts.items():
        part.load_state_dict(checkpoint[name])
    assert list(resumed.train(checkpoint["epoch"], epochs=2)) == rest
    distributed.barrier()
    if distributed.get_rank() == 0:
        print(f"{distributed.get_world_size()} ranks resumed, last loss {rest[-1]:.3f}")
distributed.destroy_process_group()
