# SPDX-License-Identifier: Apache-2.0
"""The order of the experiments, what each may take of the time, and the case they add up to."""

from __future__ import annotations

import dataclasses
import multiprocessing
import time
from collections.abc import Callable, Iterable
from typing import Any

from headrace import _core
from headrace.delivered import Delivered
from headrace.doctor import copying, files, host, ours, torch_dataloader, trials
from headrace.doctor.loop import (
    Replay,
    Step,
    Timed,
    bytes_in,
    keep_some,
    records_in,
    settle,
    time_loop,
)
from headrace.doctor.model import Case, Stage, input_rate, sustained
from headrace.doctor.ours import Anatomy
from headrace.doctor.remedies import Remedy, ranked
from headrace.doctor.report import Report
from headrace.doctor.state import kept
from headrace.doctor.verdict import Window, judge
from headrace.errors import declare, did_you_mean
from headrace.loader import Loader

BAD_SKIP = declare(
    "HR0900",
    "config",
    "no such experiment",
    "skip= names experiments of the doctor that are left out. The message lists them.",
)
NOT_ITERABLE = declare(
    "HR0901",
    "config",
    "nothing to examine",
    "hr.doctor takes a loader: a headrace.Loader, a DataLoader of torch, or anything that a for "
    "loop accepts.",
)
BAD_SECONDS = declare(
    "HR0902",
    "config",
    "no time to measure in",
    "seconds= is about how long an examination takes; it must be positive.",
)

# Shares of the time, in the order in which they are done: what matters most comes first, so that
# an interrupted examination knows something.
EXPERIMENTS = {
    "host": 0.0,
    "ceiling": 0.10,
    "real": 0.38,  # the loader alone, then with the step
    "cached": 0.07,
    "cold": 0.05,
    "storage": 0.07,
    "decode": 0.16,
    "copy": 0.02,
    "remedies": 0.15,
    "sweep": 0.0,  # on request, and on top
}
_SWEEP_SHARE = 0.5

Tell = Callable[[str, int], object]


class Examination:
    """One loader, one step, one report."""

    def __init__(
        self,
        loader: Any,
        step: Step | None,
        seconds: float,
        skip: Iterable[str],
        sweep: bool,
        tell: Tell,
    ) -> None:
        self._skip = {skip} if isinstance(skip, str) else set(skip)
        for name in sorted(self._skip - set(EXPERIMENTS)):
            raise BAD_SKIP.error(repr(name), hint=did_you_mean(name, EXPERIMENTS))
        if not hasattr(loader, "__iter__"):
            raise NOT_ITERABLE.error(f"{type(loader).__name__} cannot be iterated")
        if not seconds > 0:
            raise BAD_SECONDS.error(f"seconds={seconds!r}")
        if not sweep:
            self._skip.add("sweep")
        self._loader, self._step, self._seconds, self._tell = loader, step, seconds, tell
        inner = loader._loader if isinstance(loader, Delivered) else loader
        self._ours = inner if isinstance(inner, Loader) else None
        self._dataloader = loader if torch_dataloader.is_dataloader(loader) else None
        self._report = Report()
        self._kept: list[Any] = []
        self._ceiling: Timed | None = None
        self._alone: Timed | None = None
        self._real: Timed | None = None
        self._cached: Timed | None = None
        self._reads: files.Reads | None = None
        self._anatomy: Anatomy | None = None
        self._offers: list[Remedy] = []
        self._paths: list[str] = []

    def run(self, model: Any, optimizer: Any) -> Report:
        """All experiments; ends early, with what there is, where one fails or is interrupted."""
        report, begin = self._report, time.perf_counter()
        if self._step is not None and model is None:
            report.notes.append(
                "The step ran for real: give model= and optimizer= to have their state put back."
            )
        owner = self._ours
        try:
            with kept(owner, model, optimizer, report.notes):
                for name in EXPERIMENTS:
                    if name not in self._skip:
                        self._tell(name, list(EXPERIMENTS).index(name))
                        self._experiment(name)
        except KeyboardInterrupt:
            report.interrupted = True
        self._conclude()
        report.seconds = time.perf_counter() - begin
        return report

    def _experiment(self, name: str) -> None:
        """One of them; what it raises is a note, and the others go on."""
        share = EXPERIMENTS[name] if name != "sweep" else _SWEEP_SHARE
        try:
            getattr(self, f"_do_{name}")(share * self._seconds)
        except Exception as error:
            told = str(error).splitlines()[0] if str(error) else type(error).__name__
            self._note(f"The experiment {name!r} ended early: {told}")

    def _note(self, text: str) -> None:
        if text not in self._report.notes:
            self._report.notes.append(text)

    def _do_host(self, seconds: float) -> None:
        if self._ours is not None:
            self._paths = files.named_by(self._ours.source, self._ours.source.path)
        elif self._dataloader is not None:
            self._paths = files.named_by(self._dataloader.dataset)
        self._report.host = host.look(self._paths)

    def _do_ceiling(self, seconds: float) -> None:
        if self._step is None:
            return
        self._keep()
        if not self._kept:
            return
        there = copying.on_device(self._kept[0])
        timed = time_loop(Replay([there]), self._step, seconds)
        if timed.failure and there is not self._kept[0]:  # a step that wants the host's batch
            timed = time_loop(Replay(self._kept[:1]), self._step, seconds)
        self._ceiling = self._counted("ceiling", "the step", timed)

    def _keep(self) -> None:
        if not self._kept and iter(self._loader) is not self._loader:
            self._kept = keep_some(self._loader)

    def _do_real(self, seconds: float) -> None:
        once = iter(self._loader) is self._loader
        if once:
            self._note(
                "The loader can be iterated once only; it was used up, and some was skipped."
            )
        with_step = self._step is not None
        part = 0.4 if with_step else 1.0
        if not once or not with_step:
            self._alone = self._counted(
                "loader", "the loader", time_loop(self._loader, None, part * seconds)
            )
        if with_step:
            timed = time_loop(self._loader, self._step, 0.6 * seconds)
            self._real = self._counted("real", "the loop", timed)

    def _do_cached(self, seconds: float) -> None:
        if self._step is None or not self._kept:
            return
        timed = time_loop(Replay(self._kept), self._step, seconds)
        self._cached = self._counted("cached", "the step on batches from memory", timed)

    def _counted(self, name: str, what: str, timed: Timed) -> Timed | None:
        """Its rate into the report; a failure becomes a sentence."""
        if timed.failure:
            self._note(f"{what[:1].upper()}{what[1:]} ended early: {timed.failure.splitlines()[0]}")
        if not timed.windows:
            return None
        self._report.rates[name] = timed.rate
        return timed

    def _do_cold(self, seconds: float) -> None:
        if not self._paths:
            self._note("The source names no files, so a cold start could not be measured.")
            return
        if not files.forget(self._paths):
            self._note("The files' cache could not be dropped, so all figures are warm ones.")
            return
        start, records = time.perf_counter(), 0
        for batch in self._loader:
            if self._step is not None:
                self._step(batch)
            records += records_in(batch)
            if time.perf_counter() - start > seconds:
                break
        settle()
        if records:
            self._report.rates["cold"] = records / (time.perf_counter() - start)

    def _do_storage(self, seconds: float) -> None:
        if self._ours is not None:
            self._reads = ours.read_records(self._ours, seconds / 2)
        records = len(self._ours.source) if self._ours is not None else len(self._paths)
        raw = files.measure(files.extents_of(self._paths, records), seconds / 2, cold=True)
        found = raw or self._reads
        if found is None:
            return
        self._report.storage = {
            "record bytes": found.record_bytes,
            "random reads a second": found.random_rates,
            "sequential bytes a second": found.sequential_bytes,
            "from": "the disk, as far as it could be told" if found.cold else "wherever it lies",
        }
        if self._reads is not None and raw is not None:
            self._reads = self._reads._replace(small_files=raw.small_files)
        self._reads = self._reads or raw

    def _do_decode(self, seconds: float) -> None:
        report = self._report
        if self._ours is not None:
            self._anatomy = ours.examine(self._ours, self._reads, 0.85 * seconds)
            if any(field.encoded for field in self._ours.source.schema):
                report.slowest = ours.slowest_records(self._ours, 0.15 * seconds)
        elif self._dataloader is not None:
            self._anatomy, report.slowest = torch_dataloader.examine(self._dataloader, seconds)
        if self._anatomy is None:
            return
        if self._anatomy.failure:
            self._note(f"A record on its own ended early: {self._anatomy.failure.splitlines()[0]}")
        report.prices = self._anatomy.prices
        if self._anatomy.one_thread > 0:
            report.rates["one_thread"] = self._anatomy.one_thread

    def _do_copy(self, seconds: float) -> None:
        size = bytes_in(self._kept[0]) if self._kept else 0
        self._report.copies = copying.measure(size, seconds)

    def _do_remedies(self, seconds: float) -> None:
        case = self._case()
        if case is None:
            return
        if self._ours is not None and self._anatomy is not None:
            self._offers = trials.of_ours(self._ours, case, self._anatomy, self._reads, seconds)
        elif self._dataloader is not None and self._anatomy is not None:
            rates = self._report.rates
            self._offers = trials.of_dataloader(
                self._dataloader, case, self._anatomy, seconds, rates
            )
        else:
            self._offers = trials.of_iterable(case)

    def _do_sweep(self, seconds: float) -> None:
        if self._dataloader is None:
            self._note("A sweep of workers is for torch's DataLoader only.")
            return
        cores = _core.allowed_cores()
        self._report.sweep = torch_dataloader.sweep(self._dataloader, cores, seconds)

    def _case(self) -> Case | None:
        """The model of what was measured; None where too little was."""
        alone = self._alone or self._real
        if alone is None:
            return None
        stages, workers, overlapped, gils = self._stages(alone)
        copied = self._copy_seconds()
        case = Case(
            stages,
            workers,
            _core.allowed_cores(),
            max(0.0, self._step_seconds() - copied),
            copied,
            self._disk_depth(workers),
            gils,
            overlapped,
            small_files=self._reads.small_files if self._reads else False,
        )
        return self._calibrated(case)

    def _stages(self, alone: Timed) -> tuple[tuple[Stage, ...], int, bool, int]:
        """Stages, workers, whether they work ahead, interpreters for steps in Python."""
        stages = self._anatomy.stages if self._anatomy else ()
        if self._ours is not None:
            pool = self._ours._workers.count
            return stages, int(self._ours.stats()["threads"]), True, max(1, pool)
        if self._dataloader is not None:
            count = int(self._dataloader.num_workers)
            return stages, max(1, count), count > 0, max(1, count)
        seconds = 1 / alone.rate
        ahead = self._works_ahead(seconds)
        if alone.wait_cpu > 0.5:
            return (Stage("its own code", "python", seconds, ("gil",)),), 1, ahead, 1
        if multiprocessing.active_children():
            self._note("The loader has processes of its own, into which nobody can look.")
            return (), 1, ahead, 1
        return (Stage("reading", "storage", seconds, ("disk",)),), 1, ahead, 1

    def _disk_depth(self, workers: int) -> float:
        """How many reads go on side by side: as read, but no more than the loader showed.

        Where all threads together give hardly more than one of them, they wait for each other.
        """
        depth = self._reads.depth if self._reads else 1.0
        if self._alone is None or self._anatomy is None or not self._anatomy.one_thread:
            return depth
        scaling = self._alone.rate / self._anatomy.one_thread
        return min(depth, max(1.0, scaling)) if scaling < 0.8 * workers else depth

    def _works_ahead(self, seconds: float) -> bool:
        """Whether records are made during the step: then the loop waits less than they take."""
        if self._real is None or self._alone is None:
            return False
        waited = self._real.wait.mean * self._real.batches / max(1, self._real.records)
        return waited < 0.7 * seconds

    def _step_seconds(self) -> float:
        """Of a record: as timed in the loop, or alone where a GPU only queues it."""
        alone = 1 / self._ceiling.rate if self._ceiling else 0.0
        if self._real is None or not self._real.records:
            return alone
        return max(alone, self._real.step.mean * self._real.batches / self._real.records)

    def _copy_seconds(self) -> float:
        if self._ceiling is None or self._cached is None or "pinned" not in self._report.copies:
            return 0.0
        return max(0.0, 1 / self._cached.rate - 1 / self._ceiling.rate)

    def _calibrated(self, case: Case) -> Case:
        """Stages scaled to what the loader alone gave with all its workers: it knows contention."""
        if self._alone is None or not case.stages:
            return case
        factor = input_rate(case) / self._alone.rate
        stages = tuple(dataclasses.replace(s, seconds=s.seconds * factor) for s in case.stages)
        return dataclasses.replace(case, stages=stages)

    def _conclude(self) -> None:
        report, case = self._report, self._case()
        timed = self._real or self._alone
        if case is None or timed is None:
            return
        report.case = case
        report.resources = sustained(case)
        report.waits = timed.wait
        report.start_seconds = timed.first
        windows = timed.windows
        if self._real is not None:
            report.steps = timed.step
            windows = self._stalls(windows)
            stalls = sorted(window.stall for window in windows)
            report.stall_share = stalls[len(stalls) // 2]
        else:
            case = dataclasses.replace(case, step_seconds=0.0)
        if self._anatomy is None and self._ours is not None and not case.stages:
            self._note("Without the experiment 'decode' nobody knows what the loader does.")
        report.detail = judge(case, windows)
        report.verdict = report.detail.word
        if report.verdict not in ("fed", "consumer"):
            report.predictions = ranked(case, self._offers, timed.rate)

    def _stalls(self, windows: list[Window]) -> list[Window]:
        """A GPU's queue hides waits, so there the share is what is lacking to the step alone."""
        if "pinned" not in self._report.copies or self._ceiling is None:
            return windows
        top = self._ceiling.rate
        return [Window(w.rate, max(0.0, 1 - w.rate / top)) for w in windows]
