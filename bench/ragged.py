# SPDX-License-Identifier: Apache-2.0
"""Batches of records that differ in shape.

    python bench/ragged.py           # time of next() if batches are ready
    python bench/ragged.py collate   # small packed tensors, compared with a torch DataLoader

Without arguments: images and boxes, 32 records per batch, as lists, padded and packed; the
consumer's steps take longer than making a batch. Medians, in microseconds.

With collate: documents of 60 tokens on average, 64 per batch, shuffled, from a file in the page
cache; the DataLoader has slices of a np.memmap, two workers and a collate function that
concatenates. Rounds alternate; medians of documents per second, of CPU time over all processes, and
of their memory (PSS).
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

import headrace as hr

RECORDS, BATCH, STEP_SECONDS = 640, 32, 0.1


def records() -> list[dict[str, Any]]:
    random = np.random.default_rng(1)
    sizes = random.integers(160, 320, (RECORDS, 2))
    return [
        {
            "image": random.integers(0, 256, (3, *size), np.uint8),
            "boxes": random.uniform(0, 99, (int(random.integers(1, 400)), 4)).astype(np.float32),
        }
        for size in sizes
    ]


def microseconds(loader: hr.Loader) -> float:
    found = []
    batches = iter(loader)
    for _ in range(len(loader)):
        begin = time.perf_counter()
        batch = next(batches)
        found.append(time.perf_counter() - begin)
        time.sleep(STEP_SECONDS)
        del batch
    return statistics.median(found[2:]) * 1e6


def compare_with_collate(documents: int = 400_000, batch: int = 64, rounds: int = 3) -> None:
    import torch
    from process_tree import pss_mib
    from tokens import cpu_seconds, megatron_index
    from torch.utils.data import DataLoader

    torch.set_num_threads(1)
    lengths = np.random.default_rng(1).geometric(1 / 60, documents)
    ends = np.cumsum(lengths)

    class Documents(torch.utils.data.Dataset[Any]):
        def __init__(self, path: Path) -> None:
            self.tokens = np.memmap(path, np.uint16, "r")

        def __len__(self) -> int:
            return documents

        def __getitem__(self, index: int) -> torch.Tensor:
            end = int(ends[index])
            tokens = self.tokens[end - int(lengths[index]) : end]
            return torch.from_numpy(tokens.astype(np.int64))

    def collate(records: list[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        sizes = torch.tensor([0, *map(len, records)])
        return torch.cat(records), sizes.cumsum(0)

    def measured(batches: Callable[[], Iterable[Any]]) -> tuple[float, float, float]:
        cpu, begin, tokens, memory = cpu_seconds(), time.perf_counter(), 0, 0.0
        for number, made in enumerate(batches()):
            tokens += len(made[0])
            if number == documents // batch // 2:
                memory = pss_mib(os.getpid())
        rate = documents / (time.perf_counter() - begin)
        assert tokens == lengths.sum()
        return rate, (cpu_seconds() - cpu) / documents * 1e6, memory

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "train.bin")
        np.random.default_rng(0).integers(0, 50257, int(ends[-1]), np.uint16).tofile(path)
        path.with_suffix(".idx").write_bytes(megatron_index(lengths.tolist(), "uint16"))
        source = hr.tokens(path, window=None)
        ours = hr.Loader(source, batch_size=batch, shuffle=True, ragged="packed", threads=2)
        theirs = DataLoader(
            Documents(path), batch_size=batch, shuffle=True, num_workers=2, collate_fn=collate
        )
        ways = {"headrace": ours.torch, "DataLoader": lambda: theirs}
        found: dict[str, list[tuple[float, float, float]]] = {way: [] for way in ways}
        for _ in range(rounds):
            for way, batches in ways.items():
                found[way].append(measured(batches))
    for way, runs in found.items():
        rate, cpu, memory = map(statistics.median, zip(*runs, strict=True))
        print(f"{way:11} {rate:10,.0f} documents/s {cpu:6.2f} us CPU {memory:6.0f} MiB")


def main() -> None:
    if sys.argv[1:] == ["collate"]:
        compare_with_collate()
        return
    shapes = {"boxes": (-1, 4), "image": (3, -1, -1)}
    source = hr.open(records(), kinds={"boxes": "boxes:xyxy"}, shapes=shapes)
    for case in ("list image", "pad image", "pad boxes", "packed boxes"):
        ragged, field = case.split()
        loader = hr.Loader(source, batch_size=BATCH, fields=(field,), ragged=ragged, threads=2)
        with loader:
            print(f"{case:12} {microseconds(loader):8.0f} us")


if __name__ == "__main__":
    main()
