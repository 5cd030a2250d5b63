#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Overlapping copies with steps: a training loop on a GPU, with its batches copied in four ways.

    python bench/prefetch.py --out build/bench/prefetch        # needs a GPU and torch

The step is a chain of matrix products calibrated to take as long as the copy of a batch. A loop
with hidden copies takes as long as one whose batch is already on the device. Writes the times as
JSON, and a trace of some steps of each way for chrome://tracing.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import headrace


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("build/bench/prefetch"))
    parser.add_argument("--batches", type=int, default=200)
    parser.add_argument("--shape", default="256x3x224x224", help="shape of a float32 batch")
    parser.add_argument("--rounds", type=int, default=5)
    return parser.parse_args()


class Step:
    """Work on the device that reads the batch; ``repeat`` sets how long it takes."""

    def __init__(self, torch: Any) -> None:
        self.weights = torch.randn(4096, 4096, device="cuda")
        self.repeat = 1

    def __call__(self, batch: Any) -> None:
        x = self.weights * batch.flatten()[0]
        for _ in range(self.repeat):
            x = self.weights @ x


def seconds(torch: Any, work: Callable[[], None]) -> float:
    torch.cuda.synchronize()
    begin = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - begin


def calibrate(torch: Any, step: Step, batch: Any) -> None:
    """Number of products that take as long as a copy of the batch."""
    pinned = batch.pin_memory()
    on_device = pinned.cuda()
    step(on_device)
    copy = min(seconds(torch, lambda: pinned.cuda(non_blocking=True)) for _ in range(10))
    once = min(seconds(torch, lambda: step(on_device)) for _ in range(10))
    step.repeat = max(1, round(copy / once))
    print(f"a copy takes {copy * 1e3:.2f} ms; a step is {step.repeat} products", file=sys.stderr)


def side_stream(torch: Any, source: Iterable[Any]) -> Iterator[Any]:
    """The usual recipe, with record_stream for correctness."""
    side, main = torch.cuda.Stream(), torch.cuda.current_stream()
    ahead = None
    for batch in source:
        with torch.cuda.stream(side):
            moved = batch.pin_memory().cuda(non_blocking=True)
        if ahead is not None:
            yield ahead
        main.wait_stream(side)
        moved.record_stream(main)
        ahead = moved
    yield ahead


def measure(args: argparse.Namespace, torch: Any) -> dict[str, Any]:
    shape = tuple(int(n) for n in args.shape.split("x"))
    source = [torch.randn(shape) for _ in range(8)] * (args.batches // 8)
    step, resident = Step(torch), source[0].cuda()
    calibrate(torch, step, source[0])
    ways: dict[str, Callable[[], Iterable[Any]]] = {
        "already there": lambda: (resident for _ in source),
        "headrace.prefetch": lambda: headrace.prefetch(source, "cuda"),
        "side stream": lambda: side_stream(torch, source),
        ".cuda()": lambda: (batch.cuda() for batch in source),
    }

    def loop(way: Callable[[], Iterable[Any]]) -> None:
        for batch in way():
            step(batch)

    times: dict[str, list[float]] = {name: [] for name in ways}
    for way in ways.values():
        loop(way)
    for _ in range(args.rounds):
        for name, way in ways.items():
            times[name].append(seconds(torch, lambda way=way: loop(way)) / len(source))
    for name, way in ways.items():
        with torch.profiler.profile() as profile:
            for number, batch in enumerate(way()):
                step(batch)
                if number == 8:
                    break
            torch.cuda.synchronize()
        profile.export_chrome_trace(str(args.out / f"{name.strip('.()').replace(' ', '-')}.json"))
    return {
        "gpu": torch.cuda.get_device_name(),
        "batch_bytes": source[0].nbytes,
        "seconds_per_batch": {name: statistics.median(taken) for name, taken in times.items()},
        "rounds": times,
    }


def main() -> int:
    args = parse_arguments()
    try:
        import torch
    except ImportError:
        print("prefetch.py needs torch", file=sys.stderr)
        return 4
    if not torch.cuda.is_available():
        print("prefetch.py needs a GPU, and torch built for it", file=sys.stderr)
        return 4
    args.out.mkdir(parents=True, exist_ok=True)
    report = measure(args, torch)
    (args.out / "prefetch.json").write_text(json.dumps(report, indent=1))
    base = report["seconds_per_batch"]["already there"]
    for name, taken in report["seconds_per_batch"].items():
        print(f"{name:20} {taken * 1e3:8.2f} ms per batch, {taken / base:.2f} of it without copies")
    return 0


if __name__ == "__main__":
    sys.exit(main())
