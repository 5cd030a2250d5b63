# SPDX-License-Identifier: Apache-2.0
"""Counters of a loader and of its copies to devices, as the engine's tables declare them.

``stats()`` has the values; this module knows which of them only grow, their units, and how those of
several ranks or devices are combined.

>>> added([{"bytes": 3, "batches": 2}, {"bytes": 4, "batches": 2}], COPIES)
{'batches': 2, 'bytes': 7}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from headrace import _core

Table = Mapping[str, Mapping[str, Any]]  # by the name in stats(); "stages.read" in "stages"

LOADER: Table = {entry["name"]: entry for entry in _core.loader_counters()}
COPIES: Table = {entry["name"]: entry for entry in _core.prefetch_counters()}
STAGES = tuple(name.removeprefix("stages.") for name in LOADER if name.startswith("stages."))
# A thread's work in a stage: "reading"; without the loop's stage, which only waits.
WORK = {stage: LOADER[f"stages.{stage}"]["work"] for stage in STAGES if stage != "wait"}


def number(stats: Mapping[str, Any], name: str) -> float | None:
    """A counter's value; None if ``stats()`` does not have it."""
    value: Any = stats
    for part in name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number else None


def counted_up(stats: Mapping[str, Any]) -> dict[str, float]:
    """The counters that only grow, of a loader or of copies, by dotted name."""
    growing = [name for name, entry in {**LOADER, **COPIES}.items() if entry["grows"]]
    found = {name: number(stats, name) for name in growing}
    return {name: value for name, value in found.items() if value is not None}


def added(all_stats: Iterable[Mapping[str, Any]], table: Table) -> dict[str, Any]:
    """Combines the counters of several processes: the sum, or the maximum, as declared."""
    kept = list(all_stats)
    out = {}
    for name, entry in table.items():
        values = [stats[name] for stats in kept if name in stats]
        if values and not isinstance(values[0], (str, Mapping)):
            out[name] = sum(values) if entry["adds"] == "sum" else max(values)
    return out


def page_table(table: Table = LOADER) -> str:
    """The table of docs/guide/looking.md."""
    added_up = {"sum": "added", "most": "the largest"}
    rows = (
        f"| `{name}` | {entry['unit']} | {added_up[entry['adds']] if entry['unit'] else ''} | "
        f"{entry['doc']} |"
        for name, entry in table.items()
    )
    head = ("| counter | unit | of several ranks | |", "|---|---|---|---|")
    return "\n".join([*head, *rows])
