# SPDX-License-Identifier: Apache-2.0
"""Transfers of batches in memory to a GPU: hr.prefetch and hr.resident.

Parts of bench/gpu_loaders.py.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from gpu_bench import SIZE, Bench, per_batch
from prefetch import side_stream

import headrace as hr
from headrace import transforms as T


def time_prefetch(bench: Bench) -> None:
    """Batches of 256 x 3 x 224 x 224 with steps of 5 ms; predictions: docs/guide/prefetch.md."""
    weights = torch.randn(4096, 4096, device=bench.device, dtype=torch.bfloat16)

    def step(batch: Any) -> object:
        value = weights * batch.flatten()[0].to(weights.dtype)
        for _ in range(24):
            value = weights @ value * 1e-3
        return value

    for dtype, pinned in itertools.product((torch.uint8, torch.float32), (True, False)):
        base = [
            torch.randint(0, 256, (256, 3, SIZE, SIZE), dtype=torch.uint8).to(dtype)
            for _ in range(6)
        ]
        if pinned:
            base = [batch.pin_memory() for batch in base]
        there = base[0].to(bench.device)
        name = f"{str(dtype).split('.')[1]}, {'pinned' if pinned else 'pageable'}"
        bound = 9.0 if dtype == torch.float32 and not pinned else 5.6
        ways: list[tuple[str, float | None, Callable[[], Iterable[Any]]]] = [
            ("already there", None, lambda there=there: (there for _ in range(32))),
            (".cuda()", None, lambda base=base: (
                base[i % 6].cuda(non_blocking=True) for i in range(32))),
            ("pin_memory, side stream", None, lambda base=base: side_stream(
                torch, (base[i % 6] for i in range(32)))),
            ("hr.prefetch", bound, lambda base=base: hr.prefetch(
                (base[i % 6] for i in range(32)), bench.device)),
        ]  # fmt: skip
        for way, predicted, make in ways:
            bench.row(f"{name}: {way}", per_batch(bench, make, step), "ms", predicted)


def time_resident(bench: Bench) -> None:
    images = torch.randint(0, 256, (60_000, 1, 28, 28), dtype=torch.uint8)
    labels = torch.randint(0, 10, (60_000,))
    images_there, labels_there = images.to(bench.device), labels.to(bench.device)

    def by_hand() -> Iterator[Any]:
        order = torch.randperm(60_000, device=bench.device)
        for i in range(0, 60_000 - 63, 64):
            yield images_there[order[i : i + 64]], labels_there[order[i : i + 64]]

    edits = [
        T.RandomCrop(28, padding=4), T.RandomHorizontalFlip(),
        T.ToDtype("float32", scale=True), T.Normalize([0.13], [0.31]),
    ]  # fmt: skip
    fields = {"image": images_there, "label": labels_there}
    sets: list[tuple[str, float | None, Callable[[], Iterable[Any]]]] = [
        ("randperm and an index by hand", None, by_hand),
        ("hr.resident, shuffled", 15.0, lambda: plain),
        ("hr.resident, crop, flip, normalize", 25.0, lambda: edited),
        ("the same, batches of 512", None, lambda: edited_512),
    ]
    plain = hr.resident(fields, 64, shuffle=True).torch(bench.device)
    edited, edited_512 = (
        hr.resident({"image": images, "label": labels}, size, shuffle=True, transforms=edits)
        .torch(bench.device) for size in (64, 512)
    )  # fmt: skip
    for what, predicted, make in sets:
        batches, begin = 0, time.perf_counter()
        while not batches or time.perf_counter() - begin < bench.seconds:
            if batches == 0:
                for _ in make():
                    pass
                bench.synchronize()
                begin = time.perf_counter()
            for _ in make():
                batches += 1
            bench.synchronize()
        bench.row(
            f"batches of 64: {what}", (time.perf_counter() - begin) / batches * 1e6, "us",
            predicted,
        )  # fmt: skip
