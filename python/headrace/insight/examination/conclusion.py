# SPDX-License-Identifier: Apache-2.0
"""Derives a case of the model from measurements, and the report's verdict from the case."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import multiprocessing

from headrace import _core
from headrace.delivery.nested import take_apart
from headrace.errors import Error
from headrace.insight.examination.findings import Findings
from headrace.insight.measure import file_reads
from headrace.insight.measure.loop import Timed, Window, bytes_in, records_in
from headrace.insight.model.case import Case, Stage, input_rate, sustained
from headrace.insight.model.prediction import ranked
from headrace.insight.model.verdict import disagreement, judge
from headrace.insight.stand_in import StandIn, is_pinned

_TELLING = 0.05  # fraction of a step's time; shorter copies are within the noise
_SEVERAL = 1.3  # cores that a step keeps busy on average, with more than one thread
_HELD_UP = 0.05  # average number of records waiting for memory; fewer also wait without a tight
# limit


def conclude(found: Findings) -> None:
    """Adds verdict, resources and predictions to the report, as far as the findings allow."""
    report, case = found.report, case_of(found)
    report.contention = found.contention_share
    _note_bad_records(found)
    timed = found.real or found.alone
    if case is None or timed is None:
        return
    report.case = case
    report.resources = sustained(case)
    report.waits = timed.wait
    report.start_seconds = timed.first
    report.copy_hidden = _hidden_copies(found)
    windows = timed.windows
    if found.real is not None:
        report.steps = timed.step
        windows = _stalls(found, windows)
        stalls = sorted(window.stall for window in windows)
        report.stall_share = stalls[len(stalls) // 2]
    else:
        case = dataclasses.replace(case, step_seconds=0.0)
    if found.anatomy is None and found.ours is not None and not case.stages:
        found.note("Without the experiment 'decode' it is unknown what the loader does.")
    noise = _noise_of_copies(found)
    report.detail = judge(case, windows, noise, found.contention_share, timed.batches)
    report.verdict = report.detail.word
    if case.overlapped or report.input_bound:  # otherwise nothing runs concurrently with the step
        _note_crowded_cores(found, case)
    if report.verdict not in ("fed", "consumer"):
        report.predictions = ranked(case, found.offers, timed.rate)


def _note_bad_records(found: Findings) -> None:
    if found.ours is None or found.stuck:
        return
    with contextlib.suppress(Error):  # the loader is closed
        bad = {entry["record"] for entry in found.ours.quarantine}
        if bad:
            found.note(
                f"Records that cannot be read or decoded: {len(bad):,}. They were skipped or "
                f"replaced; headrace scan SOURCE lists them."
            )


def case_of(found: Findings) -> Case | None:
    """The model of the measurements; None if there are too few."""
    alone = found.alone or found.real
    if alone is None:
        return None
    stages, workers, overlapped, gils = _stages(found, alone)
    copied = _copy_seconds(found)
    case = Case(
        stages,
        workers,
        _core.allowed_cores(),
        max(0.0, _step_seconds(found) - copied),
        copied,
        _disk_depth(found, workers),
        gils,
        overlapped,
        small_files=_reads_small_files(found, stages),
        step_alone=1 / found.ceiling.rate if found.ceiling else 0.0,
        step_cores=found.step_cores,
        epoch=_epoch(found, workers),
    )
    return _calibrated(found, _within_memory(found, case, alone.rate))


def _note_crowded_cores(found: Findings, case: Case) -> None:
    """A multithreaded step on cores that a loader also uses waits for the slowest of its
    threads."""
    if found.real is None or case.step_alone <= 0:
        return
    threads = case.step_cores / case.step_alone
    if threads > _SEVERAL and case.cores < case.workers + threads:
        found.note(
            f"The step computes on {min(threads, case.cores):.1f} of the {case.cores} cores that "
            "it shares with the loader: its threads wait for each other, more than predictions "
            "account for. OMP_NUM_THREADS=1, or torch.set_num_threads(1), avoids that."
        )


def _within_memory(found: Findings, case: Case, rate: float) -> Case:
    """While a record waits for memory, the whole limit is in use: memory is busy for that long."""
    busy = min(1.0, found.held_up)
    if busy < _HELD_UP:
        return case
    stages = tuple(
        dataclasses.replace(stage, resources=("memory", *stage.resources))
        if "cores" in stage.resources and stage.kind != "storage"
        else stage
        for stage in case.stages
    )
    held = dataclasses.replace(case, stages=stages)
    return dataclasses.replace(held, memory_places=rate / busy * held.demand("memory"))


def _stages(found: Findings, alone: Timed) -> tuple[tuple[Stage, ...], int, bool, int]:
    """The stages, the number of workers, whether they work ahead, and the number of interpreters
    for Python transforms."""
    stages = found.anatomy.stages if found.anatomy else ()
    if found.ours is not None:
        pool = found.ours.assembly.workers.count
        return stages, int(found.ours.stats()["threads"]), True, max(1, pool)
    if found.dataloader is not None:
        count = int(found.dataloader.num_workers)
        return stages, max(1, count), count > 0, max(1, count)
    seconds = 1 / alone.rate
    ahead = _works_ahead(found, seconds)
    if alone.wait_cpu > 0.5:
        return (Stage("its own code", "python", seconds, ("gil",)),), 1, ahead, 1
    if multiprocessing.active_children():
        found.note("The loader has separate processes, which cannot be inspected.")
        return (), 1, ahead, 1
    return (Stage("reading", "storage", seconds, ("disk",)),), 1, ahead, 1


def _disk_depth(found: Findings, workers: int) -> float:
    """Number of concurrent reads: as measured, but no more than the loader achieved.

    If all threads together are hardly faster than one, then they wait for each other.
    """
    depth = found.reads.depth if found.reads else 1.0
    if found.alone is None or found.anatomy is None or not found.anatomy.one_thread:
        return depth
    scaling = found.alone.rate / found.anatomy.one_thread
    return min(depth, max(1.0, scaling)) if scaling < 0.8 * workers else depth


def _reads_small_files(found: Findings, stages: tuple[Stage, ...]) -> bool:
    """The seconds of a read, from the measurements or from the time that the loader takes per
    file."""
    reads = found.reads
    if reads is None or reads.small_files:
        return reads is not None
    source = found.ours.source if found.ours is not None else found.dataloader.dataset
    seconds = sum(stage.seconds for stage in stages if stage.kind == "storage")
    if not seconds or not file_reads.has_own_files(found.paths, len(source)):
        return False
    return file_reads.opening_dominates(reads.record_bytes, 1 / seconds, reads.sequential_bytes)


def _works_ahead(found: Findings, seconds: float) -> bool:
    """Whether records are made during the step: the loop then waits less than making them takes."""
    if found.real is None or found.alone is None:
        return False
    waited = found.real.wait.mean * found.real.batches / max(1, found.real.records)
    return waited < 0.7 * seconds


def _step_seconds(found: Findings) -> float:
    """Seconds of a step per record: as timed in the loop, or in isolation if a GPU only queues
    it."""
    alone = 1 / found.ceiling.rate if found.ceiling else 0.0
    if found.real is None or not found.real.records:
        return alone
    return max(alone, found.real.step.mean * found.real.batches / found.real.records)


def _epoch(found: Findings, workers: int) -> float:
    """Batches per epoch, for each of those made concurrently."""
    try:
        batches = len(found.loader)
    except (TypeError, NotImplementedError):
        return math.inf
    return max(1.0, batches / (1 if found.ours is not None else workers))


def _copy_seconds(found: Findings) -> float:
    if found.ceiling is None or found.cached is None or not found.device:
        return 0.0
    if isinstance(found.step, StandIn) and not found.step.copies():
        return 0.0
    apart = [window.rate for window in found.ceiling.windows]
    if max(window.rate for window in found.cached.windows) >= min(apart):
        return 0.0  # indistinguishable
    return 1 / found.cached.rate - 1 / found.ceiling.rate


def _hidden_copies(found: Findings) -> float | None:
    """The fraction of a batch's copy that overlaps with steps; None if copies are too short or too
    noisy to tell."""
    if not found.device or not found.kept or found.ceiling is None or found.cached is None:
        return None
    batch = found.kept[0]
    arrays = take_apart(batch, lambda value: hasattr(value, "is_pinned")).leaves
    path = "pinned" if arrays and all(map(is_pinned, arrays)) else "pageable"
    rate = found.report.copies.get(path)
    if not rate:
        return None
    direct = bytes_in(batch) / rate / max(1, records_in(batch))
    step = 1 / found.ceiling.rate
    if direct < _TELLING * step or direct < 2 * _noise_of_copies(found) * step:
        return None
    return max(0.0, min(1.0, 1 - (1 / found.cached.rate - step) / direct))


def _noise_of_copies(found: Findings) -> float:
    """The disagreement of the measurements whose difference gives the copies."""
    known = [timed for timed in (found.ceiling, found.cached) if timed is not None]
    return max((disagreement([w.rate for w in timed.windows]) for timed in known), default=0.0)


def _calibrated(found: Findings, case: Case) -> Case:
    """Stages scaled to the loader's own rate with all its workers, which includes contention."""
    if found.alone is None or not case.stages:
        return case
    factor = input_rate(case) / found.alone.rate
    stages = tuple(dataclasses.replace(s, seconds=s.seconds * factor) for s in case.stages)
    return dataclasses.replace(case, stages=stages)


def _stalls(found: Findings, windows: list[Window]) -> list[Window]:
    """A GPU's queue hides waits, so the fraction is computed from the step's isolated time; but it
    is at most the loop's waits and copies, because a step that was slower for other reasons is not
    a stall."""
    if not found.device or found.ceiling is None:
        return windows
    top, copied = found.ceiling.rate, _copy_seconds(found)

    def stall(window: Window) -> float:
        return max(0.0, min(1 - window.rate / top, window.stall + copied * window.rate))

    return [Window(window.rate, stall(window)) for window in windows]
