#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""``cache=`` with several ranks on one machine: one cache for all of them, one for each, or none.

    python bench/cache_of_ranks.py                     # 8 ranks, 20,000 images of 64 x 64, 4 epochs
    python bench/cache_of_ranks.py --side 224 --records 4000

Each rank is a process that decodes and crops its part of every epoch on one thread. The variants
alternate, --rounds times; figures are medians. CPU seconds cover all ranks; memory is the sum of
their proportional set sizes (Pss of smaps_rollup: a page of n processes counts as an nth in each)
after the last epoch, minus that of ranks without a cache. "read" counts images that were read from
files in all epochs.
"""

from __future__ import annotations

import argparse
import io
import multiprocessing
import os
import statistics
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from process_tree import pss_mib

WAYS: dict[str, dict[str, Any]] = {
    "no cache": {},
    "a cache per rank": {"cache": "1 GiB", "cache_scope": "process"},
    "one cache": {"cache": "1 GiB", "cache_scope": "node"},
}


class Round(NamedTuple):
    first_cpu: float  # seconds, in the first epoch
    later_cpu: float  # the mean of the others
    pss: float  # bytes
    read: int


def write_images(folder: Path, records: int, side: int) -> int:
    """JPEGs of noise; returns their bytes."""
    from PIL import Image

    random, total = np.random.default_rng(0), 0
    for number in range(records):
        pixels = random.integers(0, 256, (side, side, 3), np.uint8)
        out = io.BytesIO()
        Image.fromarray(pixels).save(out, "JPEG", quality=80)
        part = folder / f"{number % 10}"
        part.mkdir(exist_ok=True)
        (part / f"{number:06}.jpg").write_bytes(out.getvalue())
        total += out.tell()
    return total


def run_rank(rank: int, pipe: Connection, args: argparse.Namespace, given: dict[str, Any]) -> None:
    """Runs an epoch on request; answers with its CPU seconds, memory and counts."""
    os.environ["LOCAL_WORLD_SIZE"] = str(args.ranks)
    import headrace as hr
    from headrace import transforms as T

    loader = hr.Loader(
        args.folder, [T.RandomCrop(args.side * 7 // 8)], batch_size=64, shuffle=True, threads=1,
        shard=(rank, args.ranks), memory_limit="1.5 GiB", **given,
    )  # fmt: skip
    while pipe.recv():
        before = time.process_time()
        for _ in loader:
            pass
        seconds = time.process_time() - before
        pss = pss_mib(os.getpid()) * 2**20
        pipe.send((seconds, pss, loader.stats()["cache"]["misses"]))


def measured(args: argparse.Namespace, given: dict[str, Any]) -> Round:
    context = multiprocessing.get_context("spawn")
    pipes, ranks = [], []
    for rank in range(args.ranks):
        ours, its = context.Pipe()
        pipes.append(ours)
        ranks.append(context.Process(target=run_rank, args=(rank, its, args, given)))
        ranks[-1].start()
    seconds = []
    for _epoch in range(args.epochs):
        for pipe in pipes:
            pipe.send(True)
        answers = [pipe.recv() for pipe in pipes]
        seconds.append(sum(answer[0] for answer in answers))
    # Sums over all ranks at the same time, since none has ended.
    pss, read = (sum(answer[i] for answer in answers) for i in (1, 2))
    for pipe, process in zip(pipes, ranks, strict=True):
        pipe.send(False)
        process.join()
    if not given:
        read = args.records * args.epochs
    return Round(seconds[0], statistics.mean(seconds[1:]), pss, read)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--records", type=int, default=20_000)
    parser.add_argument("--side", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        args.folder = folder
        total = write_images(Path(folder), args.records, args.side)
        print(f"{args.records:,} images of {total / 1e6:.1f} MB, {args.ranks} ranks")
        rounds: dict[str, list[Round]] = {way: [] for way in WAYS}
        for _ in range(args.rounds):
            for way, given in WAYS.items():
                rounds[way].append(measured(args, given))
    print("| | CPU s, first epoch | CPU s, later epochs | memory, MB | images read |")
    print("|---|---|---|---|---|")
    base = statistics.median(each.pss for each in rounds["no cache"])
    for way, kept in rounds.items():
        first, later, pss, read = map(statistics.median, zip(*kept, strict=True))
        print(f"| {way} | {first:.2f} | {later:.2f} | {(pss - base) / 1e6:.0f} | {read:,.0f} |")


if __name__ == "__main__":
    main()
