# SPDX-License-Identifier: Apache-2.0
"""What gpu_loaders.py and gpu_tensors.py share: sources, rows of figures, timing."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import torch

import headrace as hr
from headrace import _core

SIZE = 224


@dataclass
class Row:
    what: str
    measured: float
    unit: str
    predicted: float | None = None
    more: str = ""


@dataclass
class Bench:
    photos: Path
    work: Path
    device: str
    seconds: float
    rows: list[Row] = field(default_factory=list)
    wrong: int = 0

    def row(
        self, what: str, measured: float, unit: str, predicted: float | None = None, more: str = ""
    ) -> None:
        self.rows.append(Row(what, measured, unit, predicted, more))
        beside = f"{predicted:12.3f}" if predicted is not None else f"{'-':>12}"
        print(f"{what:54} {measured:12.3f} {beside}  {unit}  {more}", flush=True)

    def synchronize(self) -> None:
        if self.device.startswith("cuda"):
            torch.cuda.synchronize()

    def source(self, form: str, at_least: int = 0) -> Any:
        where = self.photos if form == "files" else self.work / f"{form}.hrpack"
        if not where.exists():
            hr.pack(self.photos, where, **({"level": "dense"} if form == "dense" else {}))
        source = hr.open(where)
        times = -(-at_least // len(source))
        return hr.concat(*[source] * times) if times > 1 else source

    def batches(self, loader: Any) -> Iterable[Any]:
        """PyTorch's view on a GPU; with --device cpu the host acts as the device that decodes and
        finishes."""
        if self.device == "cpu":
            return cast("Iterable[Any]", loader.dlpack(_core.open_device("cpu")))
        return cast("Iterable[Any]", loader.torch(self.device))


def cpu_seconds() -> float:
    told = os.times()
    return told.user + told.system


def per_batch(
    bench: Bench, make: Callable[[], Iterable[Any]], step: Callable[[Any], object]
) -> float:
    """Milliseconds, the median of three runs."""
    times = []
    for _ in range(3):
        begin, seen = 0.0, 0
        for number, batch in enumerate(make()):
            if number == 4:
                bench.synchronize()
                begin = time.perf_counter()
            step(batch)
            seen = number
        bench.synchronize()
        times.append((time.perf_counter() - begin) / (seen - 3) * 1e3)
    return sorted(times)[1]
