#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Data in memory: hr.resident against torch on the CPU.

The peer is torch's DataLoader over a TensorDataset, without workers: the usual and faster choice
for samples that cost nothing, because workers pickle every batch. "batched" is the variant without
collation from its documentation: batch_size=None, and a BatchSampler whose lists index the dataset.
"slices" is a common hand-written replacement for a loader: images[order[i : i + batch]] with order
= torch.randperm(len(images)).

    python bench/resident.py            # MNIST- and CIFAR-sized, batches of 128 and 512, shuffled
    python bench/resident.py --index    # the cost of ordering ten million records

Peers alternate every --turn seconds, so other load affects both. Each batch is
touched (one element of each field). With --steps, pictures are padded, cropped, flipped and
normalized: by transforms here, by tensor functions for each sample there.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

SETS = {"mnist": (60_000, 1, 28), "cifar": (50_000, 3, 32)}


def made(name: str) -> tuple[Any, Any]:
    """Pictures and labels as torch tensors."""
    import torch

    records, channels, side = SETS[name]
    random = np.random.default_rng(0)
    images = random.integers(0, 256, (records, channels, side, side), np.uint8)
    return torch.from_numpy(images), torch.from_numpy(random.integers(0, 10, records))


def steps_of(channels: int, side: int) -> list[Any]:
    from headrace import transforms as T

    return [
        T.RandomCrop(side, padding=4),
        T.RandomHorizontalFlip(),
        T.ToDtype("float32", scale=True),
        T.Normalize([0.5] * channels, [0.25] * channels),
    ]


class Augmented:
    """The transforms on one sample at a time, with torch's tensor functions."""

    def __init__(self, images: Any, labels: Any) -> None:
        import torch

        self.images, self.labels = images, labels
        self.mean = torch.full((images.shape[1], 1, 1), 0.5)
        self.std = torch.full((images.shape[1], 1, 1), 0.25)

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        import torch

        image = torch.nn.functional.pad(self.images[index], (4, 4, 4, 4))
        side = image.shape[-1] - 8
        y, x = torch.randint(0, 9, (2,)).tolist()
        image = image[:, y : y + side, x : x + side]
        if torch.rand(1) < 0.5:
            image = image.flip(-1)
        image = (image.to(torch.float32) / 255 - self.mean) / self.std
        return image, self.labels[index]


def torch_batches(images: Any, labels: Any, batch: int, steps: bool) -> Iterator[Any]:
    from torch.utils.data import DataLoader, TensorDataset

    dataset: Any = Augmented(images, labels) if steps else TensorDataset(images, labels)
    loader: Any = DataLoader(dataset, batch, shuffle=True)
    while True:
        yield from loader


def batched_batches(images: Any, labels: Any, batch: int, steps: bool) -> Iterator[Any]:
    from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

    assert not steps
    dataset = TensorDataset(images, labels)
    order = BatchSampler(RandomSampler(dataset), batch, drop_last=False)
    loader: Any = DataLoader(dataset, sampler=order, batch_size=None)
    while True:
        yield from loader


def sliced_batches(images: Any, labels: Any, batch: int, steps: bool) -> Iterator[Any]:
    import torch

    assert not steps
    while True:
        order = torch.randperm(len(images))
        for begin in range(0, len(order), batch):
            chosen = order[begin : begin + batch]
            yield images[chosen], labels[chosen]


def headrace_batches(images: Any, labels: Any, batch: int, steps: bool) -> Iterator[Any]:
    import headrace as hr

    _, channels, side, _ = images.shape
    transforms = steps_of(channels, side) if steps else ()
    loader = hr.resident(
        {"image": images, "label": labels}, batch, shuffle=True, transforms=transforms
    ).torch()
    while True:
        yield from loader


PEERS: dict[str, Callable[..., Iterator[Any]]] = {
    "torch": torch_batches,
    "batched": batched_batches,
    "slices": sliced_batches,
    "headrace": headrace_batches,
}


def turn(batches: Iterator[Any], seconds: float) -> tuple[float, float]:
    """Batches per second, and CPU seconds of this process per second."""
    begin, cpu, count = time.perf_counter(), time.process_time(), 0
    while time.perf_counter() - begin < seconds:
        image, label = next(batches)
        _ = image[0, 0, 0, 0], label[0]
        count += 1
    spent = time.perf_counter() - begin
    return count / spent, (time.process_time() - cpu) / count


def compare(name: str, batch: int, steps: bool, rounds: int, seconds: float) -> None:
    data = made(name)
    chosen = [peer for peer in PEERS if not steps or peer in ("torch", "headrace")]
    peers = {peer: PEERS[peer](*data, batch, steps) for peer in chosen}
    rates: dict[str, list[float]] = {peer: [] for peer in peers}
    cpu: dict[str, list[float]] = {peer: [] for peer in peers}
    for batches in peers.values():
        next(batches)
    for _ in range(rounds):
        for peer, batches in peers.items():
            rate, spent = turn(batches, seconds)
            rates[peer].append(rate)
            cpu[peer].append(spent)
    ours = rates["headrace"]
    ratios = []
    for peer in chosen[:-1]:
        ratio = statistics.median(a / b for a, b in zip(ours, rates[peer], strict=True))
        ratios.append(f"{ratio:.1f} {peer}")
    what = "crop, flip, normalize" if steps else "as it is"
    line = [f"{name:6} {batch:4} {what:22}"]
    for peer in peers:
        rate, spent = statistics.median(rates[peer]), statistics.median(cpu[peer])
        line.append(f"{peer} {rate:9,.0f} batches/s {spent * 1e6:9,.1f} us CPU a batch")
    print("  ".join(line), f" times {', '.join(ratios)}", flush=True)


def resident_mebibytes(field: str) -> float:
    """VmRSS or VmHWM of this process (getrusage's peak would include the parent's)."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith(field))


def peak(peer: str, name: str, batch: int, steps: bool) -> None:
    """Peak memory of a process that runs one peer, in addition to the data."""
    data = made(name)
    before = resident_mebibytes("VmRSS")
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # resets the peak
    turn(PEERS[peer](*data, batch, steps), 1)
    more = resident_mebibytes("VmHWM") - before
    print(f"{name:6} {batch:4} {peer:9} {more:.1f} MiB beside torch and the data", flush=True)


def index_cost(records: int, batch: int) -> None:
    """Starting an epoch, and its whole order, compared with torch.randperm."""
    import torch

    import headrace as hr

    tiny = np.zeros((records, 1), np.uint8)
    loader = hr.resident({"x": tiny}, batch, shuffle=True)
    next(iter(loader))
    begins = []
    for epoch in range(1, 21):
        begin = time.perf_counter()
        loader.set_epoch(epoch)
        next(iter(loader))
        begins.append(time.perf_counter() - begin)
    begin = time.perf_counter()
    for _ in loader:
        pass
    whole = time.perf_counter() - begin
    begin = time.perf_counter()
    torch.randperm(records)
    table = time.perf_counter() - begin
    print(f"{records:,} records of one byte, batches of {batch}")
    print(f"  epoch begun, first batch there   {statistics.median(begins) * 1e3:.3f} ms")
    print(f"  torch.randperm                   {table * 1e3:.1f} ms, {records * 8 >> 20} MiB")
    print(f"  all batches of an epoch          {whole * 1e9 / records:.1f} ns a record")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--turn", type=float, default=1.0, metavar="SECONDS")
    parser.add_argument("--index", action="store_true")
    parser.add_argument("--peak", nargs=4, metavar=("PEER", "SET", "BATCH", "STEPS"))
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--batches", nargs="+", type=int, default=[128, 512], metavar="RECORDS")
    args = parser.parse_args()
    if args.peak:
        peer, name, batch, steps = args.peak
        return peak(peer, name, int(batch), steps == "1")
    if args.index:
        return index_cost(10_000_000, 512)
    for steps in (False, True):
        for name in args.sets:
            for batch in args.batches:
                compare(name, batch, steps, args.rounds, args.turn)
    for name in args.sets:
        for peer in ("torch", "headrace"):
            command = [sys.executable, __file__, "--peak", peer, name, "512", "1"]
            subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
