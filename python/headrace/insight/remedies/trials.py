# SPDX-License-Identifier: Apache-2.0
"""Remedies tried on some of the user's own records, so that predictions are based on measurements.

Loaders with and without the remedy alternate, each with all of its threads, over the same records,
which are sampled from the whole dataset. What a trial writes goes to a temporary folder.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from typing import Any

import numpy as np

from headrace.errors import Error
from headrace.insight.measure.file_reads import Reads
from headrace.insight.measure.loop import time_loop
from headrace.insight.measure.paired import Ratio, compare, epoch_rate
from headrace.insight.model import prediction as remedies
from headrace.insight.model.case import Case, input_rate
from headrace.insight.model.prediction import Remedy
from headrace.insight.probes import torch_dataloader
from headrace.insight.probes.ours import Anatomy
from headrace.insight.remedies import changes, resizing
from headrace.insight.remedies.changes import Change, maker
from headrace.loader import Loader
from headrace.sources import Source, subset

_TURN = 0.1  # seconds per epoch
_PYTHON_TURN = 0.4  # if threads wait for a Python transform, starting an epoch takes longer
_BATCHES = 5  # minimum per epoch, since its start and end take time
_FEW, _LEAST = 16, 32  # records of a first attempt, and of a trial with a long preparation
_WORTH = 0.05  # fraction of a record's time; smaller effects are not tried
_AGAIN = 16  # maximum repeats of a record per epoch for a fast remedy
_DIFFER = 0.3  # variation of a remedy's effect between records
_REFUSALS = (Error, OSError, ValueError, TypeError, KeyError)


def of_ours(
    loader: Loader,
    case: Case,
    anatomy: Anatomy,
    reads: Reads | None,
    seconds: float,
    copies: dict[str, float] | None = None,
) -> list[Remedy]:
    """The remedies for our loader, except those that do not apply or fail."""
    found = _of_storage(loader, case, reads)
    found += _of_copies(case, copies or {}, 'loader.torch("cuda"): batches arrive while you step')
    if not resizing.can_encode():
        found += resizing.guess(loader, case)
    tries = [*changes.changes_of(loader, case, anatomy), resizing.change_of(loader)]
    stop = time.perf_counter() + seconds
    for number, change in enumerate(tries):
        share = (stop - time.perf_counter()) / (len(tries) - number)
        if share <= 0 or change is None:
            continue
        try:
            ratio = _tried(loader, change, input_rate(case), share)
        except _REFUSALS:
            continue  # not applicable to this source or pipeline
        found.append(
            remedies.compared(
                case, change.name, change.what, ratio,
                workers=change.workers, read=change.read, copy=change.copy,
            )
        )  # fmt: skip
    return found


def of_dataloader(
    loader: Any,
    case: Case,
    anatomy: Anatomy,
    seconds: float,
    rates: dict[str, float],
    copies: dict[str, float] | None = None,
) -> list[Remedy]:
    """For torch's DataLoader: more workers, less work, or Headrace instead, as measured."""
    found = _left_out(case, anatomy)
    found += _of_copies(case, copies or {}, 'hr.prefetch(loader, "cuda"): copied while you step')
    if case.workers < case.cores or not case.overlapped:
        seconds /= 2
        found.append(_more_workers(loader, case, seconds))
    from headrace.migrate import from_dataloader

    try:
        with from_dataloader(loader, verbose=False, check=False) as ours:
            timed = time_loop(ours, None, seconds)
    except (*_REFUSALS, NotImplementedError):
        return found
    if timed.windows and not timed.failure:
        rates["headrace"] = timed.rate
        each = sorted(window.rate for window in timed.windows)
        what = "hr.from_dataloader(loader).torch(): the same batches, made by Headrace"
        found.append(remedies.replaced(case, "Headrace instead", what, (each[0], each[-1])))
    return found


def of_iterable(case: Case, copies: dict[str, float] | None = None) -> list[Remedy]:
    """For a loader of unknown kind: batches made ahead on a separate thread."""
    found = _of_copies(case, copies or {}, 'hr.prefetch(loader, "cuda"): copied while you step')
    if not case.overlapped:
        what = 'hr.prefetch(loader, "cpu"), or "cuda": batches are made while you step'
        ahead = remedies.more_workers(case, 1, what)
        found.append(Remedy("prefetch", ahead.what, case, ahead.best))
    return found


def _of_storage(loader: Loader, case: Case, reads: Reads | None) -> list[Remedy]:
    """Remedies for records that wait for the storage."""
    total = sum(stage.seconds for stage in case.stages)
    waits = sum(s.seconds for s in case.stages if s.resources == ("disk",))
    if waits <= _WORTH * total:
        return []
    cache = changes.cache(loader)
    found = [remedies.compared(case, cache.name, cache.what, (1.0, 1.0), read=cache.read)]
    if reads is None or loader.assembly.given["shuffle"] is not True or reads.sequential_bytes <= 0:
        return found
    share = reads.record_bytes / reads.sequential_bytes / reads.seconds
    if share < 0.5 and not reads.small_files:
        found.append(remedies.block_shuffled(case, changes.block_shuffle().what, share))
    return found


def _of_copies(case: Case, copies: dict[str, float], what: str) -> list[Remedy]:
    """Remedies for copies to a device that delay the loop."""
    if case.copy_seconds <= 0 or case.copy_overlapped or not copies.get("pinned"):
        return []
    share = copies.get("pageable", copies["pinned"]) / copies["pinned"]
    return [remedies.copied_aside(case, what, share)]


def _more_workers(loader: Any, case: Case, seconds: float) -> Remedy:
    """One persistent worker per core: without persistent_workers, each epoch waits until they have
    started."""
    what = f"num_workers={case.cores}, persistent_workers=True"
    more = torch_dataloader.rebuilt(loader, num_workers=case.cores, persistent_workers=True)
    timed = time_loop(more, None, seconds)
    if timed.failure or not timed.windows:
        return remedies.more_workers(case, case.cores, what)
    each = sorted(window.rate for window in timed.windows)
    return remedies.replaced(case, f"{case.cores} workers", what, (each[0], each[-1]))


def _left_out(case: Case, anatomy: Anatomy) -> list[Remedy]:
    """Remedies that follow from the stages alone."""
    found = []
    total = sum(stage.seconds for stage in case.stages)
    priced = {price.name: price for price in anatomy.prices}
    for stage in case.stages:
        if stage.seconds > _WORTH * total and stage.kind in ("operator", "python"):
            price = priced.get(stage.name)
            if price is not None and price.seconds > 0:
                spread = min(1.0, price.spread / price.seconds)
                what = f"remove {stage.name}, make it cheaper, or do it on the device"
                found.append(remedies.without(case, stage.name, what, spread))
    return found


def _tried(loader: Loader, change: Change, rate: float, seconds: float) -> Ratio:
    """The speed-up of the loader alone with the remedy; raises if it is not applicable."""
    begin = time.perf_counter()
    in_python = any(hasattr(step, "home") for step in loader.assembly.pipeline.all_steps())
    turn = _PYTHON_TURN if in_python else _TURN
    count, again = max(_LEAST, round(turn * rate)), 1
    if change.prepares:
        with _Pair(loader, change, _FEW, 1) as (_, after):
            next(iter(after))
        each = (time.perf_counter() - begin) / _FEW
        count = int(min(count, max(_LEAST, 0.4 * seconds / each)))
    count = min(count, len(loader.source))
    if not change.prepares:
        with _Pair(loader, change, count, 1) as (_, after):
            epoch_rate(after)
            again = max(1, min(_AGAIN, round(_TURN * epoch_rate(after) / count)))
    with _Pair(loader, change, count, again) as (before, after):
        found = compare(before, after, seconds - (time.perf_counter() - begin))
    unseen = _DIFFER * ((1 - count / len(loader.source)) / count) ** 0.5
    return Ratio(found.low * (1 - unseen), found.high * (1 + unseen))


class _Pair(contextlib.ExitStack):
    """The loader without and with a remedy, over the same few records.

    again: how often the second one repeats each of them per epoch, so that its epochs are not
    dominated by their start and end.
    """

    def __init__(self, loader: Loader, change: Change, count: int, again: int) -> None:
        super().__init__()
        self._loader, self._change = loader, change
        self._count, self._again = count, again

    def __enter__(self) -> tuple[Loader, Loader]:  # type: ignore[override]
        folder = self.enter_context(tempfile.TemporaryDirectory())
        part = _some(self._loader, self._count, folder if self._change.apart else "")
        size = min(self._loader.batch_size, max(1, self._count // _BATCHES))
        make = maker(self._loader, batch_size=size, global_batch_size=None, last_batch="keep")
        before = self.enter_context(make(part))
        more = subset(part, list(range(len(part))) * self._again) if self._again > 1 else part
        larger = min(self._loader.batch_size, size * self._again)
        make = maker(self._loader, batch_size=larger, global_batch_size=None, last_batch="keep")
        return before, self.enter_context(self._change.apply(make, more, folder, None))


def _some(loader: Loader, count: int, folder: str) -> Source:
    """Records sampled from the whole dataset; copied to a file if ``folder`` is given."""
    draw = np.random.default_rng(0)
    numbers = np.sort(draw.choice(len(loader.source), min(count, len(loader.source)), False))
    part = subset(loader.source, numbers.tolist())
    return stored_in(part, folder) if folder else part


def stored_in(part: Source, folder: str) -> Source:
    """The same records, unchanged, in a single file."""
    from headrace.pack import pack
    from headrace.sources import open as open_source

    path = os.path.join(folder, "some.hrpack")
    pack(part, path, level="none")
    return open_source(path)
