# SPDX-License-Identifier: Apache-2.0
"""Findings of an examination so far: each experiment reads some of them and adds its own."""

from __future__ import annotations

import dataclasses
from typing import Any

from headrace.insight.measure.contention import Contention
from headrace.insight.measure.file_reads import Reads
from headrace.insight.measure.loop import Step, Timed, keep_some
from headrace.insight.measure.rendezvous import Rendezvous
from headrace.insight.model.prediction import Remedy
from headrace.insight.probes import torch_dataloader
from headrace.insight.probes.ours import Anatomy
from headrace.insight.report.report import Report
from headrace.insight.stand_in import StandIn
from headrace.loader import Loader
from headrace.loader.views import Delivered


@dataclasses.dataclass
class Findings:
    """One loader, one step, one report, and the raw measurements behind it."""

    loader: Any
    step: Step | None
    model: Any = None  # the model of the step, if the user passed it
    optimizer: Any = None
    report: Report = dataclasses.field(default_factory=Report)
    rendezvous: Rendezvous | None = None  # rendezvous with the ranks on this machine
    stuck: bool = False  # the loader or the step hangs
    kept: list[Any] = dataclasses.field(default_factory=list)  # batches to be replayed
    copies: bool = False  # the step modifies its batches, so it needs copies
    ceiling: Timed | None = None  # the step on one batch
    step_cores: float = 0.0  # core-seconds per record of the step
    cached: Timed | None = None  # the step on batches from memory
    alone: Timed | None = None  # the loader without a step
    real: Timed | None = None  # both, as in training
    paths: list[str] = dataclasses.field(default_factory=list)  # files that hold the data
    reads: Reads | None = None
    anatomy: Anatomy | None = None
    contention: Contention = dataclasses.field(default_factory=Contention)  # during the examination
    held_up: float = 0.0  # average number of records that wait for memory within the limit
    offers: list[Remedy] = dataclasses.field(default_factory=list)

    @property
    def ours(self) -> Loader | None:
        """The loader, if it is one of ours."""
        inner = self.loader.loader if isinstance(self.loader, Delivered) else self.loader
        return inner if isinstance(inner, Loader) else None

    @property
    def dataloader(self) -> Any:
        """The loader, if it is torch's DataLoader over a map-style dataset; otherwise None."""
        return self.loader if torch_dataloader.is_dataloader(self.loader) else None

    @property
    def once(self) -> bool:
        """Whether the loader can be iterated only once."""
        return hasattr(type(self.loader), "__next__")  # iter() would start worker processes

    @property
    def device(self) -> bool:
        """Whether batches are copied to a device that runs asynchronously: a GPU or a simulated
        one."""
        return isinstance(self.step, StandIn) or "pinned" in self.report.copies

    @property
    def contention_share(self) -> float:
        """The fraction of the requested core time that other programs took. Other ranks of the same
        training do not count, since they are always there.
        """
        return self.contention.share if self.rendezvous is None else 0.0

    def note(self, text: str) -> None:
        if text not in self.report.notes:
            self.report.notes.append(text)

    def keep(self) -> list[Any]:
        """Copies some batches; none if that would use up the loader."""
        if not self.kept and not self.once:
            self.kept = keep_some(self.loader)
        return self.kept

    def counted(self, name: str, what: str, timed: Timed) -> Timed | None:
        """Adds a loop's rate to the report; a failure becomes a note."""
        if timed.failure:
            way_out = ""
            if timed.failure.startswith("DataError") and self.ours is not None:
                way_out = '; with on_error="substitute" it continues without such records'
            text = timed.failure.splitlines()[0]
            self.note(f"{what[:1].upper()}{what[1:]} ended early: {text}{way_out}")
        if not timed.windows:
            return None
        self.report.rates[name] = timed.rate
        self.report.timeline.loops[name] = timed.recording
        return timed
