# SPDX-License-Identifier: Apache-2.0
"""Adapters for the trainers of other libraries: one module each, which imports its trainer (``from
headrace.trainers import huggingface``, or ``hr.trainers.huggingface``). Headrace itself does not
import them. docs/guide/trainers.md describes each.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from headrace.errors import declare

MISFIT = declare(
    "HR0850",
    "config",
    "loader does not match its trainer",
    "A trainer counts batches, steps and records from its own arguments, and gathers results of "
    "all ranks in equal pieces. If the loader's counts differ, training would silently use wrong "
    "counts, resume at the wrong position, or hang in a collective. The message shows both values: "
    "change the one that is wrong. docs/guide/trainers.md has a section for each trainer.",
)

NO_RECORDS = declare(
    "HR0851",
    "config",
    "Grain dataset without random access",
    "hr.from_grain needs a length and random access: a RandomAccessDataSource, or a MapDataset "
    "that neither repeats indefinitely nor filters. Take the dataset before .filter() and "
    ".repeat(): a loader has epochs, and drops records by subset=.",
)

_TRAINERS = (
    "dcp",
    "grain",
    "huggingface",
    "lightning",
    "rfdetr",
    "timm",
    "torchtitan",
    "ultralytics",
)


def __getattr__(name: str) -> Any:
    """Imports a trainer's module, and the trainer itself, on first use."""
    if name not in _TRAINERS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")


def __dir__() -> list[str]:
    return [*_TRAINERS, *(name for name in globals() if name.startswith("__"))]
