#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How well shuffle="blocks" and "streams" mix a dataset sorted by class, against a full shuffle.

    python bench/shuffle_quality.py

Only the order matters, so the records are numbers: 1,000 classes of 1,300 records, one class after
the other, in blocks of 8 MiB as in a container of 110 kB records.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from headrace import _core


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--per-class", type=int, default=1300)
    parser.add_argument("--block", type=int, default=76, help="records per block")
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--windows", default="8,32,128,512", help="blocks per window (a,b)")
    parser.add_argument("--streams", default="64x1,64x8,128x8", help="streams x window (a,b)")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def orders(sampler: Any, epochs: int) -> list[np.ndarray[Any, Any]]:
    size = len(sampler)
    return [
        np.fromiter((sampler.index(0, epoch, at) for at in range(size)), np.int64, size)
        for epoch in range(epochs)
    ]


def quality(
    order: np.ndarray[Any, Any], before: np.ndarray[Any, Any], labels: Any, batch: int
) -> Iterator[tuple[str, float]]:
    """The contents of batches, how far records move, and which neighbors stay together."""
    size = len(order)
    whole = order[: size // batch * batch].reshape(-1, batch)
    distinct = [len(np.unique(labels[row])) for row in whole]
    yield "classes in a batch, mean", float(np.mean(distinct))
    yield "classes in a batch, least", float(np.min(distinct))
    # Total variation between a batch's classes and the dataset's, 0 (the same) to 1 (disjoint).
    share = 1 / (labels[-1] + 1)
    away = [
        0.5 * np.abs(np.bincount(labels[row], minlength=labels[-1] + 1) / batch - share).sum()
        for row in whole
    ]
    yield "distance of a batch from the dataset", float(np.mean(away))
    # Records that share a batch in consecutive epochs, as a multiple of chance.
    place = np.empty(size, np.int64)
    place[before] = np.arange(size) // batch
    pairs = 0
    for row in whole:
        counts = np.unique(place[row], return_counts=True)[1]
        pairs += int((counts * (counts - 1)).sum())
    by_chance = len(whole) * batch * (batch - 1) * (batch - 1) / (size - 1)
    yield "pairs that meet again, of chance", pairs / by_chance
    # Distance between a record's positions in the dataset and in the epoch, as a fraction of the
    # dataset.
    yield "mean distance of a record", float(np.abs(order - np.arange(size)).mean() / size)
    # Autocorrelation of the batches' mean labels.
    means = np.array([labels[row].mean() for row in whole])
    yield "autocorrelation of batches", float(np.corrcoef(means[:-1], means[1:])[0, 1])


def main() -> int:
    args = parse_arguments()
    records = args.classes * args.per_class
    labels = np.repeat(np.arange(args.classes), args.per_class)
    ends = [*range(args.block, records, args.block), records]
    samplers = {"in the file's order": _core.sequential(records)}
    for window in map(int, args.windows.split(",")):
        samplers[f"blocks, window {window}"] = _core.shuffled_blocks(ends, window)
    for shape in args.streams.split(","):
        count, window = map(int, shape.split("x"))
        samplers[f"streams, {count} with a window of {window}"] = _core.shuffled_streams(
            ends, count, window, True, args.batch_size
        )
    samplers["full shuffle"] = _core.shuffled(records)
    table = {}
    for name, sampler in samplers.items():
        before, *others = orders(sampler, args.epochs + 1)
        found: dict[str, list[float]] = {}
        for order in others:
            for what, value in quality(order, before, labels, args.batch_size):
                found.setdefault(what, []).append(value)
            before = order
        table[name] = {what: float(np.mean(values)) for what, values in found.items()}
    if args.json:
        print(json.dumps(table, indent=1))
        return 0
    head = ["order", *next(iter(table.values()))]
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for name, values in table.items():
        print("| " + " | ".join([name, *(f"{value:.3g}" for value in values.values())]) + " |")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
