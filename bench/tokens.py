#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Token windows and packed rows, compared with a torch DataLoader that makes the same batches.

    python bench/tokens.py [--tokens 100000000] [--rounds 5] [--threads 2]

The DataLoader's datasets are typical of training scripts: slices of np.memmap with the default
collate function, and documents of an index with a collate function that packs them. Rounds
alternate; prints the medians of batches per second and of CPU time per row, over all processes. The
file is in the page cache.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

import headrace as hr

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from token_files import megatron_index

IGNORED = -100


class Windows(Dataset[Any]):
    """Like nanoGPT's get_batch, one window at a time."""

    def __init__(self, path: Path, window: int) -> None:
        self.tokens, self.window = np.memmap(path, np.uint16, "r"), window

    def __len__(self) -> int:
        return (len(self.tokens) - 1) // self.window

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        at, window = index * self.window, self.window
        x = torch.from_numpy(self.tokens[at : at + window].astype(np.int64))
        y = torch.from_numpy(self.tokens[at + 1 : at + 1 + window].astype(np.int64))
        return x, y


class Rows(Dataset[Any]):
    """The documents of a row; `pack_rows` makes tensors from a batch of these."""

    def __init__(self, path: Path, ends: np.ndarray[Any, Any], rows: list[list[int]]) -> None:
        self.tokens, self.ends, self.rows = np.memmap(path, np.uint16, "r"), ends, rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> list[np.ndarray[Any, Any]]:
        begins = [int(self.ends[d - 1]) if d else 0 for d in self.rows[index]]
        return [
            self.tokens[begin : int(self.ends[d])].astype(np.int64)
            for begin, d in zip(begins, self.rows[index], strict=True)
        ]


def pack_rows(length: int) -> Callable[[list[Any]], dict[str, torch.Tensor]]:
    def collate(rows: list[list[np.ndarray[Any, Any]]]) -> dict[str, torch.Tensor]:
        tokens = np.zeros((len(rows), length), np.int64)
        targets = np.full((len(rows), length), IGNORED, np.int64)
        positions = np.zeros((len(rows), length), np.int64)
        segments = np.zeros((len(rows), length), np.int32)
        for row, documents in enumerate(rows):
            at = 0
            for number, document in enumerate(documents):
                end = at + len(document)
                tokens[row, at:end] = document
                targets[row, at : end - 1] = document[1:]
                positions[row, at:end] = np.arange(len(document))
                segments[row, at:end] = number + 1
                at = end
            positions[row, at:] = np.arange(length - at)
        arrays = (tokens, targets, positions, segments)
        names = ("tokens", "targets", "position_ids", "segment_ids")
        return {n: torch.from_numpy(a) for n, a in zip(names, arrays, strict=True)}

    return collate


def cpu_seconds() -> float:
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def measured(batches: Callable[[], Iterable[Any]], rows: int) -> tuple[float, float]:
    """Rows per second of one epoch, and CPU seconds per row."""
    cpu, began, seen = cpu_seconds(), time.perf_counter(), 0
    for batch in batches():
        first = batch["tokens"] if isinstance(batch, dict) else batch[0]
        seen += len(first)
    seconds = time.perf_counter() - began
    assert seen == rows, (seen, rows)
    return seen / seconds, (cpu_seconds() - cpu) / seen


def compare(name: str, ours: Any, theirs: Any, rows: int, rounds: int) -> None:
    found: dict[str, list[tuple[float, float]]] = {"headrace": [], "DataLoader": []}
    for _ in range(rounds):
        found["headrace"].append(measured(ours, rows))
        found["DataLoader"].append(measured(theirs, rows))
    rates = {who: statistics.median(rate for rate, _ in runs) for who, runs in found.items()}
    costs = {who: statistics.median(cost for _, cost in runs) for who, runs in found.items()}
    for who in found:
        print(f"{name:24} {who:11} {rates[who]:10,.0f} rows/s {costs[who] * 1e6:8.1f} us CPU/row")
    print(
        f"{name:24} ratio       {rates['headrace'] / rates['DataLoader']:10.1f} by time "
        f"{costs['DataLoader'] / costs['headrace']:8.1f} by CPU"
    )


def bench_windows(path: Path, window: int, options: argparse.Namespace) -> None:
    dataset = Windows(path, window)
    loader = hr.Loader(
        hr.tokens(path, window=window), batch_size=64, shuffle=True, threads=options.threads
    )
    other = DataLoader(dataset, batch_size=64, shuffle=True, num_workers=options.threads)
    compare(f"windows of {window}", loader.torch, lambda: other, len(dataset), options.rounds)


def rows_of(source: hr.Source, lengths: np.ndarray[Any, Any], length: int) -> list[list[int]]:
    """Packs documents into this many rows, in order, for the DataLoader."""
    rows: list[list[int]] = [[]]
    room = length
    for document, count in enumerate(lengths.tolist()):
        if count > room:
            rows.append([])
            room = length
        rows[-1].append(document)
        room -= count
    assert len(rows) == len(source)
    return rows


def bench_packed(path: Path, length: int, mean: float, options: argparse.Namespace) -> None:
    random = np.random.default_rng(1)
    drawn = np.minimum(random.geometric(1 / mean, int(options.tokens / mean * 1.1)), length)
    ends = np.cumsum(drawn)
    ends = ends[ends <= options.tokens]
    ends[-1] = options.tokens
    lengths = np.minimum(np.diff(ends, prepend=0), length)
    ends = np.cumsum(lengths)
    os.truncate(path, int(ends[-1]) * 2)
    index = path.with_suffix(".idx")
    index.write_bytes(megatron_index(lengths.tolist(), "uint16"))
    documents = hr.tokens(path, window=None)
    for method in ("best-fit", "first-fit", "sequential", "split"):
        began = time.perf_counter()
        text = repr(hr.packed(documents, length=length, method=method))
        share = text.partition(", ")[2].partition(" %")[0]
        print(
            f"pack {len(lengths):,} documents {method:11} "
            f"{time.perf_counter() - began:6.2f} s, {share} % tokens"
        )
    source = hr.packed(documents, length=length, method="sequential")
    dataset = Rows(path, ends, rows_of(source, lengths, length))
    fields = ("tokens", "targets", "position_ids", "segment_ids")
    loader = hr.Loader(source, batch_size=16, shuffle=True, threads=options.threads, fields=fields)
    other = DataLoader(
        dataset,
        batch_size=16,
        shuffle=True,
        num_workers=options.threads,
        collate_fn=pack_rows(length),
    )

    def ours() -> Iterator[Any]:
        yield from loader.torch(batch="dict")

    name = f"rows of {length}, mean {mean:.0f}"
    compare(name, ours, lambda: other, len(dataset), options.rounds)
    index.unlink()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tokens", type=int, default=100_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "train.bin")
        tokens = np.random.default_rng(0).integers(0, 50257, options.tokens, dtype=np.uint16)
        tokens.tofile(path)
        for window in (256, 1024, 4096):
            bench_windows(path, window, options)
        bench_packed(path, 1024, 60, options)
        bench_packed(path, 4096, 600, options)


if __name__ == "__main__":
    main()
