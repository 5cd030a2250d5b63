# SPDX-License-Identifier: Apache-2.0
"""What an examination found: numbers for machines, and the same in plain words for people."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

from headrace.doctor.loop import Spread
from headrace.doctor.model import Case
from headrace.doctor.ours import Price
from headrace.doctor.remedies import Prediction
from headrace.doctor.verdict import FED_SHARE, NOT_INPUT_BOUND, Verdict

_SLOWED = 0.8  # of its rate alone; below, a step is said to be held up
_SENTENCES = {
    "fed": "Your training is fed: data is there when it is asked for.",
    "consumer": "Your training step is the limit, not the data.",
    "unsure": "No verdict: the measurements do not agree on one.",
}
_LIMITS = {
    "storage": "reading it is what takes longest",
    "small-files": "opening so many small files is what takes longest",
    "decode": "decoding it is what takes longest",
    "operator": "one step of the pipeline is what takes longest",
    "python": "code in Python is what takes longest",
    "workers": "too few workers make it",
    "collate": "putting records together to a batch is what takes longest",
    "copy": "copying it to the device is what takes longest",
}


@dataclasses.dataclass
class Report:
    """A verdict and what it stands on. ``str()`` is for reading, ``json()`` for machines.

    verdict: "fed", "consumer", "unsure", or what limits the input: "storage", "small-files",
    "decode", "operator", "python", "workers", "collate", "copy".
    stall_share: of the loop's time, spent waiting for data, 0..1; None without a step.
    rates: records a second by experiment. resources: what each resource could sustain.
    remedies: name, what to do, predicted_low and predicted_high in records a second, best first.
    """

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
    prices: list[Price] = dataclasses.field(default_factory=list)
    slowest: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    storage: dict[str, Any] = dataclasses.field(default_factory=dict)
    copies: dict[str, float] = dataclasses.field(default_factory=dict)
    host: dict[str, Any] = dataclasses.field(default_factory=dict)
    sweep: list[dict[str, float]] = dataclasses.field(default_factory=list)
    notes: list[str] = dataclasses.field(default_factory=list)
    seconds: float = 0.0
    interrupted: bool = False

    @property
    def input_bound(self) -> bool:
        """Whether data holds the loop up: exit code 1 of the command."""
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
            "margin": detail.margin if detail else None,
            "noise": detail.noise if detail else None,
            "stages": [dataclasses.asdict(s) for s in self.case.stages] if self.case else [],
            "wait_seconds": dataclasses.asdict(self.waits) if self.waits else None,
            "step_seconds": dataclasses.asdict(self.steps) if self.steps else None,
            "start_seconds": self.start_seconds,
            "prices": [dataclasses.asdict(price) for price in self.prices],
            "slowest": self.slowest,
            "storage": self.storage,
            "copies": self.copies,
            "host": self.host,
            "sweep": self.sweep,
            "notes": self.notes,
            "seconds": self.seconds,
            "interrupted": self.interrupted,
        }
        plain: dict[str, Any] = json.loads(json.dumps(_finite(value), default=str))
        return plain

    def __str__(self) -> str:
        lines = [*self._summary(), ""]
        lines += self._table("Rates (records/s)", self._rate_lines())
        lines += self._table("What each resource could sustain (records/s)", [
            (name, _number(rate)) for name, rate in sorted(self.resources.items(),
                                                          key=lambda item: item[1])
        ])  # fmt: skip
        lines += self._table("A record's way, one thread", self._stage_lines())
        lines += self._table("Left out, a step saves", [
            (p.name, f"{_time(p.seconds)} a record (± {_time(p.spread / 2)})") for p in self.prices
        ])  # fmt: skip
        lines += self._table("Waits and steps", self._spread_lines())
        lines += self._table("What would help (records/s, predicted)", [
            (p.name, f"{_number(p.low)} to {_number(p.high)}   {p.what}") for p in self.predictions
        ])  # fmt: skip
        lines += self._table("Slowest records", [
            (f"{item['ms']:.1f} ms", item["key"]) for item in self.slowest
        ])  # fmt: skip
        lines += self._table("Storage", [(n, _plain(n, v)) for n, v in self.storage.items()])
        lines += self._table("Copies", [(n, f"{v / 1e9:.1f} GB/s") for n, v in self.copies.items()])
        lines += self._table("Workers", [
            (str(int(w["workers"])), f"{_number(w['rate'])} records/s, first batch after "
             f"{w['start_s']:.2f} s") for w in self.sweep
        ])  # fmt: skip
        known = [(name, value) for name, value in self.host.items() if value is not None]
        lines += self._table("This machine", [(name, _plain(name, v)) for name, v in known])
        lines += [f"Note: {note}" for note in self.notes]
        return "\n".join(lines).rstrip() + "\n"

    def __repr__(self) -> str:
        return str(self)

    def _summary(self) -> list[str]:
        """Five lines that need no knowledge of loaders."""
        return [
            f"{self.verdict.upper()}: {self._sentence()}",
            self._waiting(),
            self._cause(),
            self._advice(),
            self._certainty(),
        ]

    def _sentence(self) -> str:
        if self.verdict in _SENTENCES:
            return _SENTENCES[self.verdict]
        who = "A loop that did nothing else" if self.stall_share is None else "Your loop"
        waits = "would wait" if self.stall_share is None else "waits"
        return f"{who} {waits} for data: {_LIMITS[self.verdict]}."

    def _waiting(self) -> str:
        real, ceiling = self.rates.get("real"), self.rates.get("ceiling")
        if self.stall_share is None:
            alone = self.rates.get("loader")
            if alone is None:
                return "Nothing could be measured."
            return (
                f"The loader alone gives {_number(alone)} records a second; whether that is enough "
                "cannot be told without a step."
            )
        text = f"The loop waits for data {self.stall_share:.0%} of its time"
        if real:
            text += f" and takes {_number(real)} records a second"
        return text + (f"; the step alone could take {_number(ceiling)}." if ceiling else ".")

    def _cause(self) -> str:
        detail = self.detail
        if detail is None:
            return "What limits it is not known."
        if self.verdict == "consumer" or self.verdict == "fed":
            if not math.isfinite(detail.margin):
                return "The input is never the limit."
            text = (
                f"The loader alone could deliver {1 + detail.margin:.1f} times what the step takes"
            )
            if self.stall_share is not None and self.stall_share > FED_SHARE:
                text += "; what it waits is for cores that both use, or when an epoch begins"
            return text + "."
        if self.verdict == "unsure":
            likely = f"; it looks like {detail.likely} ({detail.cause})" if detail.likely else ""
            return f"What limits it cannot be told apart from the noise{likely}."
        text = f"The limit is {detail.cause}"
        if math.isfinite(detail.margin):
            text += f"; without it the next limit comes at {1 + detail.margin:.1f} times the rate"
        return text + "."

    def _advice(self) -> str:
        there, alone = self.resources.get("device", 0.0), self.rates.get("ceiling", 0.0)
        if self.verdict in ("fed", "consumer") and there < _SLOWED * alone:
            return (
                f"In the loop the step is slower ({_number(there)} records a second, alone "
                f"{_number(alone)}): it shares the cores, so less work for the loader would help."
            )
        if self.verdict in ("fed", "consumer"):
            return "Nothing about the data needs to change; a faster loader would gain nothing."
        if not self.predictions:
            return "No remedy that was tried promises a gain."
        best = self.predictions[0]
        return (
            f"First to try: {best.name} ({best.what}), for {_number(best.low)} to "
            f"{_number(best.high)} records a second."
        )

    def _certainty(self) -> str:
        if self.interrupted:
            return "Interrupted: this is what had been measured until then."
        if self.detail is None:
            return "Nothing supports a verdict."
        return (
            f"Repeated measurements differ by {self.detail.noise:.0%}; it took "
            f"{self.seconds:.0f} seconds."
        )

    def _rate_lines(self) -> list[tuple[str, str]]:
        names = {
            "ceiling": "step alone, one batch",
            "cached": "step, batches from memory",
            "loader": "loader alone",
            "real": "both, as trained",
            "cold": "both, files not in memory",
            "one_thread": "loader, one thread",
            "headrace": "Headrace in its place, alone",
        }
        return [(text, _number(self.rates[n])) for n, text in names.items() if n in self.rates]

    def _stage_lines(self) -> list[tuple[str, str]]:
        if self.case is None:
            return []
        total = sum(stage.seconds for stage in self.case.stages) or 1.0
        return [
            (stage.name, f"{_time(stage.seconds)}  {stage.seconds / total:4.0%}  "
             f"({', '.join(stage.resources)})")
            for stage in self.case.stages
        ]  # fmt: skip

    def _spread_lines(self) -> list[tuple[str, str]]:
        found = []
        for name, spread in (("wait", self.waits), ("step", self.steps)):
            if spread is not None and spread.mean > 0:
                text = ", ".join(
                    f"{key} {_time(getattr(spread, key))}" for key in ("mean", "p50", "p95", "p99")
                )
                found.append((f"{name} for a batch", text))
        if self.start_seconds is not None:
            found.append(("first batch", f"after {_time(self.start_seconds)}"))
        return found

    def _table(self, title: str, rows: list[tuple[str, str]]) -> list[str]:
        if not rows:
            return []
        width = max(len(name) for name, _ in rows)
        return [title, *(f"  {name:{width}}  {text}" for name, text in rows), ""]


def _number(value: float) -> str:
    if not math.isfinite(value):
        return "any number of"
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def _time(seconds: float) -> str:
    if abs(seconds) >= 1:
        return f"{seconds:.2f} s"
    return f"{1e3 * seconds:.2f} ms" if abs(seconds) >= 1e-3 else f"{1e6 * seconds:.0f} µs"


def _plain(name: str, value: Any) -> str:
    if "bytes" in name and isinstance(value, (int, float)):
        return f"{value / 1e9:.2f} GB" if value >= 1e8 else f"{value / 1e3:,.1f} kB"
    if isinstance(value, dict):
        return ", ".join(f"{_number(v)} at depth {k}" for k, v in value.items())
    return f"{value:,.3g}" if isinstance(value, float) else str(value)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
