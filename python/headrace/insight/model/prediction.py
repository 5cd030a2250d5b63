# SPDX-License-Identifier: Apache-2.0
"""Predicts the gain of each remedy as a range: the same model, applied to the changed case.

A remedy changes the case, at worst and at best; the model gives a range for each, which is widened
by the model's error for the measured run.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence

from headrace.insight.model.case import Case, Stage, input_rate, loop_bounds

WORTH = 1.05  # smaller gains are not proposed
_FEW_WAITS = 0.1  # fraction of a record's time that no limit explains
_MISS = 0.03  # the error of any estimate, even for a loop that fits the model exactly


@dataclasses.dataclass(frozen=True)
class Remedy:
    """A remedy: the changed case, at worst and at best, and what to type."""

    name: str
    what: str
    worst: Case
    best: Case


@dataclasses.dataclass(frozen=True)
class Prediction:
    """The range of the loop's rate (records per second) with a remedy."""

    name: str
    what: str
    low: float
    high: float


def predict(case: Case, remedy: Remedy, measured: float) -> Prediction:
    """The range for a remedy; ``measured`` is the loop's rate without it."""
    explained = measured / loop_bounds(case)[1]
    low = loop_bounds(remedy.worst)[0] * min(1.0, explained) * (1 - _MISS)
    high = loop_bounds(remedy.best)[1] * max(1.0, explained) * (1 + _MISS)
    return Prediction(remedy.name, remedy.what, low, high)


def ranked(case: Case, remedies: Sequence[Remedy], measured: float) -> list[Prediction]:
    """The predictions worth mentioning, the best first."""
    found = [predict(case, remedy, measured) for remedy in remedies]
    found = [p for p in found if math.isfinite(p.high) and p.low + p.high > 2 * measured * WORTH]
    return sorted(found, key=lambda p: -(p.low + p.high))


def more_workers(case: Case, workers: int, what: str) -> Remedy:
    """``workers`` threads or processes, which also prepare records ahead."""
    changed = dataclasses.replace(case, workers=workers, overlapped=True)
    return Remedy(f"{workers} workers", what, changed, changed)


def cheaper(
    case: Case,
    name: str,
    what: str,
    factors: dict[str, tuple[float, float]],
    copy: tuple[float, float] = (1.0, 1.0),
) -> Remedy:
    """Stages reduced to a fraction of their present time: (at worst, at best) by kind or by
    name."""

    def at(which: int) -> Case:
        def factor(stage: Stage) -> float:
            found = factors.get(stage.name) or factors.get(stage.kind) or (1.0, 1.0)
            return found[which]

        stages = _each(case.stages, factor)
        return dataclasses.replace(
            case, stages=stages, copy_seconds=case.copy_seconds * copy[which]
        )

    return Remedy(name, what, at(0), at(1))


def without(case: Case, stage: str, what: str, spread: float = 0.0) -> Remedy:
    """Removes a stage; ``spread``: the relative uncertainty of its cost."""
    return cheaper(case, f"without {stage}", what, {stage: (spread, 0.0)})


def more_memory(case: Case, what: str) -> Remedy:
    """Raises the memory limit so that it delays nothing."""
    changed = dataclasses.replace(case, memory_places=math.inf)
    return Remedy("more memory", what, changed, changed)


def resized_once(case: Case, what: str, pixels: tuple[float, float]) -> Remedy:
    """Images stored at ``pixels`` of their area, which reduces reading and decoding accordingly."""
    return cheaper(case, "resize once", what, {"decode": pixels, "storage": (pixels[0], 0.0)})


def compared(
    case: Case,
    name: str,
    what: str,
    ratio: tuple[float, float],
    *,
    workers: int | None = None,
    read: tuple[float, float] = (1.0, 1.0),
    copy: tuple[float, float] = (1.0, 1.0),
) -> Remedy:
    """A remedy whose speed-up was measured in a trial (at worst, at best). Both read from memory,
    so the comparison does not include waits for storage: a fraction ``read`` of these remains, and
    a fraction ``copy`` of the copies to the device.
    """
    now = input_rate(_warm(case))
    total = sum(stage.seconds for stage in case.stages)
    waits = sum(stage.seconds for stage in case.stages if _is_wait(stage))

    def at(which: int) -> Case:
        after = dataclasses.replace(
            case,
            workers=workers or case.workers,
            overlapped=case.overlapped or workers is not None,
            copy_seconds=case.copy_seconds * copy[which],
            as_run=waits <= _FEW_WAITS * total,
        )
        there = input_rate(_warm(after))
        factor = there / (now * ratio[which]) if math.isfinite(now) else 1.0
        stages = _each(after.stages, lambda s: read[which] if _is_wait(s) else factor)
        return dataclasses.replace(after, stages=stages)

    return Remedy(name, what, at(0), at(1))


def block_shuffled(case: Case, what: str, share: float) -> Remedy:
    """Random reads become long sequential ones; ``share``: the fraction of a read's time if
    everything were contiguous. Since a window of blocks is read at a time, the actual fraction is
    at most twice that.
    """
    read = (min(1.0, 2 * share), share)
    return compared(case, "block shuffle", what, (1.0, 1.0), read=read)


def copied_aside(case: Case, what: str, pinned: float) -> Remedy:
    """Copies from pinned memory on a separate stream; ``pinned``: the remaining fraction of their
    time.
    """
    shorter = dataclasses.replace(case, copy_seconds=case.copy_seconds * min(1.0, pinned))
    beside = dataclasses.replace(shorter, copy_overlapped=True)
    return Remedy("pinned copies on a side stream", what, shorter, beside)


def replaced(case: Case, name: str, what: str, rates: tuple[float, float]) -> Remedy:
    """Another input, whose rate was measured without a step: records per second (at worst, at
    best). It had all cores then, and has fewer alongside the step.
    """

    def at(rate: float) -> Case:
        stage = Stage(name, "decode", case.cores / rate, ("cores",))
        return dataclasses.replace(case, stages=(stage,), workers=case.cores, overlapped=True)

    return Remedy(name, what, at(rates[0]), at(rates[1]))


def _is_wait(stage: Stage) -> bool:
    """Whether a stage spends all of its time in the storage."""
    return stage.resources == ("disk",)


def _warm(case: Case) -> Case:
    """The case if all reads came from memory."""
    kept = tuple(stage for stage in case.stages if not _is_wait(stage))
    return dataclasses.replace(case, stages=kept)


def _each(stages: Sequence[Stage], factor: Callable[[Stage], float]) -> tuple[Stage, ...]:
    return tuple(
        dataclasses.replace(stage, seconds=stage.seconds * factor(stage)) for stage in stages
    )
