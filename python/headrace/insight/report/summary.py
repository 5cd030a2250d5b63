# SPDX-License-Identifier: Apache-2.0
"""The first five lines of a report, readable without knowledge of loaders."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from headrace.insight.model.verdict import FED_SHARE
from headrace.insight.report.wording import number, percent

if TYPE_CHECKING:
    from headrace.insight.report.results import Results

_SLOWED = 0.8  # a step below this fraction of its rate alone counts as slowed down
_SENTENCES = {
    "fed": "Your training is fed: data is ready when needed.",
    "consumer": "Your training step is the limit, not the data.",
    "unsure": "No verdict: the measurements do not agree on one.",
}
_LIMITS = {
    "storage": "reading it takes longest",
    "small-files": "opening so many small files takes longest",
    "decode": "decoding it takes longest",
    "operator": "one transform takes longest",
    "python": "Python code takes longest",
    "workers": "there are too few workers",
    "collate": "assembling records into a batch takes longest",
    "memory": "its memory limit allows too few records in parallel",
    "copy": "copying it to the device takes longest",
    "rank": "one rank receives its data late, and the others wait for it",
}


_LOOKS_LIKE = {
    "fed": "a loop that is fed",
    "consumer": "the training step",
    "storage": "reading the data",
    "small-files": "opening so many small files",
    "decode": "decoding",
    "operator": "one transform",
    "python": "Python code",
    "workers": "too few workers",
    "collate": "assembling records into a batch",
    "memory": "the loader's memory limit",
    "copy": "the copy to the device",
    "rank": "one slow rank",
}


def lines(report: Results) -> list[str]:
    """The first five lines of the report."""
    return [
        f"{report.verdict.upper()}: {_sentence(report)}",
        _waiting(report),
        _cause(report),
        _advice(report),
        _certainty(report),
    ]


def _sentence(report: Results) -> str:
    if report.verdict == "unsure" and report.detail is None:
        return "No verdict: the loop could not be timed."
    if report.verdict == "unsure" and report.detail is not None and report.detail.reason:
        return f"No verdict: {report.detail.reason}."
    if report.verdict in _SENTENCES:
        return _SENTENCES[report.verdict]
    who = "A loop that did nothing else" if report.stall_share is None else "Your loop"
    waits = "would wait" if report.stall_share is None else "waits"
    return f"{who} {waits} for data: {_LIMITS.get(report.verdict, report.verdict)}."


def _waiting(report: Results) -> str:
    real, ceiling = report.rates.get("real"), report.rates.get("ceiling")
    if report.stall_share is None:
        alone = report.rates.get("loader")
        if alone is None:
            return "Nothing could be measured."
        return (
            f"The loader alone gives {number(alone)} records per second; whether that is "
            "enough is unknown without a step."
        )
    text = f"The loop waits for data {percent(report.stall_share)} of its time"
    if real:
        text += f" and takes {number(real)} records per second"
    return text + (f"; the step alone could take {number(ceiling)}." if ceiling else ".")


def _cause(report: Results) -> str:
    detail = report.detail
    if detail is None:
        return "Its rate limit is unknown."
    if report.verdict == "consumer" or report.verdict == "fed":
        if not math.isfinite(detail.margin):
            return "The data comes so fast that it is never the limit."
        text = (
            f"The loader alone could deliver {1 + detail.margin:.1f} times what the step consumes"
        )
        if report.stall_share is not None and report.stall_share > FED_SHARE:
            text += "; the loop waits for cores that both use, or when an epoch begins"
        return text + "."
    if report.verdict == "unsure":
        told = f"; it may be {_LOOKS_LIKE.get(detail.likely, detail.likely)}"
        told = told if detail.likely else ""
        if detail.likely in ("operator", "python") and detail.cause:
            told += f", {detail.cause}"
        return f"Its limit cannot be distinguished from noise{told}."
    text = f"The limit is {detail.cause}"
    if math.isfinite(detail.margin):
        text += f"; without it, the next limit is at {1 + detail.margin:.1f} times the rate"
    return text + "."


def _advice(report: Results) -> str:
    there, alone = report.resources.get("device", 0.0), report.rates.get("ceiling", 0.0)
    if report.verdict in ("fed", "consumer") and there < _SLOWED * alone:
        return (
            f"In the loop the step is slower ({number(there)} records per second, alone "
            f"{number(alone)}): it shares the cores with the loader, so a cheaper loader would "
            "help."
        )
    if report.verdict in ("fed", "consumer"):
        return "The data needs no change: a faster loader would not help."
    if not report.predictions:
        return "None of the remedies tried is expected to help."
    best = report.predictions[0]
    return (
        f"First to try: {best.name} ({best.what}), for {number(best.low)} to "
        f"{number(best.high)} records per second."
    )


def _certainty(report: Results) -> str:
    if report.interrupted:
        return "Interrupted: these are the measurements so far."
    if report.detail is None:
        return "There were not enough measurements for a verdict."
    return (
        f"Repeated measurements differ by {percent(report.detail.noise)}; the examination took "
        f"{number(report.seconds)} seconds."
    )
