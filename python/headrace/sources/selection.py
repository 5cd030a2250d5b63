# SPDX-License-Identifier: Apache-2.0
"""Selects some of a source's records, by number or at random. Each part is again a source.

>>> import headrace as hr
>>> src = hr.open([("a", 0), ("b", 1), ("c", 2), ("d", 3)])
>>> [len(part) for part in hr.split(src, 0.75, 0.25)], hr.subset(src, [3, -1])[0]["label"]
([3, 1], 3)
"""

from __future__ import annotations

from typing import Any

from headrace import _core, arguments
from headrace.sampling import as_indices
from headrace.sources.opening import open
from headrace.sources.recipe import Recipe, makes_sources
from headrace.sources.source import Source


@makes_sources
def subset(src: Any, indices: Any) -> Source:
    """Selects records of a source by number, in this order; a number may be repeated."""
    src = open(src)
    chosen = as_indices(indices, len(src))
    engine = _core.subset(src.engine, chosen)
    return Source(engine, made_of=[src], recipe=Recipe(subset, {"src": src, "indices": chosen}))


def split(src: Any, *fractions: float, seed: int = 0, stratify_by: str = "") -> list[Source]:
    """Divides a source at random into sources that share no record: ``train, val = hr.split(src,
    0.9, 0.1)``.

    fractions: fractions of the whole; if they add up to less than 1, the remaining records are
    dropped.
    stratify_by: an integer field (a label) whose values have the same proportions in every part.
    """
    src = open(src)
    parts_of = arguments.numbers("fractions", fractions)
    parts = _core.split(src.engine, parts_of, arguments.seed(seed), stratify_by)
    call = {"src": src, "fractions": parts_of, "seed": seed, "stratify_by": stratify_by}
    return [
        Source(part, made_of=[src], recipe=Recipe(part_of_split, {**call, "part": number}))
        for number, part in enumerate(parts)
    ]


@makes_sources
def part_of_split(
    src: Source, fractions: list[float], seed: int, stratify_by: str, part: int
) -> Source:
    """One of the sources returned by ``split``."""
    return split(src, *fractions, seed=seed, stratify_by=stratify_by)[part]
