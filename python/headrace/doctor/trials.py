# SPDX-License-Identifier: Apache-2.0
"""Remedies tried on a few of the user's own records, so that what is predicted was measured.

A pack or an index of some records is made in a temporary folder; nothing is written to the dataset.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

from headrace.doctor import remedies
from headrace.doctor.files import Reads
from headrace.doctor.loop import time_loop
from headrace.doctor.model import Case, Stage
from headrace.doctor.ours import Anatomy, like, stages_of
from headrace.doctor.remedies import Remedy
from headrace.errors import Error
from headrace.loader import Loader
from headrace.pipeline import Pipeline

_RECORDS = 48  # that are packed and indexed
_WORTH = 0.05  # of a record's time; what takes less is not tried
_SPREAD = 0.15  # by what share a few records may differ from all

Stages = Sequence[Stage]


def of_ours(
    loader: Loader, case: Case, anatomy: Anatomy, reads: Reads | None, seconds: float
) -> list[Remedy]:
    """What may be offered for a loader of ours; what does not apply, or fails, is left out."""
    found = _by_numbers(case, anatomy, reads)
    found += _resized_once(loader, case)
    trials: list[Callable[[Loader, Case, Reads | None, float], Remedy | None]] = [
        _pack, _index, _uint8, _resident,
    ]  # fmt: skip
    stop = time.perf_counter() + seconds
    for number, trial in enumerate(trials):
        share = (stop - time.perf_counter()) / (len(trials) - number)
        if share <= 0:
            break
        try:
            remedy = trial(loader, case, reads, share)
        except (Error, OSError, ValueError, TypeError):
            continue  # not for this source or pipeline
        if remedy is not None:
            found.append(remedy)
    return found


def of_dataloader(
    loader: Any, case: Case, anatomy: Anatomy, seconds: float, rates: dict[str, float]
) -> list[Remedy]:
    """For torch's DataLoader: more workers, less work, and Headrace in its place, as measured."""
    found = _by_numbers(case, anatomy, None)
    from headrace.migrate import from_dataloader

    try:
        with from_dataloader(loader, verbose=False, check=False) as ours:
            timed = time_loop(ours, None, seconds)
    except (Error, ValueError, TypeError, NotImplementedError):
        return found
    if timed.windows and not timed.failure:
        rates["headrace"] = timed.rate
        each = sorted(window.rate for window in timed.windows)
        what = "hr.from_dataloader(loader): the same batches, made by Headrace"
        found.append(remedies.replaced(case, "Headrace instead", what, (each[0], each[-1])))
    return found


def of_iterable(case: Case) -> list[Remedy]:
    """Of a loader that nobody can look into: made ahead on a thread of its own."""
    if case.overlapped:
        return []
    ahead = remedies.more_workers(case, 1, "hr.prefetch(loader): makes batches while you step")
    return [Remedy("prefetch", ahead.what, case, ahead.best)]


def _by_numbers(case: Case, anatomy: Anatomy, reads: Reads | None) -> list[Remedy]:
    """What follows from the stages alone."""
    found = []
    if case.workers < case.cores or not case.overlapped:
        count = max(case.cores, 1)
        found.append(remedies.more_workers(case, count, f"threads={count} (num_workers={count})"))
    total = sum(stage.seconds for stage in case.stages)
    reading = sum(stage.seconds for stage in case.stages if stage.kind == "storage")
    from_memory = reads is not None and reads.cpu_share > 0.5
    if reading > _WORTH * total and not from_memory:
        found.append(remedies.from_memory(case, 'cache="4 GiB", or as much as you have'))
    priced = {price.name: price for price in anatomy.prices}
    for stage in case.stages:
        if stage.seconds > _WORTH * total and stage.kind in ("operator", "python"):
            price = priced.get(stage.name)
            if price is not None and price.seconds > 0:
                spread = min(1.0, price.spread / price.seconds)
                what = f"leave {stage.name} out, make it cheaper, or do it on the device"
                found.append(remedies.without(case, stage.name, what, spread))
    return found


def _resized_once(loader: Loader, case: Case) -> list[Remedy]:
    """From the pictures' area and the delivered one: a factor that is only roughly known."""
    shapes = [out["shape"] for out in loader._current().outputs() if out["kind"] == "image"]
    if not shapes or len(shapes[0]) != 3 or min(shapes[0]) <= 0:
        return []
    side = 1.15 * max(shapes[0][1:])
    areas = []
    for number in range(0, len(loader.source), max(1, len(loader.source) // 8)):
        try:
            height, width = loader.source[number]["image"].shape[1:]
        except (Error, KeyError, AttributeError):
            continue
        areas.append((side / min(height, width)) ** 2)
    ratio = sum(areas) / len(areas) if areas else 1.0
    if ratio > 0.7:
        return []
    what = f"store the pictures once with a shorter side of {side:.0f} pixels"
    return [remedies.resized_once(case, what, (min(1.0, 2 * ratio), ratio / 2))]


def _pack(loader: Loader, case: Case, reads: Reads | None, seconds: float) -> Remedy | None:
    from headrace.pack import pack

    part = _some(loader)
    if part is None or "pack" in loader.source.engine.description:
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "some.hrpack")
        pack(part, path)
        what = "headrace pack SOURCE -o FILE, and open FILE"
        return _tried(
            case, "pack", what, like(loader, part, threads=1), like(loader, path, threads=1),
            reads, seconds,
        )  # fmt: skip


def _index(loader: Loader, case: Case, reads: Reads | None, seconds: float) -> Remedy | None:
    from headrace.index import index

    part = _some(loader)
    if part is None or loader.stats()["index"]["entries"]:
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "some.hrindex")
        index(part, path)
        before = like(loader, part, threads=1, index=False)
        after = like(loader, part, threads=1, index=path)
        return _tried(case, "index", "headrace index SOURCE", before, after, reads, seconds)


def _uint8(loader: Loader, case: Case, reads: Reads | None, seconds: float) -> Remedy | None:
    steps = list(loader._pipeline.steps)
    while steps and steps[-1].name in ("ToDtype", "Normalize"):
        steps.pop()
    if len(steps) == len(loader._pipeline.steps):
        return None
    shorter = Pipeline([])
    shorter.steps = steps
    before, after = like(loader, threads=1), like(loader, pipeline=shorter, threads=1)
    what = "leave ToDtype and Normalize out of the list, and do them on the device"
    name = "uint8, normalized on the device"
    return _tried(case, name, what, before, after, reads, seconds, copy=(0.3, 0.25))


def _resident(loader: Loader, case: Case, reads: Reads | None, seconds: float) -> Remedy | None:
    part = _some(loader)
    if part is None:
        return None
    after = like(loader, part, threads=1, resident=True)
    needed = after.stats()["resident_bytes"] / len(part) * len(loader.source)
    if needed > loader.stats()["memory_limit"] / 2:
        after.close()
        return None
    what = "resident=True: decode once, keep the outcome in memory"
    before = like(loader, part, threads=1)
    return _tried(case, "resident", what, before, after, reads, seconds, warm=True)


def _some(loader: Loader) -> Any:
    """A few records of a source that has encoded pictures; None where it has none."""
    from headrace.sources import subset

    if not any(field.encoded for field in loader.source.schema):
        return None
    return subset(loader.source, range(min(_RECORDS, len(loader.source))))


def _tried(
    case: Case,
    name: str,
    what: str,
    before: Loader,
    after: Loader,
    reads: Reads | None,
    seconds: float,
    copy: tuple[float, float] = (1.0, 1.0),
    warm: bool = False,
) -> Remedy | None:
    """Stage by stage, what share of its time is left with the remedy, on the same records."""
    old, _, failed = stages_of(before, reads, seconds / 2)
    new, _, also_failed = stages_of(after, reads, seconds / 2, warm=warm)
    if failed or also_failed:
        return None
    left = {stage.name: stage.seconds for stage in new}
    factors = {}
    for stage in old:
        share = left.get(stage.name, 0.0) / stage.seconds
        factors[stage.name] = (share * (1 + _SPREAD), share * (1 - _SPREAD))
    return remedies.cheaper(case, name, what, factors, copy)
