# SPDX-License-Identifier: Apache-2.0
"""Samplers: which record stands at which position of an epoch.

Every order is a pure function of (seed, epoch, position), so all of them resume exactly and are
split over ranks without overlap.

    >>> import headrace as hr
    >>> hr.sampling.balanced("label")
    balanced('label', draws=None)
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from headrace import _core, arguments
from headrace.errors import declare
from headrace.plain_array import is_masked, plain_array

_NOT_INDICES = declare(
    "HR0150",
    "config",
    "not a sampler",
    "sampler= takes an array of record indices, or an object made by a function of "
    "headrace.sampling. torch's Sampler objects are not taken, because their order cannot be "
    "resumed or split over ranks: give the indices that they yield as a list, or use weighted() "
    "or balanced().",
)


class Records(Protocol):
    """What is ordered: a headrace.Source, of which an order needs no more than this."""

    def __len__(self) -> int: ...
    def column(self, name: str) -> np.ndarray[Any, Any]: ...
    def lengths(self, name: str) -> np.ndarray[Any, Any]: ...
    def durations(self, name: str) -> np.ndarray[Any, Any]: ...


class Sampling:
    """An order, still without its source. Made by the functions of this module."""

    def engine(self, source: Records, shuffle: bool) -> _core.Sampler:
        raise NotImplementedError


@dataclasses.dataclass(frozen=True, repr=False)
class weighted(Sampling):
    """``draws`` records an epoch, drawn with replacement in proportion to ``weights``.

    weights: one number >= 0 a record. draws: default, as many as there are records.
    """

    weights: Any
    draws: int | None = None

    def __post_init__(self) -> None:
        _check_draws(self.draws)

    def __repr__(self) -> str:
        return f"weighted(<{len(self.weights)} weights>, draws={self.draws})"

    def engine(self, source: Records, shuffle: bool) -> _core.Sampler:
        weights = np.array(arguments.numbers("weights", self.weights))
        if weights.shape != (len(source),):
            raise _NOT_INDICES.error(
                f"weights have shape {weights.shape}, the source has {len(source)} records",
                hint="give one weight a record",
            )
        return _core.weighted(weights.tolist(), _draws(self.draws, source))


@dataclasses.dataclass(frozen=True, repr=False)
class balanced(Sampling):
    """Each value of an integer field equally often, then a record of that value.

    draws: default, as many as there are records.
    """

    field: str = "label"
    draws: int | None = None

    def __post_init__(self) -> None:
        _check_draws(self.draws)

    def __repr__(self) -> str:
        return f"balanced({self.field!r}, draws={self.draws})"

    def engine(self, source: Records, shuffle: bool) -> _core.Sampler:
        return _core.balanced(source.column(self.field).tolist(), _draws(self.draws, source))


@dataclasses.dataclass(frozen=True, repr=False)
class buckets(Sampling):
    """Each record once, shuffled, in batches of records that are alike in length.

    ``pool`` batches of a shuffled epoch are sorted by length, cut into batches, and these shuffled
    again: with 100 of them padding takes a twentieth of what it takes of random batches. What is
    left at the end of an epoch is a random rest.

    lengths: one number a record, which need not be whole (seconds), or the name of a field of
    one number, or of a field of sounds, whose headers are read once then (``source.lengths(name)``
    gives them, to be kept).
    batch_size: the loader's, of all ranks together.

    >>> buckets([3, 1, 2], batch_size=2)
    buckets(<3 lengths>, batch_size=2, pool=100)
    """

    lengths: Any
    batch_size: int
    pool: int = 100

    def __post_init__(self) -> None:
        arguments.integer("batch_size", self.batch_size, 1)
        arguments.integer("pool", self.pool, 1)

    def __repr__(self) -> str:
        named = isinstance(self.lengths, str)
        lengths = repr(self.lengths) if named else f"<{len(self.lengths)} lengths>"
        return f"buckets({lengths}, batch_size={self.batch_size}, pool={self.pool})"

    def engine(self, source: Records, shuffle: bool) -> _core.Sampler:
        named = isinstance(self.lengths, str)
        lengths, _ = _in_parts(source.lengths(self.lengths) if named else self.lengths, source)
        return _core.buckets(lengths, self.batch_size, self.pool)


@dataclasses.dataclass(frozen=True, repr=False)
class budget(Sampling):
    """Each record once, shuffled, in batches of as many as ``total`` holds, alike in length.

    What counts is what a batch takes: its records, each as long as its longest. Records are sorted
    into some ``num_buckets`` of like total length, and an epoch shuffles each; how many records
    batch k has is the same in every epoch, so every epoch has as many batches, on all ranks. The
    loader is given no batch_size.

    lengths: one number a record, which need not be whole (seconds), or the name of a field of
    one number, or of a field of sounds, whose headers are read once then.
    total: of all ranks together, in the unit of the lengths; of a field of sounds in seconds.

    ConfigError HR0725 where one record alone is longer than ``total``.

    >>> budget([3, 1, 2], total=4)
    budget(<3 lengths>, total=4, num_buckets=30)
    """

    lengths: Any
    total: float
    num_buckets: int = 30

    def __post_init__(self) -> None:
        number = isinstance(self.total, (int, float, np.number))
        if isinstance(self.total, bool) or not number or not 0 < self.total < math.inf:
            raise _NOT_INDICES.error(f"total must be a positive number (got {self.total!r})")
        arguments.integer("num_buckets", self.num_buckets, 1)

    def __repr__(self) -> str:
        named = isinstance(self.lengths, str)
        lengths = repr(self.lengths) if named else f"<{len(self.lengths)} lengths>"
        return f"budget({lengths}, total={self.total}, num_buckets={self.num_buckets})"

    def engine(self, source: Records, shuffle: bool) -> _core.Sampler:
        if isinstance(self.lengths, str):
            seconds = source.durations(self.lengths)  # of anything but sounds its numbers
            lengths, parts = _in_parts(seconds, source)
        else:
            lengths, parts = _in_parts(self.lengths, source)
        total = min(max(1, int(self.total * parts)), arguments.INT64)
        return _core.within_budget(lengths, total, self.num_buckets, parts)


_MICROSECONDS = 1_000_000  # parts of a unit, of lengths that are no integers


def _in_parts(lengths: Any, source: Records) -> tuple[list[int], int]:
    """Lengths as integers, rounded up, and how many of these are one of their units."""
    array = _array_of("lengths", lengths)
    if array is None or array.shape != (len(source),) or array.dtype.kind not in "iuf":
        given = type(lengths).__name__ if array is None else f"{array.dtype} of shape {array.shape}"
        raise _NOT_INDICES.error(
            f"lengths are {given}, the source has {len(source)} records",
            hint="give one number a record",
        )
    if array.dtype.kind != "f":
        whole: list[int] = array.astype(np.int64).tolist()
        return whole, 1
    seconds = array.astype(np.float64)
    if not (np.isfinite(seconds) & (np.abs(seconds) < 1e12)).all():
        raise _NOT_INDICES.error("lengths must be finite numbers")
    parts: list[int] = np.ceil(seconds * _MICROSECONDS).astype(np.int64).tolist()
    return parts, _MICROSECONDS


def _array_of(what: str, given: Any) -> np.ndarray[Any, Any] | None:
    """What is given as an array; None where it is none. ConfigError where values are masked."""
    try:
        return plain_array(given)
    except (TypeError, ValueError) as failure:
        if is_masked(given):
            raise _NOT_INDICES.error(f"{what}: {failure}") from None
        return None


@dataclasses.dataclass(frozen=True, repr=False)
class indices(Sampling):
    """These records each epoch, in this order, or shuffled with the loader's ``shuffle=True``."""

    array: Sequence[int] | np.ndarray[Any, Any]

    def __repr__(self) -> str:
        return f"indices(<{len(self.array)}>)"

    def engine(self, source: Records, shuffle: bool) -> _core.Sampler:
        array = as_indices(self.array, len(source))
        return _core.from_indices(array.tolist(), shuffle)


def _check_draws(draws: Any) -> None:
    if draws is not None:
        arguments.integer("draws", draws, 1)


def _draws(draws: Any, source: Records) -> int:
    return len(source) if draws is None else arguments.integer("draws", draws, 1)


def as_indices(given: Any, records: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Record indices as int64, negative ones counted from the end; checks that they are inside."""
    array = _array_of("record indices", given)
    if array is None or array.ndim != 1 or not (array.dtype.kind in "iu" or array.size == 0):
        raise _NOT_INDICES.error(
            f"expected a one-dimensional array of record indices, got {type(given).__name__}",
            hint="hr.sampling.weighted(...), hr.sampling.balanced('label'), or a list of integers",
        )
    outside = np.flatnonzero((array < -records) | (array >= records))  # before 2**64 - 1 is -1
    if outside.size:
        raise _NOT_INDICES.error(
            f"index {int(array[outside[0]])} at position {int(outside[0])} is outside "
            f"the {records} records of the source"
        )
    array = array.astype(np.int64)
    return np.where(array < 0, array + records, array)


def engine_sampler(
    sampler: Any, source: Records, shuffle: bool
) -> tuple[_core.Sampler | None, bool]:
    """What ``sampler=`` means (None: the loader's own order), and what is left of ``shuffle``."""
    if sampler is None:
        return None, shuffle
    if not isinstance(sampler, Sampling):
        sampler = indices(sampler)
    return sampler.engine(source, shuffle), shuffle and not isinstance(sampler, indices)
