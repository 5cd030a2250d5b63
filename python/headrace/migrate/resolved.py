# SPDX-License-Identifier: Apache-2.0
"""Translates a DataLoader's dataset, which is known, traced, or called record by record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.errors import Error
from headrace.migrate import check as comparison
from headrace.migrate import dataset as datasets
from headrace.migrate.known_dataset import Dataset, NoFormat, Told
from headrace.migrate.pipeline import Parts, parts_of
from headrace.migrate.report import Report
from headrace.migrate.traced import traced


def resolved(
    original: Any,
    told: Told,
    trace: bool | float,
    report: Report | None,
    changes: Mapping[str, Any],
) -> tuple[Dataset, Parts]:
    """The dataset and its steps. report: receives the result of comparing records, if they are
    compared. A traced dataset whose records differ stays in Python. Exceptions are recreated as
    reasons: raised ones would keep the frames and loaders of the attempt alive."""

    def look(one: Any, why: str) -> Dataset:
        return traced(one, trace, why)

    dataset = datasets.translate(original, told, look)
    try:
        return dataset, _compared(dataset, report, changes)
    except NoFormat as reason:
        left = reason.again()
    except Error as differs:
        left = _left(dataset, differs)
    if not dataset.is_traced and not dataset.steps:  # known, except for its transform
        try:
            dataset = look(original, str(left))
            return dataset, _compared(dataset, report, changes)
        except NoFormat as reason:
            left = reason.again()
        except Error as differs:
            left = _left(dataset, differs)
    dataset = datasets.asked(original, left, told)
    return dataset, _compared(dataset, report, changes)


def _left(dataset: Dataset, differs: Error) -> NoFormat:
    if not dataset.is_traced or differs.code != "HR0835":
        raise differs
    return NoFormat(f"left unchanged: {str(differs).splitlines()[0]}")


def _compared(dataset: Dataset, report: Report | None, changes: Mapping[str, Any]) -> Parts:
    if changes.get("fields") is not None:
        dataset.narrow(changes["fields"])
    parts = parts_of(dataset)
    if report is not None:
        comparison.compare(dataset, parts, report, changes)
    return parts
