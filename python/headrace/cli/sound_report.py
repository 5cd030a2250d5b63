# SPDX-License-Identifier: Apache-2.0
"""Metadata of a source's audio clips, for commands that describe a dataset."""

from __future__ import annotations

from typing import Any

import numpy as np


def fields_of(source: Any) -> list[str]:
    """The names of fields that hold encoded audio clips."""
    return [field.name for field in source.schema if field.kind == "audio" and field.encoded]


def forms_of(source: Any, field: str, most: int | None = None) -> Any:
    """(records, 3): frames, sample rate and channels of ``most`` evenly spaced records."""
    import headrace

    if most is not None and len(source) > most:
        source = headrace.subset(source, np.linspace(0, len(source) - 1, most).astype(int))
    return np.array(source.engine.sound_forms(field, None)).reshape(-1, 3)


def describe(source: Any, most: int | None = None) -> list[dict[str, Any]]:
    """For each audio field: rates and channels with their numbers of records, and lengths in
    seconds. With ``most``, those of that many records, with ``hours`` extrapolated to all.
    """
    return [
        _description(name, forms_of(source, name, most), len(source)) for name in fields_of(source)
    ]


def _description(name: str, forms: Any, records: int) -> dict[str, Any]:
    good = forms[forms[:, 0] >= 0]
    seconds = good[:, 0] / np.maximum(good[:, 1], 1)
    facts: dict[str, Any] = {
        "field": name,
        "inspected": len(forms),
        "bad": len(forms) - len(good),
        "sample_rates": _counts(good[:, 1]),
        "channels": _counts(good[:, 2]),
    }
    if len(good):
        lengths = {"min": seconds.min(), "mean": seconds.mean(), "max": seconds.max()}
        facts["seconds"] = {key: round(float(value), 3) for key, value in lengths.items()}
        facts["hours"] = round(float(seconds.sum()) / 3600 * records / len(forms), 4)
    return facts


def _counts(values: Any) -> dict[str, int]:
    numbers, counts = np.unique(values, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return {str(int(numbers[i])): int(counts[i]) for i in order}


def lines(facts: dict[str, Any], records: int) -> list[str]:
    """Readable lines: lengths and hours, then rates and channels."""
    out = []
    if "seconds" in facts:
        low, mean, high = (facts["seconds"][key] for key in ("min", "mean", "max"))
        hours = f"{facts['hours']:,.2f} hours"
        if facts["inspected"] < records:
            hours = f"about {hours} (from {facts['inspected']:,} of {records:,} headers)"
        out.append(f"{low:,.2f} to {high:,.2f} seconds, {mean:,.2f} on average; {hours}")
    out.append(f"{_spread(facts['sample_rates'])} Hz; channels: {_spread(facts['channels'])}")
    return out


def _spread(counts: dict[str, int]) -> str:
    """ "16,000 (5,000 records), 44,100 (12)"; a single value without its count."""
    if len(counts) == 1:
        return f"{int(next(iter(counts))):,}"
    shown = [f"{int(number):,} ({count:,})" for number, count in counts.items()]
    return ", ".join(shown[:4]) + (", …" if len(shown) > 4 else "")
