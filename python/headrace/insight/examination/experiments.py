# SPDX-License-Identifier: Apache-2.0
"""The experiments: each isolates one cost, takes about the given number of seconds, and adds its
results to the findings."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterator

from headrace import _core
from headrace.insight.examination.conclusion import case_of
from headrace.insight.examination.findings import Findings
from headrace.insight.examination.samples import look_at_records
from headrace.insight.examination.step_regions import time_regions
from headrace.insight.measure import copying, file_reads, machine
from headrace.insight.measure.in_place import is_changed
from headrace.insight.measure.loop import Replay, bytes_in, copied, records_in, settle, time_loop
from headrace.insight.measure.pace import Pace
from headrace.insight.measure.process_sampler import ProcessSampler, vitals
from headrace.insight.model.prediction import more_memory
from headrace.insight.probes import ours, thread_sweep, torch_dataloader, worker_sweep
from headrace.insight.remedies import trials
from headrace.insight.stand_in import StandIn, on_device


def look_at_machine(found: Findings, seconds: float) -> None:
    """Collects facts about the machine and the storage of the data."""
    if found.ours is not None:
        found.paths = file_reads.named_by(found.ours.source, found.ours.source.path)
    elif found.dataloader is not None:
        found.paths = file_reads.named_by(found.dataloader.dataset)
    found.report.host = machine.look(found.paths)
    for remark in machine.remarks(found.report.host):
        found.note(remark)


def find_ceiling(found: Findings, seconds: float) -> None:
    """The step on one batch that stays on the device: the model's maximum rate."""
    if found.step is None or found.ceiling is not None or not found.keep():
        return
    own = copied(found.kept[0])
    there = on_device(own, found.step)
    busy = time.process_time()
    timed = time_loop(Replay([there]), found.step, seconds, rendezvous=found.rendezvous)
    if timed.failure and there is not own:  # the step expects a batch on the host
        busy, there = time.process_time(), own
        timed = time_loop(Replay([own]), found.step, seconds, rendezvous=found.rendezvous)
    if is_changed(found.kept[0], there):
        found.copies = True
        found.note("The step changes its batches in place, so it was called with a copy each time.")
        fresh = found.kept[0] if there is own else on_device(found.kept[0], found.step)
        busy = time.process_time()
        timed = time_loop(Replay([fresh], True), found.step, seconds, rendezvous=found.rendezvous)
        timed = timed.without_waits()
    found.ceiling = found.counted("ceiling", "the step", timed)
    found.step_cores = (time.process_time() - busy) / max(1, timed.records)


def run_for_real(found: Findings, seconds: float) -> None:
    """The loader alone, then with the step, as in training."""
    once = found.once
    if once:
        found.note(
            "The loader can be iterated only once and is used up: some experiments were skipped."
        )
    with_step = found.step is not None
    part = 0.4 if with_step or found.real is not None else 1.0
    if not once or not with_step:
        with ProcessSampler() as sampler, _memory_watched(found):
            begin = sampler.now()
            timed = time_loop(found.loader, None, part * seconds)
        found.alone = found.counted("loader", "the loader", timed)
        if timed.gave_up:
            return
        if found.real is None:
            found.report.vitals = vitals(sampler, begin, timed)
    if with_step:
        with ProcessSampler() as sampler:
            begin = sampler.now()
            timed = time_loop(found.loader, found.step, 0.6 * seconds, rendezvous=found.rendezvous)
        found.real = found.counted("real", "the loop", timed)
        found.report.vitals = vitals(sampler, begin, timed)


@contextlib.contextmanager
def _memory_watched(found: Findings) -> Iterator[None]:
    """Average number of records that waited for memory because of the limit."""
    if found.ours is None:
        yield
        return
    begin, before = time.perf_counter(), found.ours.stats()["memory_wait_seconds"]
    yield
    waited = found.ours.stats()["memory_wait_seconds"] - before
    found.held_up = waited / (time.perf_counter() - begin)


def replay(found: Findings, seconds: float) -> None:
    """The step on batches from memory: the difference from the ceiling is the cost of delivery and
    copies."""
    if found.step is None or found.cached is not None or not found.kept:
        return
    batches = Replay(found.kept, found.copies)
    timed = time_loop(batches, found.step, seconds, rendezvous=found.rendezvous)
    if found.copies:
        timed = timed.without_waits()
    found.cached = found.counted("cached", "the step on batches from memory", timed)


def start_cold(found: Findings, seconds: float) -> None:
    """As in training, after the files were dropped from the page cache."""
    if not found.paths:
        found.note("The source has no known files, so a cold start could not be measured.")
        return
    if not file_reads.forget(found.paths):
        found.note(
            "The files could not be dropped from the page cache: all figures are for cached files."
        )
        return
    start, records, pace = time.perf_counter(), 0, Pace(seconds, found.rendezvous)
    for steps, batch in enumerate(found.loader, 1):
        if found.step is not None:
            found.step(batch)
        records += records_in(batch)
        if pace.over(time.perf_counter() - start - pace.compared, steps):
            break
    settle()
    if records:
        found.report.rates["cold"] = records / (time.perf_counter() - start - pace.compared)


def read_storage(found: Findings, seconds: float) -> None:
    """Reads stored records, randomly at increasing depth, and sequentially."""
    if found.ours is not None:
        found.reads = ours.read_records(found.ours, seconds / 2)
    records = len(found.ours.source) if found.ours is not None else len(found.paths)
    raw = file_reads.measure(file_reads.extents_of(found.paths, records), seconds / 2, cold=True)
    seen = raw or found.reads
    if seen is None:
        return
    found.report.storage = {
        "record bytes": seen.record_bytes,
        "random reads per second": seen.random_rates,
        "sequential bytes per second": seen.sequential_bytes,
        "from": "probably the disk" if seen.cold else "the disk or the page cache",
    }
    if found.reads is not None and raw is not None:
        found.reads = found.reads._replace(small_files=raw.small_files)
    found.reads = found.reads or raw


def take_apart_a_record(found: Findings, seconds: float) -> None:
    """The stages of a record's time, the cost of each operator, the slowest records."""
    report = found.report
    if found.ours is not None:
        found.anatomy = ours.examine(found.ours, found.reads, 0.85 * seconds)
        if any(field.encoded for field in found.ours.source.schema):
            report.slowest = ours.slowest_records(found.ours, 0.15 * seconds)
    elif found.dataloader is not None:
        found.anatomy, report.slowest = torch_dataloader.examine(found.dataloader, seconds)
    if found.anatomy is None:
        return
    if found.anatomy.failure:
        found.note(f"Timing of single records ended early: {found.anatomy.failure.splitlines()[0]}")
    report.operator_costs = found.anatomy.prices
    if found.anatomy.one_thread > 0:
        report.rates["one_thread"] = found.anatomy.one_thread


def time_copies(found: Findings, seconds: float) -> None:
    """Bytes per second in memory, and to the device from pageable and pinned memory."""
    size = bytes_in(found.kept[0]) if found.kept else 0
    found.report.copies = copying.measure(size, seconds)
    if found.dataloader is not None and found.dataloader.num_workers:
        under_way = found.dataloader.num_workers * (found.dataloader.prefetch_factor or 2)
        remark = machine.shared_memory_remark(found.report.host, size * under_way)
        if remark:
            found.note(remark)
    if isinstance(found.step, StandIn):
        found.report.copies.update(found.step.copies())


def try_remedies(found: Findings, seconds: float) -> None:
    """Tries remedies on some records, compared with the unchanged loader."""
    case = case_of(found)
    if case is None:
        return
    copies, rates = found.report.copies, found.report.rates
    if found.anatomy is None or (found.ours is None and found.dataloader is None):
        found.offers = trials.of_iterable(case, copies)
    elif found.ours is not None:
        found.offers = trials.of_ours(found.ours, case, found.anatomy, found.reads, seconds, copies)
    else:
        found.offers = trials.of_dataloader(
            found.dataloader, case, found.anatomy, seconds, rates, copies
        )
    if found.ours is not None and case.memory_places < case.workers:
        limit = int(found.ours.stats()["memory_limit"]) >> 20
        what = f"raise memory_limit, which is {limit} MiB, or decode smaller images"
        found.offers.append(more_memory(case, what))


def sweep_workers(found: Findings, seconds: float) -> None:
    """A DataLoader or our loader with different numbers of workers or threads; start-up is timed
    separately.
    """
    cores = _core.allowed_cores()
    if found.ours is not None:
        found.report.sweep = thread_sweep.sweep(found.ours, cores, seconds)
        return
    if found.dataloader is None:
        found.note(
            "Numbers of workers can be swept only for Headrace's loader and torch's DataLoader."
        )
        return
    pinning = copying.has_gpu()
    found.report.sweep = worker_sweep.sweep(found.dataloader, cores, seconds, pinning)


@dataclasses.dataclass(frozen=True)
class Experiment:
    """``share``: its fraction of an examination's time; extra experiments take additional time."""

    run: Callable[[Findings, float], None]
    share: float
    extra: bool = False  # only on request


# In order of execution: the most important come first, so that an interrupted examination has
# results.
EXPERIMENTS = {
    "host": Experiment(look_at_machine, 0.0),
    "ceiling": Experiment(find_ceiling, 0.10),
    "real": Experiment(run_for_real, 0.33),
    "cached": Experiment(replay, 0.05),
    "cold": Experiment(start_cold, 0.05),
    "storage": Experiment(read_storage, 0.07),
    "decode": Experiment(take_apart_a_record, 0.13),
    "samples": Experiment(look_at_records, 0.01),
    "copy": Experiment(time_copies, 0.02),
    "regions": Experiment(time_regions, 0.04),
    "remedies": Experiment(try_remedies, 0.25),
    "sweep": Experiment(sweep_workers, 0.5, extra=True),
}
