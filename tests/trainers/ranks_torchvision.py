# SPDX-License-Identifier: Apache-2.0
"""torchvision's reference scripts with from_dataloader: uninterrupted, killed in mid-epoch, resumed
from the script's checkpoint. Classification on two ranks of DDP, detection and segmentation on one.
See forked.py.

Called with a folder of results and one with a folder of images for each script.
"""

import functools
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from forked import Notes, kill_this_rank, ranks

import headrace as hr

sys.path.insert(0, str(Path(__file__).parent.parent / "migration"))
import torchvision_classification as classification
import torchvision_detection as detection
import torchvision_segmentation as segmentation

folder, root = Path(sys.argv[1]), Path(sys.argv[2])
EPOCHS, SAVED, KILLED = 2, 2, 4  # steps of the first epoch


def numbers_in(value: Any) -> list[float]:
    """The sums of all tensors in a batch."""
    if isinstance(value, torch.Tensor):
        return [value.double().sum().item()]
    parts = value.values() if isinstance(value, dict) else value
    return [n for part in parts if not isinstance(part, str | int) for n in numbers_in(part)]


class Run:
    """The script's data_loader; saves the script's checkpoint between two steps of the loop."""

    def __init__(self, name: str, data_loader: Any, parts: dict[str, Any], kill: bool) -> None:
        self.name, self.kill, self.step = name, kill, 0
        self.view = hr.from_dataloader(data_loader, verbose=False).torch()
        self.parts = {**parts, "data_loader": self.view}
        self.notes = Notes(folder, name)

    def __iter__(self) -> Iterator[Any]:
        batches = iter(self.view)
        while True:
            if self.kill and self.step == SAVED and os.environ.get("RANK", "0") == "0":
                states = {name: part.state_dict() for name, part in self.parts.items()}
                torch.save({**states, "epoch": self.view.epoch}, folder / f"{self.name}.pth")
            if self.kill and self.step == KILLED:
                kill_this_rank()
            batch = next(batches, None)
            if batch is None:
                return
            self.step += 1
            self.notes.add(numbers_in(batch))
            yield batch

    def train(
        self, resumed: str | None, sampler: Any, train_one_epoch: Callable[[Any], Any]
    ) -> None:
        start = 0
        if resumed is not None:
            checkpoint = torch.load(folder / f"{resumed}.pth")
            start = checkpoint["epoch"]
            for name, part in self.parts.items():
                part.load_state_dict(checkpoint[name])
        for epoch in range(start, EPOCHS):
            if hasattr(sampler, "set_epoch"):
                sampler.set_epoch(epoch)
            train_one_epoch(self)
        self.notes.add([p.tolist() for p in self.parts["model"].parameters()])


def classify(name: str, resumed: str | None = None, kill: bool = False) -> None:
    dist.init_process_group("gloo")
    loader, _, sampler = classification.loaders(
        root / "classification",
        batch_size=3,
        use_v2=True,
        mixup_alpha=0.2,
        cutmix_alpha=1.0,
        ranks=(dist.get_rank(), dist.get_world_size()),
        train={"auto_augment_policy": "ta_wide", "random_erase_prob": 0.1},
    )
    torch.manual_seed(0)
    net = classification.small_model(3)
    net(torch.zeros(1, 3, 64, 64))
    model = torch.nn.parallel.DistributedDataParallel(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    model_ema = torch.optim.swa_utils.AveragedModel(net)
    parts = {"model": model, "optimizer": optimizer, "model_ema": model_ema}

    def train_one_epoch(data_loader: Any) -> None:
        classification.train_one_epoch(model, optimizer, data_loader, model_ema)

    Run(name, loader, parts, kill).train(resumed, sampler, train_one_epoch)
    dist.destroy_process_group()


def detect(name: str, resumed: str | None = None, kill: bool = False) -> None:
    loader, _, sampler = detection.loaders(root / "detection", "multiscale", batch_size=3)
    torch.manual_seed(0)
    model = detection.SmallDetector()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)
    parts = {"model": model, "optimizer": optimizer}
    train_one_epoch = functools.partial(detection.train_one_epoch, model, optimizer)
    Run(name, loader, parts, kill).train(resumed, sampler, train_one_epoch)


def segment(name: str, resumed: str | None = None, kill: bool = False) -> None:
    loader, _, sampler = segmentation.loaders(root / "segmentation")
    torch.manual_seed(0)
    model = torch.nn.Conv2d(3, 21, 3, padding=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    parts = {"model": model, "optimizer": optimizer}
    train_one_epoch = functools.partial(segmentation.train_one_epoch, model, optimizer)
    Run(name, loader, parts, kill).train(resumed, sampler, train_one_epoch)


torch.set_num_threads(1)
for script, run, count in (
    ("classify", classify, 2),
    ("detect", detect, 0),
    ("segment", segment, 0),
):
    alive, dead = [0] * max(count, 1), [-9] * max(count, 1)
    assert ranks(functools.partial(run, f"{script}_whole"), count) == alive
    assert ranks(functools.partial(run, f"{script}_killed", kill=True), count) == dead
    assert ranks(functools.partial(run, f"{script}_resumed", f"{script}_killed"), count) == alive
