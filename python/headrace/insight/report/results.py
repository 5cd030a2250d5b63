# SPDX-License-Identifier: Apache-2.0
"""The result of an examination in numbers: a report without its presentation."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from headrace.insight.measure.loop import Spread
from headrace.insight.measure.process_sampler import Vitals
from headrace.insight.measure.recording import Timeline
from headrace.insight.measure.regions import Region
from headrace.insight.model.case import Case
from headrace.insight.model.prediction import Prediction
from headrace.insight.model.verdict import NOT_INPUT_BOUND, Verdict
from headrace.insight.probes.ours import Price
from headrace.plain_json import plain

if TYPE_CHECKING:
    from headrace.insight.model.verified import Verified
    from headrace.insight.probes.sample import Sample


@dataclasses.dataclass
class Results:
    """The fields of a Report, which documents them. ``json()`` is for machines."""

    verdict: str = "unsure"
    stall_share: float | None = None
    rates: dict[str, float] = dataclasses.field(default_factory=dict)
    resources: dict[str, float] = dataclasses.field(default_factory=dict)
    predictions: list[Prediction] = dataclasses.field(default_factory=list)
    detail: Verdict | None = None
    case: Case | None = None
    waits: Spread | None = None
    steps: Spread | None = None
    start_seconds: float | None = None
    contention: float = 0.0  # fraction of the requested core time that other programs used
    vitals: Vitals = dataclasses.field(default_factory=Vitals)
    regions: list[Region] = dataclasses.field(default_factory=list)
    operator_costs: list[Price] = dataclasses.field(default_factory=list)
    slowest: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    samples: list[Sample] = dataclasses.field(default_factory=list)
    storage: dict[str, Any] = dataclasses.field(default_factory=dict)
    copies: dict[str, float] = dataclasses.field(default_factory=dict)
    copy_hidden: float | None = None
    host: dict[str, Any] = dataclasses.field(default_factory=dict)
    sweep: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    notes: list[str] = dataclasses.field(default_factory=list)
    seconds: float = 0.0
    interrupted: bool = False
    failed: bool = False  # the script failed, was stopped, or nothing was measured
    script: dict[str, Any] = dataclasses.field(default_factory=dict)  # the script whose loop it was
    ranks: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    verified: Verified | None = None  # the remedy that was applied, if one was requested
    timeline: Timeline = dataclasses.field(default_factory=Timeline, repr=False)

    @property
    def input_bound(self) -> bool:
        """Whether data limits the loop: exit code 1 of the command."""
        return self.verdict not in NOT_INPUT_BOUND

    @property
    def remedies(self) -> list[dict[str, Any]]:
        return [
            {"name": p.name, "what": p.what, "predicted_low": p.low, "predicted_high": p.high}
            for p in self.predictions
        ]

    def json(self) -> dict[str, Any]:
        """Plain values under the keys of ``headrace doctor --json``; None for what is unknown."""
        detail = self.detail
        value = {
            "verdict": self.verdict,
            "stall_share": self.stall_share,
            "rates": self.rates,
            "resources": self.resources,
            "remedies": self.remedies,
            "cause": detail.cause if detail else "",
            "likely": detail.likely if detail else "",
            "reason": detail.reason if detail else "",
            "margin": detail.margin if detail else None,
            "noise": detail.noise if detail else None,
            "stages": [dataclasses.asdict(s) for s in self.case.stages] if self.case else [],
            "wait_seconds": self.waits._asdict() if self.waits else None,
            "step_seconds": self.steps._asdict() if self.steps else None,
            "start_seconds": self.start_seconds,
            "contention": self.contention,
            **dataclasses.asdict(self.vitals),
            "regions": [region._asdict() for region in self.regions],
            "operator_costs": [dataclasses.asdict(price) for price in self.operator_costs],
            "slowest": self.slowest,
            "storage": self.storage,
            "copies": self.copies,
            "copy_hidden": self.copy_hidden,
            "host": self.host,
            "sweep": self.sweep,
            "notes": self.notes,
            "seconds": self.seconds,
            "interrupted": self.interrupted,
            "failed": self.failed,
            "script": self.script,
            "ranks": self.ranks,
            "verified": self.verified.json() if self.verified else None,
        }
        as_json: dict[str, Any] = plain(value)
        return as_json
