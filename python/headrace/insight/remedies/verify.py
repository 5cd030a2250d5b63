# SPDX-License-Identifier: Apache-2.0
"""Applies a remedy: runs the loop alternately without and with it, and compares the gain with the
prediction. The user's files and loader are unchanged; new files are in a temporary folder.
"""

from __future__ import annotations

import dataclasses
import statistics
from typing import Any

from headrace.errors import declare, did_you_mean
from headrace.insight.examination.conclusion import case_of
from headrace.insight.examination.findings import Findings
from headrace.insight.measure.loop import time_loop
from headrace.insight.model.prediction import Prediction, predict
from headrace.insight.model.verified import Verified
from headrace.insight.remedies import applying
from headrace.insight.remedies.applying import CannotBe, Tell
from headrace.loader import Loader
from headrace.loader.views import Delivered

NO_SUCH_REMEDY = declare(
    "HR0926",
    "config",
    "unknown remedy",
    "verify= selects a remedy of the doctor: True for the first of its list, or a name such as "
    "threads, pack, index, uint8, resident, cache, block shuffle, prefetch, Headrace, 'without "
    "NAME'.",
)
_WORDS = {  # names that select a remedy, by prefix and suffix of its title
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
_NOT_TRIED = "its gain was not predicted: it does not apply, or seconds= was too short to try it"


def check(name: bool | str) -> None:
    """Raises for an unknown remedy, before anything is measured."""
    if isinstance(name, bool) or name == "first" or name.startswith("without "):
        return
    if _sought(name) not in _WORDS.values() and not name.endswith("workers"):
        raise NO_SUCH_REMEDY.error(repr(name), hint=did_you_mean(name, _WORDS))


def verify(
    found: Findings, name: bool | str, seconds: float, tell: Tell = lambda name, number: None
) -> Verified:
    """Runs the loop with the remedy of this name; True: with the first remedy proposed. Takes about
    ``seconds``, plus at most two minutes to prepare the remedy.
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


def _sought(name: str) -> str:
    return _WORDS.get(name.lower(), name)


def _prediction(found: Findings, name: bool | str) -> tuple[Prediction | None, str, float]:
    """The prediction of the requested remedy, recommended or not; its name; the loop's rate."""
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
    """The medians of both loops' rates; the loops alternate in being first."""
    rates: dict[int, list[float]] = {0: [], 1: []}
    for number in range(_ROUNDS + 1):  # the first round warms up caches and memory
        for which in (0, 1) if number % 2 else (1, 0):
            batches = (before, after)[which]
            timed = time_loop(batches, step, turn if number else turn / 4, windows=1)
            _end(batches)
            if timed.failure or not timed.windows:
                loop = "with it" if which else "unchanged"
                raise CannotBe(f"the loop {loop} ended early: {timed.failure}")
            if number:
                rates[which].append(timed.rate)
    return statistics.median(rates[0]), statistics.median(rates[1])


def _end(batches: Any) -> None:
    """Stops threads that would continue to fill batches while the other loop is timed."""
    if isinstance(batches, (Loader, Delivered)):
        batches.set_epoch(batches.epoch)
