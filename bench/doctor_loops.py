# SPDX-License-Identifier: Apache-2.0
"""Twelve training loops on this machine, each with one known cause that limits its speed.

Everything is real except what a machine may lack: a slow disk, and files that are slow to open, are
simulated by waiting under a lock shared by all processes; a GPU by the doctor's stand-in.
"""

from __future__ import annotations

import fcntl
import io
import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from headrace.insight.stand_in import StandIn
from PIL import Image, ImageFilter

import headrace as hr
from headrace import transforms as T

SIDE = 64
SETS = {  # folder: pictures, height, width, quality, progressive
    "photos": (192, 375, 500, 92, False),
    "big": (32, 1500, 2000, 90, False),
    "progressive": (12, 1800, 2400, 85, True),
    "tiny": (3000, 24, 24, 50, False),
}


class Loop(NamedTuple):
    """A loader and its step; ``stack`` closes their resources."""

    loader: Any
    step: Callable[[Any], Any]


class Case(NamedTuple):
    """``make`` builds the loop; ``word`` is the expected verdict."""

    word: str
    what: str
    make: Callable[[Path, ExitStack], Loop]
    ranks: int = 1


def make_pictures(folder: Path) -> None:
    """Makes sharp random pictures once; an existing folder is used unchanged."""
    draw = np.random.default_rng(0)
    for name, (count, height, width, quality, progressive) in SETS.items():
        place = folder / name
        if place.is_dir() and len(list(place.glob("*/*.jpg"))) == count:
            continue
        for number in range(count):
            path = place / f"class{number % 4}" / f"{number:05}.jpg"
            path.parent.mkdir(parents=True, exist_ok=True)
            coarse = draw.integers(0, 256, (height // 3 + 1, width // 3 + 1, 3), dtype=np.uint8)
            picture = Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)
            picture.save(path, quality=quality, progressive=progressive)


class Disk:
    """One simulated disk for all processes: a delay per file, and one per byte."""

    def __init__(self, folder: Path, open_seconds: float, bytes_per_second: float) -> None:
        self._lock = folder / f"head-{os.getpid()}-{id(self)}.lock"
        self._open_seconds, self._rate = open_seconds, bytes_per_second
        self._lock.touch()

    def read(self, path: str) -> bytes:
        with open(self._lock) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            data = Path(path).read_bytes()
            time.sleep(self._open_seconds + len(data) / self._rate)
        return data


class Pictures:
    """A dataset as people typically write it: a path, Pillow, a transform, a number."""

    def __init__(self, folder: Path, transform: Any, disk: Disk | None = None) -> None:
        self.paths = sorted(str(path) for path in folder.glob("*/*.jpg"))
        self.transform, self.disk = transform, disk

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, number: int) -> Any:
        path = self.paths[number]
        data = io.BytesIO(self.disk.read(path)) if self.disk else path
        with Image.open(data) as picture:
            picture = picture.convert("RGB")
        return self.transform(picture), number % 4


class Compose:
    """The same as torchvision's, without torchvision."""

    def __init__(self, transforms: list[Any]) -> None:
        self.transforms = transforms

    def __call__(self, value: Any) -> Any:
        for transform in self.transforms:
            value = transform(value)
        return value


class Resize:
    def __init__(self, side: int = SIDE) -> None:
        self.side = side

    def __call__(self, picture: Any) -> Any:
        return picture.resize((self.side, self.side))


class MedianBlur:
    def __call__(self, picture: Any) -> Any:
        return picture.filter(ImageFilter.MedianFilter(9))


class ToTensor:
    def __call__(self, picture: Any) -> Any:
        import torch

        return torch.from_numpy(np.array(picture)).permute(2, 0, 1).float() / 255


def speckle(image: Any) -> Any:
    """A Python loop over some pixels, which holds the GIL."""
    value = 1
    for _ in range(40_000):
        value = (1103515245 * value + 12345) % 2**31
    image[:, value % SIDE, value % SIDE] = 0
    return image


def collate_by_hand(items: list[Any]) -> Any:
    """Pads, mixes and stacks record by record, like hand-written functions."""
    import torch

    rows = []
    for picture, _ in items:
        padded = np.zeros((3, 6 * SIDE, 6 * SIDE), np.float32)
        padded[:, :SIDE, :SIDE] = picture.numpy()
        for _ in range(10):
            padded = np.sqrt(padded * padded + 1e-3)
        rows.append(padded)
    return torch.from_numpy(np.stack(rows)), torch.tensor([label for _, label in items])


def dataloader(dataset: Any, **options: Any) -> Any:
    import torch

    torch.set_num_threads(1)
    given = {"batch_size": 8, "shuffle": True, "num_workers": 2, "persistent_workers": True}
    given.update(options)
    if not given["num_workers"]:
        del given["persistent_workers"]
    return torch.utils.data.DataLoader(dataset, **given)


def plain() -> Compose:
    return Compose([Resize(), ToTensor()])


def ours(stack: ExitStack, folder: Path, *steps: Any, **options: Any) -> Any:
    given = {"batch_size": 8, "shuffle": True, **options}
    return stack.enter_context(hr.Loader(folder, [T.Resize((SIDE, SIDE)), *steps], **given))


# The loops. Steps simulate a GPU, which leaves the cores to the loader.


class FromDisk:
    """Pictures from a slow disk for our own loader: bytes, which it decodes."""

    def __init__(self, folder: Path, disk: Disk) -> None:
        self.paths, self.disk = sorted(map(str, folder.glob("*/*.jpg"))), disk

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, number: int) -> dict[str, Any]:
        return {"image": self.disk.read(self.paths[number]), "label": number % 4}


def slow_disk(folder: Path, stack: ExitStack) -> Loop:
    source = FromDisk(folder / "photos", Disk(folder, 0.002, 12e6))
    return Loop(ours(stack, source), StandIn(0.004))


def slow_decode(folder: Path, stack: ExitStack) -> Loop:
    return Loop(ours(stack, folder / "big"), StandIn(0.004))


def slow_operator(folder: Path, stack: ExitStack) -> Loop:
    dataset = Pictures(folder / "photos", Compose([Resize(2 * SIDE), MedianBlur(), plain()]))
    return Loop(dataloader(dataset), StandIn(0.004))


def python_step(folder: Path, stack: ExitStack) -> Loop:
    return Loop(ours(stack, folder / "photos", speckle), StandIn(0.004))


def too_few_workers(folder: Path, stack: ExitStack) -> Loop:
    dataset = Pictures(folder / "photos", plain())
    return Loop(dataloader(dataset, num_workers=0), StandIn(0.025))


def pageable_copy(folder: Path, stack: ExitStack) -> Loop:
    loader = ours(stack, folder / "photos", T.ToDtype("float32", scale=True), batch_size=16)
    return Loop(loader, StandIn(0.010, copy_bytes_per_second=2e7))


def slow_consumer(folder: Path, stack: ExitStack) -> Loop:
    return Loop(ours(stack, folder / "photos"), StandIn(0.060))


def slow_rank(folder: Path, stack: ExitStack) -> Loop:
    """Two processes that synchronize after each step; the second one reads from a slower disk."""
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    stack.callback(dist.destroy_process_group)
    rank = dist.get_rank()
    disk = Disk(folder, 0.0, (400e6, 6e6)[rank])
    loader = dataloader(Pictures(folder / "photos", plain(), disk), num_workers=1)
    device, meet = StandIn(0.040), torch.zeros(1)

    def step(batch: Any) -> None:
        device(batch)
        dist.all_reduce(meet)

    return Loop(loader, step)


def slow_collate(folder: Path, stack: ExitStack) -> Loop:
    dataset = Pictures(folder / "photos", plain())
    return Loop(dataloader(dataset, collate_fn=collate_by_hand), StandIn(0.004))


def tiny_files(folder: Path, stack: ExitStack) -> Loop:
    dataset = Pictures(folder / "tiny", plain(), Disk(folder, 0.004, 400e6))
    return Loop(dataloader(dataset, batch_size=32), StandIn(0.004))


def little_memory(folder: Path, stack: ExitStack) -> Loop:
    loader = ours(stack, folder / "progressive", batch_size=2, threads=2, memory_limit="52 MiB")
    return Loop(loader, StandIn(0.002))


def nothing(folder: Path, stack: ExitStack) -> Loop:
    numbers = [number % SETS["photos"][0] for number in range(8000)]  # a longer epoch
    source = hr.subset(folder / "photos", numbers)
    return Loop(ours(stack, source, batch_size=16, threads=1), StandIn(0.011))


CASES = {
    "slow-disk": Case("storage", "Loader; a disk of 12 MB/s", slow_disk),
    "slow-decode": Case("decode", "Loader; pictures of 3 megapixels", slow_decode),
    "slow-operator": Case("operator", "DataLoader; a median filter", slow_operator),
    "python-step": Case("python", "Loader; a loop in Python on each picture", python_step),
    "too-few-workers": Case("workers", "DataLoader; num_workers=0", too_few_workers),
    "pageable-copy": Case("copy", "Loader; 20 MB/s to the device", pageable_copy),
    "slow-consumer": Case("consumer", "Loader; a step of 60 ms", slow_consumer),
    "slow-rank": Case("rank", "DataLoader; one of two ranks has a slow disk", slow_rank, ranks=2),
    "slow-collate": Case("collate", "DataLoader; a collate_fn that pads", slow_collate),
    "tiny-files": Case("small-files", "DataLoader; 3,000 files, 4 ms to open", tiny_files),
    "little-memory": Case("memory", "Loader; memory_limit of 52 MiB", little_memory),
    "nothing": Case("fed", "Loader; a step of 11 ms", nothing),
}
