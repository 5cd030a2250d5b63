# SPDX-License-Identifier: Apache-2.0
"""The loop used for both sides of the comparison: the doctor's loop, which also collects the losses
of the steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from headrace.insight.demo.training import Trainer
from headrace.insight.measure import loop


class Timing(NamedTuple):
    """Times of a loop over batches."""

    images_per_second: float
    stall: float  # the fraction of the time that the loop waited for a batch
    seconds: float
    losses: list[float]


class LoopFailed(Exception):
    """An error of the loader or the step, with a message of one sentence."""


def time_loop(
    batches: Iterable[Any],
    seconds: float,
    trainer: Trainer | None = None,
    tell: Callable[[int, list[float]], None] = lambda images, losses: None,
) -> Timing:
    """Takes (images, labels) batches for some seconds, training on them if there is a trainer. The
    rate is the median of three windows, so a slow start does not count.
    """
    losses: list[float] = []
    seen = 0

    def step(batch: Any) -> None:
        nonlocal seen
        images, labels = batch
        if trainer:
            losses.append(trainer.step(images, labels))
        seen += len(images)
        tell(seen, losses)

    timed = loop.time_loop(batches, step, seconds)
    if timed.failure:
        raise LoopFailed(timed.failure)
    return Timing(timed.rate, timed.stall, seconds, losses)
