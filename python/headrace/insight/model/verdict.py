# SPDX-License-Identifier: Apache-2.0
"""Judges from the numbers what limits the loop, in one word, by how much, and whether that is
certain.

>>> from headrace.insight.model.case import Case, Stage
>>> case = Case((Stage("decode", "decode", 0.01),), workers=2, cores=2, step_seconds=0.001)
>>> judge(case, [Window(rate=199, stall=0.8), Window(rate=201, stall=0.8)]).word
'decode'
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Sequence

from headrace.insight.measure.loop import Window
from headrace.insight.model.case import RESOURCES, Case, Stage, consumer_rate, input_rate, sustained

FED_SHARE = 0.05  # a loop that waits less than this fraction of its time is fed
HICCUPS = 0.20  # if the input is ample, waits below this fraction do not come from it
AMPLE = 2.0  # an input that is this many times faster: the consumer is clearly the limit
NEARLY = 1.10  # rates closer than this are not distinguished
CROWDED = 0.15  # fraction of the requested core time; if others used more, nothing is certain
FEW = 6  # batches; a loader that works ahead may have made them before the measurement

WORDS = (
    "fed",
    "storage",
    "small-files",
    "decode",
    "operator",
    "python",
    "workers",
    "collate",
    "copy",
    "consumer",
    "rank",
    "memory",
    "unsure",
)
NOT_INPUT_BOUND = ("fed", "consumer", "unsure")


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What limits the loop. ``margin``: by how much the next limit is higher, 0.5 for 50 %;
    infinite if there is none. ``noise``: how much the windows disagree.
    """

    word: str
    cause: str  # the stage or resource by its name
    margin: float
    noise: float
    likely: str = ""  # if unsure: what the numbers suggest
    reason: str = ""  # if unsure: why, unless windows just disagree


def judge(
    case: Case,
    windows: Sequence[Window],
    copy_noise: float = 0.0,
    contention: float = 0.0,
    batches: float = math.inf,
) -> Verdict:
    """The verdict on a case whose loop was measured in ``windows``; a single window proves nothing.
    copy_noise: how much the measurements of the copies disagree. contention: the fraction of the
    requested core time that other programs took. batches: number of batches in all windows.
    """
    found = _by_numbers(case, windows, copy_noise)
    likely = found.likely or ("" if found.word == "unsure" else found.word)
    reason = ""
    if contention > CROWDED:
        reason = f"other programs took {contention:.0%} of the core time that this one needed"
    elif case.overlapped and batches < FEW and likely not in ("fed", "consumer"):
        reason = (
            f"only {batches:g} batches were received, and may have been prepared earlier; more "
            "seconds= or smaller batches help"
        )
    if not reason:
        return found
    return dataclasses.replace(found, word="unsure", likely=likely, reason=reason)


def _by_numbers(case: Case, windows: Sequence[Window], copy_noise: float) -> Verdict:
    noise = disagreement([window.rate for window in windows])
    if len(windows) < 2:
        return Verdict("unsure", "", 0.0, noise)  # the spread is unknown
    stalls = [window.stall for window in windows]
    stall = statistics.median(stalls)
    if case.step_seconds > 0 and stall <= FED_SHARE:
        ratio = input_rate(case) / consumer_rate(case)
        word = "consumer" if ratio >= AMPLE else "fed"
        torn = max(stalls) - FED_SHARE  # a window in which the loop waited
        if torn > FED_SHARE:
            return Verdict("unsure", "the step", torn, noise, likely=word)
        return Verdict(word, "the step", ratio - 1, noise)
    word, cause, margin = _limit_of(case)
    noise = max(noise, copy_noise) if word == "copy" else noise
    ratio = input_rate(case) / consumer_rate(case)
    if case.step_seconds > 0 and word == "unsure" and ratio >= AMPLE and stall <= HICCUPS:
        # Waits at the start of epochs, or for cores that the loader shares with the step.
        return Verdict("consumer", "the step", ratio - 1, noise)
    if case.step_seconds > 0 and min(stalls) <= FED_SHARE and stall < 2 * FED_SHARE:
        return Verdict("unsure", cause, margin, noise, likely=word)
    if word == "unsure" or noise > margin:
        return Verdict("unsure", cause, margin, noise, likely="" if word == "unsure" else word)
    return Verdict(word, cause, margin, noise)


@dataclasses.dataclass(frozen=True)
class RankTimes:
    """The times of one rank's loop, window by window."""

    rank: int
    windows: tuple[Window, ...]
    alone: float  # seconds per record of its loader alone; 0 if unknown

    @property
    def waits(self) -> list[float]:
        """Seconds waited per record."""
        return [window.stall / window.rate for window in self.windows if window.rate > 0]

    @property
    def seconds(self) -> float:
        """Total seconds per record: the median of the windows."""
        return statistics.median(1 / window.rate for window in self.windows if window.rate > 0)


def judge_ranks(ranks: Sequence[RankTimes]) -> Verdict | None:
    """The verdict "rank" if one rank's data delays all others; otherwise None.

    Ranks that step together take the same time for a step, whichever is late: the others wait for
    the gradients in their step. So the indicator is the time that a rank waits for its data. If all
    of them wait, the slowest is so by chance, and fixing it would not help.

    >>> slow, quick = Window(100, 0.8), Window(100, 0.1)
    >>> both = [RankTimes(0, (quick, quick), 0.002), RankTimes(1, (slow, slow), 0.008)]
    >>> judge_ranks(both).cause
    'the data of rank 1'
    """
    known = [rank for rank in ranks if len(rank.waits) >= 2 and rank.alone > 0]
    if len(known) < 2 or len(known) < len(ranks):
        return None
    known.sort(key=lambda rank: statistics.median(rank.waits))
    last, rest = known[-1], known[:-1]
    next_waits = statistics.median(rest[-1].waits)
    late = statistics.median(last.waits) - next_waits
    seconds = max(rank.seconds for rank in known)
    without = max(seconds - late, *(rank.alone for rank in rest))
    margin = seconds / without - 1
    if margin <= NEARLY - 1 or min(last.waits) <= max(max(rank.waits) for rank in rest):
        return None
    noise = disagreement([window.rate for window in last.windows])
    return Verdict("rank", f"the data of rank {last.rank}", margin, noise)


def disagreement(values: Sequence[float]) -> float:
    """The relative deviation of repeated measurements from their median; 0 for a single one."""
    middle = statistics.median(values) if values else 0.0
    return (max(values) - min(values)) / middle if middle > 0 else 0.0


def _limit_of(case: Case) -> tuple[str, str, float]:
    """Verdict, cause and margin of the slowest resource before the consumer."""
    rates = sustained(case)
    hard: dict[str, float] = {}
    for name in RESOURCES:
        if name in rates:
            hard[name] = rates[name]
    if case.copy_seconds > FED_SHARE * (case.copy_seconds + case.step_seconds):
        hard["copy"] = 1 / case.copy_seconds if case.copy_overlapped else consumer_rate(case)
    if not hard:
        return "unsure", "", 0.0
    # Workers wait for the resources they use, so their number is the limit only if all other
    # resources have room, that is, if more workers would help.
    others = min(hard.values())
    if not case.overlapped:
        # Nothing is made ahead. With one more worker the input would overlap with the step.
        ahead = min(others, consumer_rate(case))
        alone = 1 / (1 / rates["workers"] + 1 / consumer_rate(case))
        if ahead > NEARLY * alone:
            return "workers", "the number of workers", ahead / alone - 1
    elif rates.get("workers", math.inf) * NEARLY < others:
        return "workers", "the number of workers", others / rates["workers"] - 1
    least, second, *_ = [*sorted(hard, key=lambda name: hard[name]), ""]
    margin = hard[second] / hard[least] - 1 if second else math.inf
    if case.step_seconds > 0 and least != "copy":
        reach = consumer_rate(case) / hard[least] - 1
        if reach <= 0:
            return "unsure", "", 0.0  # it stalls, although everything could keep up
        margin = min(margin, reach)
    if least == "copy":
        return "copy", "the copy to the device", margin
    if least == "memory":
        return "memory", "the memory limit", margin
    if least == "disk":
        return "small-files" if case.small_files else "storage", "reading", margin
    word, cause, lead = _heaviest(case, least)
    return word, cause, min(margin, lead)


def _heaviest(case: Case, resource: str) -> tuple[str, str, float]:
    """The stage that uses most of a resource, and by how much it exceeds the next stage."""
    users: list[Stage] = [stage for stage in case.stages if resource in stage.resources]
    users.sort(key=lambda stage: -stage.seconds)
    lead = math.inf
    for other in users[1:]:
        if other.kind != users[0].kind and other.seconds > 0:
            lead = users[0].seconds / other.seconds - 1
            break
    return users[0].kind, users[0].name, lead
