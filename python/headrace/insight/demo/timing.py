# SPDX-License-Identifier: Apache-2.0
"""One way to time any loader: the same loop for both sides of the comparison."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from headrace.insight.demo.training import Trainer

WARM_UP_BATCHES = 8  # threads and workers are up, pages are touched


@dataclass
class Timing:
    """What a loop over batches showed, after its warm-up."""

    images_per_second: float = 0.0
    images: int = 0
    seconds: float = 0.0
    waited: float = 0.0  # seconds in which the loop waited for a batch
    losses: list[float] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def endless(batches: Iterable[Any]) -> Iterator[Any]:
    """Epoch after epoch."""
    while True:
        yield from batches


def time_loop(
    batches: Iterable[Any],
    seconds: float,
    trainer: Trainer | None = None,
    tell: Callable[[Timing], None] = lambda timing: None,
) -> Timing:
    """Takes (images, labels) batches for some seconds, training on them if there is a trainer."""
    source = endless(batches)
    losses: list[float] = []
    for _ in range(WARM_UP_BATCHES):
        images, labels = next(source)
        if trainer:
            losses.append(trainer.step(images, labels))
    timing = Timing(losses=losses)
    start = now = time.perf_counter()
    while now - start < seconds:
        images, labels = next(source)
        timing.waited += time.perf_counter() - now
        timing.images += len(images)
        if trainer:
            losses.append(trainer.step(images, labels))
        now = time.perf_counter()
        timing.seconds = now - start
        timing.images_per_second = timing.images / timing.seconds
        tell(timing)
    return timing
