# SPDX-License-Identifier: Apache-2.0
"""Compares records of both pipelines, with randomness removed from both. Integers must be equal.
Floating-point numbers may differ by some units in the last place: torchvision's ToTensor divides by
255, and ToDtype multiplies by the inverse.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from headrace.errors import Error, declare
from headrace.loader import Loader
from headrace.loader.form import cast
from headrace.migrate.costs import note_costs
from headrace.migrate.known_dataset import Dataset
from headrace.migrate.originals import value_crossing
from headrace.migrate.pipeline import Parts
from headrace.migrate.report import CHANGED, Report
from headrace.migrate.spread import spread
from headrace.printable import in_a_line
from headrace.sources import subset

_DIFFERS = declare(
    "HR0835",
    "config",
    "translation gives different values",
    "from_dataloader(check=True) compares records of the dataset with those of the loader, "
    "without random transforms in either. The message names the first record and the transform "
    "after which they differ: for instance an image that Pillow and libjpeg-turbo repair "
    "differently. check=False translates without comparing.",
)

_RECORDS = 32
_STATE = (
    "its records depend on earlier calls: they are not compared, are made in order (threads=1), "
    "and change with the order, with workers or after a resume"
)
# Keywords that determine the data.
_OF_PICTURES = ("damaged", "mode", "sixteen_bit", "page", "strict", "max_pixels")
_UNITS = 8  # in units in the last place of the largest value


def compare(
    dataset: Dataset,
    parts: Parts,
    report: Report,
    keywords: Mapping[str, Any],
) -> None:
    """Raises ConfigError HR0835 if a record differs. keywords: arguments of the loader."""
    if dataset.keeps_state:
        report.add(f"state of {dataset.name}", CHANGED, _STATE)
        return
    picks = spread(len(dataset.source), _RECORDS)
    said = {name: keywords[name] for name in _OF_PICTURES if name in keywords}
    theirs: list[float] = []
    originals = _originals(dataset, picks, parts, report, theirs)
    ours, seconds = _records(dataset, list(originals), parts, said)
    note_costs(dataset, parts, seconds / max(len(ours), 1), theirs)
    casts = parts.casts
    report.differences = dict.fromkeys(dataset.fields, 0.0)
    report.filtered = _filtered(parts)
    for (number, expected), record in zip(originals.items(), ours, strict=True):
        exact = _expected(dataset, number, parts, exact=True) if report.filtered else expected
        for name in dataset.fields:
            delivered = record[name] if name not in casts else cast(record[name], casts[name])
            problem, largest = _difference(delivered, expected[name])
            python = _in_python(dataset, parts)
            if problem and python and not _is_steady(dataset, number, parts, expected):
                report.add(
                    f"record {number}",
                    CHANGED,
                    f"{python} returns different values when called twice: it has state that "
                    "seed= does not reset, so it is not compared",
                )
                report.differences.clear()
                return
            if problem:
                place = ""
                if name in parts.pictures:
                    place = _first_step(dataset, int(number), parts, name, said)
                raise _DIFFERS.error(
                    f"{name} of record {number} {problem}{place}",
                    note=f"the record's key is {dataset.source.key(int(number))}",
                    hint="check=False translates without comparing",
                )
            if name in report.filtered:
                largest = _distance(delivered, exact[name])
            report.differences[name] = max(report.differences[name], largest)
    report.records_checked = len(ours)


def _originals(
    dataset: Dataset, picks: Any, parts: Parts, report: Report, seconds: list[float]
) -> dict[int, dict[str, Any]]:
    """The originals' results for records, and the CPU time of each. Records on which they fail are
    left out and reported."""
    out: dict[int, dict[str, Any]] = {}
    for number in map(int, picks):
        begin = time.thread_time()
        try:
            out[number] = _expected(dataset, number, parts)
            seconds.append(time.thread_time() - begin)
        except Error:
            raise
        except Exception as failure:
            what = f"the original raises {in_a_line(failure)}, and so does ours"
            report.add(f"record {number}", CHANGED, what)
    return out


def _in_python(dataset: Dataset, parts: Parts) -> str:
    """The transforms that run in Python; empty if there are none."""
    steps = [step.names[-1] for step in parts.all if not step.native]
    return dataset.name if dataset.steps else "; ".join(steps)


def _is_steady(dataset: Dataset, number: int, parts: Parts, before: Mapping[str, Any]) -> bool:
    """Whether the originals return the same record again."""
    for _ in range(3):
        again = _expected(dataset, number, parts)
        if any(_difference(again[name], before[name])[0] for name in again):
            return False
    return True


def _filtered(parts: Parts) -> dict[str, str]:
    """Fields that the original resizes with another filter, and the step in which it does."""
    found = {
        name: [each for step in steps if step.exact is not None for each in step.names]
        for name, steps in parts.pictures.items()
    }
    return {
        name: f"because of the original's filter in {_class_of(names[0])}; other steps are equal"
        for name, names in found.items()
        if names
    }


def _class_of(name: str) -> str:
    return name.partition("(")[0]


def _distance(ours: Any, theirs: Any) -> float:
    """The largest difference, of any kind."""
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    if ours.shape != theirs.shape or not ours.size:
        return 0.0
    return float(np.abs(np.subtract(ours, theirs, dtype=np.float64)).max())


def decoded(dataset: Dataset, picks: Any) -> list[dict[str, Any]]:
    """Records of the source, with decoded images."""
    of_source = {field.name for field in dataset.source.schema}
    fields = tuple(name for name in dataset.fields if name in of_source)
    return _records(dataset, picks, Parts({}), {}, fields)[0]


def _records(
    dataset: Dataset,
    picks: Any,
    parts: Parts,
    said: Mapping[str, Any],
    fields: tuple[str, ...] = (),
) -> tuple[list[dict[str, Any]], float]:
    """Our results, and the process's CPU time for them."""
    pipeline = parts.pipeline(dataset, steady=True)
    source = subset(dataset.source, picks)
    options: dict[str, Any] = {"batch_size": 1, "ragged": "list", "shard": False, "index": False}
    options.update({**dataset.options, **said})
    with Loader(source, pipeline, fields=fields or dataset.fields, **options) as loader:
        begin = time.process_time()
        records = [
            {name: _kept(values[0]) for name, values in batch._asdict().items()} for batch in loader
        ]
        return records, time.process_time() - begin


def _kept(value: Any) -> Any:
    """A copy in separate memory: the next calls reuse it."""
    return value.copy() if isinstance(value, np.ndarray) else value


def _expected(dataset: Dataset, number: int, parts: Parts, exact: bool = False) -> dict[str, Any]:
    """exact: with the originals' own filters."""
    values = dataset.raw(number)
    for name, steps in parts.pictures.items():
        for part in steps:
            original = part.exact if exact and part.exact is not None else part.original
            if dataset.together:
                values = original(values)
            else:
                values[name] = original(values[name])
    if parts.label:
        values["label"] = parts.label.original(values["label"])
    return {name: _kept(value_crossing(value)) for name, value in values.items()}


def _difference(ours: Any, theirs: Any) -> tuple[str, float]:
    """A description of the difference, if any, and the largest difference."""
    if isinstance(theirs, (str, bytes)):
        return ("" if ours == theirs else f"is {ours!r}, but the dataset has {theirs!r}"), 0.0
    ours = np.asarray(ours)
    if (ours.dtype, ours.shape) != (theirs.dtype, theirs.shape):
        return (
            f"is {ours.dtype} {ours.shape}, but the dataset has {theirs.dtype} {theirs.shape}"
        ), 0.0
    if not ours.size:
        return "", 0.0
    alike = (ours == theirs) | ((ours != ours) & (theirs != theirs))  # NaN
    apart = np.abs(np.subtract(ours, theirs, dtype=np.float64))
    largest = float(np.where(alike, 0, apart).max())
    allowed = 0.0
    if ours.dtype.kind == "f":
        allowed = _UNITS * float(np.finfo(ours.dtype).eps) * max(1.0, float(np.abs(theirs).max()))
    if largest <= allowed:
        return "", largest
    return f"differs by up to {largest:.4g} (allowed: {allowed:.2g})", largest


def _first_step(
    dataset: Dataset, number: int, parts: Parts, name: str, said: Mapping[str, Any]
) -> str:
    """The first step after which the image differs."""
    steps = parts.pictures[name]
    for count in range(len(steps) + 1):
        some = Parts({**parts.pictures, name: steps[:count]})
        ((ours,), _) = _records(dataset, [number], some, said)
        theirs = _expected(dataset, number, some)
        if _difference(ours[name], theirs[name])[0]:
            return f" after {' + '.join(steps[count - 1].names)}" if count else " when decoded"
    return ""
