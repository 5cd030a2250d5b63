# SPDX-License-Identifier: Apache-2.0
"""The text that Prometheus reads: exposition format 0.0.4, as its documentation specifies it.

>>> print(render([Family("up", "gauge", "Whether it is up.", [Sample({"a": 'b"c'}, 1)])]), end="")
# HELP up Whether it is up.
# TYPE up gauge
up{a="b\\"c"} 1
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from headrace.insight.live.histogram import BOUNDS, ROUND

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
# Bounds that Prometheus is told of: 10, 20 and 50 us, and so on to 100 s.
_TOLD = [i for i, bound in enumerate(BOUNDS) if i in ROUND and 1e-5 <= bound <= 100]


class Sample(NamedTuple):
    labels: Mapping[str, str]
    value: float
    suffix: str = ""


class Family(NamedTuple):
    """A metric: its name in base units, its type, what it means, its samples."""

    name: str
    kind: str
    help: str
    samples: Sequence[Sample]


def render(families: Sequence[Family]) -> str:
    lines = []
    for family in families:
        if not family.samples:
            continue
        text = family.help.replace("\\", r"\\").replace("\n", r"\n")
        lines.append(f"# HELP {family.name} {text}")
        lines.append(f"# TYPE {family.name} {family.kind}")
        for labels, value, suffix in family.samples:
            inside = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
            braces = f"{{{inside}}}" if inside else ""
            lines.append(f"{family.name}{suffix}{braces} {_number(value)}")
    return "\n".join(lines) + "\n"


def histogram(
    name: str, text: str, labels: Mapping[str, str], counts: Sequence[int], total: float
) -> Family:
    """Durations of the watch's buckets, in those that Prometheus is told of."""
    samples, so_far, done = [], 0, 0
    for bound in _TOLD:
        so_far += sum(counts[done : bound + 1])
        done = bound + 1
        samples.append(Sample({**labels, "le": _number(BOUNDS[bound])}, so_far, "_bucket"))
    number = so_far + sum(counts[done:])
    samples.append(Sample({**labels, "le": "+Inf"}, number, "_bucket"))
    samples.append(Sample(labels, total, "_sum"))
    samples.append(Sample(labels, number, "_count"))
    return Family(name, "histogram", text, samples)


def _escaped(text: Any) -> str:
    return str(text).replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(value)
