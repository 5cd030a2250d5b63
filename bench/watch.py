# SPDX-License-Identifier: Apache-2.0
"""Cost of hr.watch: `python bench/watch.py [--pairs 20] [--seconds 1.0]`.

Each loop runs alternately with and without the watch, A B B A, so that disturbances affect both. A
figure is the median of the pairs' ratios of batches per second (below 1: overhead), with their
interquartile range, and the same in microseconds per batch. Single-threaded loops are timed by that
thread's own CPU time, which excludes other load. The cost of the watch's own threads is the CPU
time of a sleeping process. Photos come from HEADRACE_TEST_DATA, otherwise from examples/images;
the DataLoader needs torch. Status line, server for Prometheus and sampling of the GIL are on.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import headrace as hr

Clock = Callable[[], float]


def photos() -> Any:
    data = os.environ.get("HEADRACE_TEST_DATA")
    folder = Path(data) / "photos" if data else None
    pictures = Path(__file__).parent.parent / "examples" / "images"
    path = folder if folder is not None and folder.exists() else pictures
    return hr.Loader(path, hr.presets.imagenet_train(224), batch_size=32, shuffle=True)


def dataloader() -> Any:
    """Four numbers per batch, in this process: as little work per batch as a DataLoader can
    have."""
    import torch

    class Rows(torch.utils.data.Dataset):  # type: ignore[misc]
        rows = torch.arange(400_000.0).reshape(-1, 4)

        def __len__(self) -> int:
            return len(self.rows)

        def __getitem__(self, index: int) -> Any:
            return self.rows[index]

    return torch.utils.data.DataLoader(Rows(), batch_size=4)


class Bare:
    """An iterator that does nothing, so that only the watch remains."""

    def __iter__(self) -> Any:
        return iter([[0.0] * 4] * 1000)


def rate(loader: Iterable[Any], seconds: float, step_seconds: float, clock: Clock) -> float:
    """Batches per second, epoch after epoch; the loop spends ``step_seconds`` on each."""
    count, begin = 0, clock()
    while True:
        for _ in loader:
            count += 1
            now = clock()
            if step_seconds:
                while clock() - now < step_seconds:
                    pass
            if now - begin > seconds:
                return count / (now - begin)


def measure(
    name: str,
    loader: Any,
    pairs: int,
    seconds: float,
    step_seconds: float = 0.0,
    clock: Clock = time.thread_time,
) -> None:
    def one(watched: bool) -> float:
        watch = hr.watch(loader, port=0) if watched else contextlib.nullcontext()
        with watch:
            return rate(loader, seconds, step_seconds, clock)

    one(True), one(False)
    ratios, micros, plain_rates = [], [], []
    for number in range(pairs):
        order = (True, False) if number % 2 else (False, True)
        found = {watched: one(watched) for watched in order}
        ratios.append(found[True] / found[False])
        micros.append(1e6 / found[True] - 1e6 / found[False])
        plain_rates.append(found[False])
    low, middle, high = statistics.quantiles(ratios, n=4)
    print(
        f"{name}: {statistics.median(plain_rates):,.0f} batches/s without, ratio {middle:.4f} "
        f"(quartiles {low:.4f} to {high:.4f}, {pairs} pairs), "
        f"{statistics.median(micros):+.2f} us per batch",
        flush=True,
    )


def threads_share(seconds: float) -> float:
    """Fraction of a core used by the watch's threads."""
    with hr.watch(Bare(), port=0) as seen:
        list(seen)
        begin = time.process_time()
        time.sleep(seconds)
        return (time.process_time() - begin) / seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument(
        "--seconds", type=float, default=1.0, help="duration of each half of a pair"
    )
    options = parser.parse_args()
    with photos() as loader:
        clock = time.perf_counter  # other threads do its work
        measure("Headrace, photos", loader, options.pairs, options.seconds, clock=clock)
    with contextlib.suppress(ImportError):
        tiny = dataloader()
        measure("DataLoader, 4 numbers", tiny, options.pairs, options.seconds)
        # A step that limits it to about 10,000 batches per second.
        measure("DataLoader, 10,000/s", tiny, options.pairs, options.seconds, 85e-6)
    measure("an iterator of nothing", Bare(), options.pairs, options.seconds)
    print(f"its threads: {threads_share(10):.3%} of a core")


if __name__ == "__main__":
    main()
