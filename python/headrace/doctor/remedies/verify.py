# SPDX-License-Identifier: Apache-2.0
"""A remedy applied for real: the loop as it is and with the remedy in turns, beside what had been
predicted. The user's files and loader stay as they are; what is made lies in a temporary folder.
"""

from __future__ import annotations

import dataclasses
import statistics
from typing import Any

from headrace.delivered import Delivered
from headrace.doctor.conclusion import case_of
from headrace.doctor.findings import Findings
from headrace.doctor.remedies import applying
from headrace.doctor.remedies.applying import CannotBe, Tell
from headrace.doctor.remedies.prediction import Prediction, predict
from headrace.doctor.timing.loop import time_loop
from headrace.errors import declare, did_you_mean
from headrace.loader import Loader

NO_SUCH_REMEDY = declare(
    "HR0926",
    "config",
    "no such remedy",
    "verify= names a remedy of the doctor: True for the first of its list, or a word such as "
    "threads, pack, index, uint8, resident, cache, block shuffle, prefetch, Headrace, "
    "'without NAME'.",
)
_WORDS = {  # what people call a remedy, and what its name begins or ends with
    "threads": "workers",
    "workers": "workers",
    "pack": "pack",
    "index": "index",
    "uint8": "uint8",
    "resident": "resident",
    "cache": "cache in memory",
    "block shuffle": "block shuffle",
    "resize once": "resize once",
    "prefetch": "prefetch",
    "pinned": "pinned copies",
    "memory": "memory",
    "headrace": "Headrace instead",
}
_ROUNDS = 4
_NOT_TRIED = "nothing is predicted of it: it does not apply, or seconds= left no time to try it"


@dataclasses.dataclass(frozen=True)
class Verified:
    """What a remedy was to give and what it gave. Rates in records a second.

    reason: why nothing was measured; then ``before`` and ``after`` are 0. measured: the rate that
    the prediction was made beside. records: of how many the loops were, if not of all: ``whole``.
    """

    name: str
    low: float = 0.0
    high: float = 0.0
    measured: float = 0.0
    before: float = 0.0
    after: float = 0.0
    records: int = 0
    whole: int = 0
    disk_bytes: int = 0
    reason: str = ""

    @property
    def predicted_gain(self) -> float:
        """The middle of the range, as a ratio of rates: 1.5 for half as fast again."""
        return (self.low + self.high) / 2 / self.measured if self.measured else 0.0

    @property
    def found_gain(self) -> float:
        return self.after / self.before if self.before else 0.0

    @property
    def error(self) -> float:
        """By what share the predicted gain is larger than the one that was found."""
        return self.predicted_gain / self.found_gain - 1 if self.found_gain else 0.0

    @property
    def inside(self) -> bool:
        """Whether the gain that was found lies in the range that was predicted."""
        return self.low <= self.found_gain * self.measured <= self.high

    def json(self) -> dict[str, Any]:
        """Plain values, for the report's."""
        if self.reason:
            return {"name": self.name, "applied": False, "reason": self.reason}
        return {
            "name": self.name,
            "applied": True,
            "predicted_low": self.low,
            "predicted_high": self.high,
            "predicted_gain": self.predicted_gain,
            "rate_before": self.before,
            "rate_after": self.after,
            "found_gain": self.found_gain,
            "error": self.error,
            "inside": self.inside,
            "records": self.records,
            "records_of_all": self.whole,
            "disk_bytes": self.disk_bytes,
        }


def check(name: bool | str) -> None:
    """Raises for what no remedy is called, before anything is measured."""
    if isinstance(name, bool) or name == "first" or name.startswith("without "):
        return
    if _sought(name) not in _WORDS.values() and not name.endswith("workers"):
        raise NO_SUCH_REMEDY.error(repr(name), hint=did_you_mean(name, _WORDS))


def verify(
    found: Findings, name: bool | str, seconds: float, tell: Tell = lambda name, number: None
) -> Verified:
    """Runs the loop with the remedy of this name, True for the first that was offered.

    Takes about ``seconds`` beyond what the remedy takes to prepare, at most two minutes.
    """
    prediction, asked, measured = _prediction(found, name)
    if prediction is None:
        return Verified(asked, reason=_NOT_TRIED)
    made = Verified(prediction.name, prediction.low, prediction.high, measured)
    turn = seconds / (2 * _ROUNDS)
    try:
        with applying.applied(found, prediction.name, tell) as made_so:
            rates = _in_turns(made_so.before, made_so.after, found.step, turn)
    except CannotBe as refusal:
        return dataclasses.replace(made, reason=str(refusal))
    return dataclasses.replace(
        made,
        before=rates[0],
        after=rates[1],
        records=made_so.records,
        whole=made_so.whole,
        disk_bytes=made_so.disk_bytes,
    )


def lines(made: Verified) -> list[tuple[str, ...]]:
    """For the report's text: name and sentence."""
    if made.reason:
        return [(made.name, f"not applied: {made.reason}")]
    where = "inside" if made.inside else "outside"
    found = [
        ("predicted", f"{made.predicted_gain:.2f}x ({made.low / made.measured:.2f} to "
         f"{made.high / made.measured:.2f}), {made.low:,.0f} to {made.high:,.0f} records/s"),
        ("found", f"{made.found_gain:.2f}x, {made.after:,.0f} records/s, and {made.before:,.0f} "
         f"without it: {where} the range, the gain is off by {made.error:+.0%}"),
    ]  # fmt: skip
    if made.records < made.whole:
        found.append(("over", f"{made.records:,} of {made.whole:,} records"))
    if made.disk_bytes:
        found.append(("wrote", f"{made.disk_bytes / 1e6:,.1f} MB, which are removed again"))
    return [("remedy", made.name), *found]


def _sought(name: str) -> str:
    return _WORDS.get(name.lower(), name)


def _prediction(found: Findings, name: bool | str) -> tuple[Prediction | None, str, float]:
    """Of the remedy that is asked for, worth it or not; what it is called; the loop's rate."""
    timed, case = found.real or found.alone, case_of(found)
    if timed is None or case is None:
        return None, str(name), 0.0
    if isinstance(name, bool) or name == "first":
        first = found.report.predictions[:1]
        return (first[0] if first else None), "the first remedy", timed.rate
    sought = _sought(name)
    for offer in found.offers:
        if offer.name == sought or offer.name.startswith(sought) or offer.name.endswith(sought):
            return predict(case, offer, timed.rate), offer.name, timed.rate
    return None, name, timed.rate


def _in_turns(before: Any, after: Any, step: Any, turn: float) -> tuple[float, float]:
    """The medians of both loops' rates; each begins as often as the other."""
    rates: dict[int, list[float]] = {0: [], 1: []}
    for number in range(_ROUNDS + 1):  # the first is for caches and memory to fill
        for which in (0, 1) if number % 2 else (1, 0):
            batches = (before, after)[which]
            timed = time_loop(batches, step, turn if number else turn / 4, windows=1)
            _end(batches)
            if timed.failure or not timed.windows:
                loop = "with it" if which else "as it is"
                raise CannotBe(f"the loop {loop} ended early: {timed.failure}")
            if number:
                rates[which].append(timed.rate)
    return statistics.median(rates[0]), statistics.median(rates[1])


def _end(batches: Any) -> None:
    """Has threads stop, that would go on to fill batches while the other loop is timed."""
    if isinstance(batches, (Loader, Delivered)):
        batches.set_epoch(batches.epoch)
