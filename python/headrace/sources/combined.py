# SPDX-License-Identifier: Apache-2.0
"""Sources made from several sources. The result is again a source: random access, exact order,
exact resume.

>>> import headrace as hr
>>> a, b = hr.open([("a", 0), ("b", 1)]), hr.open([("c", 2)])
>>> [record["label"] for record in hr.concat(a, b)]
[0, 1, 2]
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from headrace import _core, arguments
from headrace.sources.opening import open
from headrace.sources.recipe import Recipe, makes_sources
from headrace.sources.source import Source, listed_kinds


def concat(*sources: Any) -> Source:
    """Concatenates the records of all sources.

    sources: anything that ``open`` takes, or a list of these; they must have the same fields and
    classes, otherwise ConfigError HR0496 is raised.
    """
    opened = _opened(sources)
    engine = _core.concat([source.engine for source in opened])
    return Source(engine, made_of=opened, recipe=Recipe(concat_of, {"sources": opened}))


@makes_sources
def concat_of(sources: list[Source]) -> Source:
    """``concat(*sources)``."""
    return concat(*sources)


def mix(
    *sources: Any, weights: Sequence[float] | None = None, size: int | None = None, seed: int = 0
) -> Source:
    """Mixes records of several sources in given proportions, evenly spread, even when shuffled.
    sources: anything that ``open`` takes, or a list of these.
    weights: one positive number per source, not necessarily adding up to one; default: equal.
    size: records per epoch; default: as many as needed for every record to occur at least once.
    A source that runs out starts again: all its records are repeated before any occurs a third
    time. If a source is drawn less often than it has records, `seed` decides which of them are in
    the mix. Raises ConfigError HR0496 if the sources differ in fields or classes, HR0497 for
    invalid proportions or a source without records.
    """
    opened = _opened(sources)
    shares = [1.0] * len(opened) if weights is None else arguments.numbers("weights", weights)
    records = 0 if size is None else arguments.integer("size", size, 1)
    mixed = _core.mix([source.engine for source in opened], shares, records, arguments.seed(seed))
    call = {"sources": opened, "weights": shares, "size": size, "seed": seed}
    return Source(mixed, made_of=opened, recipe=Recipe(mix_of, call))


@makes_sources
def mix_of(sources: list[Source], weights: list[float], size: int | None, seed: int) -> Source:
    """``mix(*sources, ...)``."""
    return mix(*sources, weights=weights, size=size, seed=seed)


def _opened(sources: Sequence[Any]) -> list[Source]:
    """The sources, given separately or as a single list, as for torch's ConcatDataset."""
    if len(sources) == 1 and isinstance(sources[0], (list, tuple)) and _are_sources(sources[0]):
        sources = sources[0]
    return [open(source) for source in sources]


def _are_sources(values: Sequence[Any]) -> bool:
    """Whether all values are things to be opened, not records."""
    return all(
        isinstance(value, (str, os.PathLike, Source))
        or (
            hasattr(value, "__len__")
            and hasattr(value, "__getitem__")
            and not isinstance(value, (Mapping, tuple, bytes))
            and not hasattr(value, "dtype")
        )
        for value in values
    )


def kfold(
    src: Any, folds: int = 5, *, seed: int = 0, stratify_by: str = ""
) -> list[tuple[Source, Source]]:
    """Cross-validation: a list with (training source, validation source) for each fold.

    Every record is in one validation source. stratify_by: an integer field (a label) whose values
    have the same proportions in every fold. Raises ConfigError HR0431 if there are fewer than two
    folds, fewer records than folds, or ``stratify_by`` is not an integer field.
    """
    src = open(src)
    number = arguments.integer("folds", folds, maximum=arguments.INT32)
    pairs = _core.kfold(src.engine, number, arguments.seed(seed), stratify_by)
    call = {"src": src, "folds": number, "seed": seed, "stratify_by": stratify_by}

    def part(engine: _core.Source, fold: int, side: int) -> Source:
        recipe = Recipe(part_of_kfold, {**call, "fold": fold, "side": side})
        return Source(engine, made_of=[src], recipe=recipe)

    return [(part(pair[0], fold, 0), part(pair[1], fold, 1)) for fold, pair in enumerate(pairs)]


@makes_sources
def part_of_kfold(
    src: Source, folds: int, seed: int, stratify_by: str, fold: int, side: int
) -> Source:
    """One of the sources returned by ``kfold``."""
    return kfold(src, folds, seed=seed, stratify_by=stratify_by)[fold][side]


@makes_sources
def join(
    left: Any,
    right: Any,
    on: str = "key",
    *,
    rename: Mapping[str, str] | None = None,
    kinds: Mapping[str, str] | None = None,
) -> Source:
    """Joins the matching records of two sources, with the fields of both.

    on: "key" pairs names below the sources' folders, without suffix (``a/1.jpg`` and ``a/1.wav``);
    "position" pairs record i of both, which need the same number of records; otherwise the name of
    an integer field of both. Records without a match are left out; the ``repr`` counts them.
    rename: new names for fields of ``right`` whose names occur in both.
    kinds: kinds of fields (``Source.with_kinds``): images renamed to ``mask`` need ``kinds={"mask":
    "mask"}``; without it, ConfigError HR0182 asks you to decide. Raises ConfigError HR0498 if no
    record matches, a key occurs twice in ``right``, or a field is in both.
    """
    left, right = open(left), open(right)
    names = dict(rename or {})
    joined = _core.join(left.engine, right.engine, on, names, listed_kinds(kinds))
    call = {"left": left, "right": right, "on": on, "rename": names, "kinds": dict(kinds or {})}
    return Source(joined, made_of=[left, right], recipe=Recipe(join, call))
