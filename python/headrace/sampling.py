# SPDX-License-Identifier: Apache-2.0
"""Samplers: which record is at which position of an epoch.

Every order is a pure function of (seed, epoch, position), so all of them resume exactly and are
split over ranks without overlap. The classes are made from the engine's registry, to which plug-ins
add theirs, except for ``per_epoch`` and ``per_step``, whose orders are computed in Python.

    >>> import headrace as hr
    >>> hr.sampling.balanced("label")
    balanced('label', num_samples=None)
    >>> hr.sampling.buckets([3, 1, 2], batch_size=2)
    buckets(<3 lengths>, batch_size=2, pool=100)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np

from headrace import _core, arguments
from headrace.errors import Error, declare
from headrace.plain_array import is_masked, plain_array
from headrace.signatures import sampler_docstring, sampler_fields

_NOT_INDICES = declare(
    "HR0150",
    "config",
    "not a sampler",
    "sampler= takes an array of record indices, or an object created by headrace.sampling. "
    "torch's Sampler objects are not supported, because their order cannot be resumed or split "
    "over ranks: pass the indices that they yield as a list, or use weighted() or balanced().",
)

_CHANGES = declare(
    "HR0143",
    "config",
    "invalid order per epoch or step",
    "hr.sampling.per_epoch() and per_step() call a function for the order of an epoch or a step, "
    "on every rank and again after a resume. So it must return the same order for the same number: "
    "draw from a generator that the function seeds with it.",
)


class Records(Protocol):
    """The part of headrace.Source that a sampler uses."""

    @property
    def engine(self) -> _core.Source: ...
    @property
    def schema(self) -> list[_core.Field]: ...
    def __len__(self) -> int: ...
    def column(self, name: str) -> np.ndarray[Any, Any]: ...
    def lengths(self, name: str) -> np.ndarray[Any, Any]: ...
    def durations(self, name: str) -> np.ndarray[Any, Any]: ...


class Batches(NamedTuple):
    """Properties of a loader on which block shuffling depends."""

    global_batch: int = 1  # records in it
    machines: int = 1  # number of machines of its ranks
    streams: int = 0  # streams of a resumed state; 0: no state


class Sampling:
    """An order that is not bound to a source yet. Created by the functions of this module."""

    shuffles = False  # whether the loader's ``shuffle`` applies to this sampler

    def engine(self, source: Records, shuffle: bool, batches: Batches) -> _core.Sampler:
        raise NotImplementedError


class RecordedSampling(Sampling):
    """An order from the engine's registry: a frozen dataclass of its arguments."""

    record: Mapping[str, Any] = {}

    def __post_init__(self) -> None:
        _core.check_sampler(self.record["name"], self._arguments())

    def _arguments(self) -> dict[str, Any]:
        """The arguments that do not refer to single records."""
        params = self.record["params"][0 if self._speaks_of_nothing() else 1 :]
        named = {param["name"]: getattr(self, param["name"]) for param in params}
        return {n: v.item() if isinstance(v, np.generic) else v for n, v in named.items()}

    def _speaks_of_nothing(self) -> bool:
        """Whether none of its arguments has a value per record."""
        return bool(self.record["per_record"] == "nothing")

    def __repr__(self) -> str:
        shown = [] if self._speaks_of_nothing() else [self._shown()]
        shown += [f"{name}={value!r}" for name, value in self._arguments().items()]
        return f"{type(self).__name__}({', '.join(shown)})"

    def _shown(self) -> str:
        name, given = self.record["params"][0]["name"], self._given()
        sized = hasattr(given, "__len__") and not isinstance(given, str)
        if sized and isinstance(given, tuple) and all(isinstance(each, str) for each in given):
            return repr(given)
        about = "" if self.record["shuffles"] else f" {name}"
        return f"<{len(given)}{about}>" if sized else repr(given)

    def _given(self) -> Any:
        return getattr(self, self.record["params"][0]["name"])

    def engine(self, source: Records, shuffle: bool, batches: Batches) -> _core.Sampler:
        name, arguments, records = self.record["name"], self._arguments(), len(source)
        if self._speaks_of_nothing():
            return _core.make_sampler(
                name, arguments, [], 1, records, shuffle, source.engine, *batches
            )
        if self.record["per_record"] == "order":
            order = _inner_order(self._given(), source, shuffle, batches)
            return _core.make_sampler(name, arguments, order, 1, records, shuffle)
        values, *further = (
            _PER_RECORD[self.record["per_record"]](given, source) for given in self._measures()
        )
        return _core.make_sampler(name, arguments, *values, records, shuffle, further=further)

    def _measures(self) -> tuple[Any, ...]:
        """The lengths as a tuple, if a record has several, given as a tuple or list; otherwise the
        single one."""
        given = self._given()
        several = isinstance(given, (list, tuple)) and any(hasattr(x, "__len__") for x in given)
        return tuple(given) if several and self.record["per_record"] == "durations" else (given,)


class per_epoch(Sampling):
    """A different order for each epoch: the one that ``function(epoch)`` returns.

    For weights, subsets and mixtures that change, and for orders that you compute yourself.

    Args:
        function: Takes the epoch's number, and returns record indices (a one-dimensional array of
            integers, or a list) or a sampler of this module. It must always return the same order
            for the same epoch, on every rank, and the same number of records for each epoch: set
            ``num_samples=`` to a fixed number for samplers that have it.

    Raises ConfigError HR0143 if two calls for epoch 0 differ, HR0726 for an epoch of a different
    length, HR0727 if the function raises.

    Example: hr.sampling.per_epoch(lambda epoch: np.arange(epoch % 2, 100, 2))
    """

    def __init__(self, function: Callable[[int], Any]) -> None:
        if not callable(function):
            raise _NOT_INDICES.error(
                f"per_epoch() takes a function of the epoch (got {type(function).__name__})"
            )
        self.function = function

    def __repr__(self) -> str:
        return f"per_epoch({_name_of(self.function)})"

    def engine(self, source: Records, shuffle: bool, batches: Batches) -> _core.Sampler:
        def order_of(epoch: int) -> _core.Sampler:
            order = self.function(epoch)
            if order is None:
                raise _NOT_INDICES.error(f"{self!r} returned None for epoch {epoch}")
            return _inner_order(order, source, False, batches)

        first = _checked_first(self, order_of, "epoch")
        positions = len(first) if not first.batch_sizes else sum(first.batch_sizes)
        return _core.asked(
            lambda seed, epoch: order_of(epoch),
            len(source),
            positions,
            first.batch_sizes,
            first.fingerprint,
            f"{self!r}, called before each epoch",
        )


class per_step(Sampling):
    """A different order for each step: the one that ``function(step)`` returns.

    For weights, mixtures and subsets that change within an epoch. A step is a global batch; steps
    are counted from the start of epoch 0. Step ``s`` takes the records that it would take if its
    order had been used from the start: positions ``s * B`` to ``(s + 1) * B`` of that order's
    epochs, one after the other, where ``B`` is the number of records in a global batch. So while
    the function returns the same order, that order continues: each record once per pass.

    Args:
        function: Takes the step's number, and returns record indices (a one-dimensional array of
            integers, or a list) or a sampler of this module. It must always return the same for
            the same step, on every rank. With ``shuffle=True`` the loader shuffles indices in each
            pass. If it returns the same object again, the order is not rebuilt.
        num_samples: Records per epoch, a multiple of the global batch. None: one endless epoch.

    Raises ConfigError HR0143 if two calls for step 0 differ, HR0727 if the function raises.

    Example: hr.sampling.per_step(lambda step: np.arange(100 if step < 500 else 50))
    """

    shuffles = True

    def __init__(self, function: Callable[[int], Any], num_samples: int | None = None) -> None:
        if not callable(function):
            raise _NOT_INDICES.error(
                f"per_step() takes a function of the step (got {type(function).__name__})"
            )
        self.function = function
        self.num_samples = num_samples
        if num_samples is not None:
            self.num_samples = arguments.integer("num_samples", num_samples, 1)

    def __repr__(self) -> str:
        return f"per_step({_name_of(self.function)}, num_samples={self.num_samples})"

    def engine(self, source: Records, shuffle: bool, batches: Batches) -> _core.Sampler:
        together = batches.global_batch
        if self.num_samples is not None and self.num_samples % together:
            raise _CHANGES.error(
                f"{self!r} has epochs that are not a multiple of the global batch of {together}",
                hint=f"num_samples={-(-self.num_samples // together) * together}",
            )
        made: list[tuple[Any, _core.Sampler]] = []  # the latest ones

        def order_of(step: int) -> _core.Sampler:
            given = self.function(step)
            if given is None:
                raise _NOT_INDICES.error(f"{self!r} returned None for step {step}")
            for earlier, order in made:
                if earlier is given:
                    return order
            order = _repeated(_inner_order(given, source, shuffle, batches), source, together)
            made[:] = [*made[-_KEPT:], (given, order)]
            return order

        first = _checked_first(self, order_of, "step")
        text = f"{self!r}, called before each step"
        steps = _core.asked(
            lambda seed, step: order_of(step), len(source), together, [], first.fingerprint, text
        )
        return _repeated(steps, source, self.num_samples)


_KEPT = 3  # orders of earlier steps that per_step keeps


def _repeated(order: _core.Sampler, source: Records, positions: int | None) -> _core.Sampler:
    """Epochs of this many positions, from those of another order."""
    return _core.make_sampler("repeat", {"num_samples": positions}, order, 1, len(source), False)


def _name_of(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__qualname__", repr(function)))


def _checked_first(
    sampler: Sampling, order_of: Callable[[int], _core.Sampler], unit: str
) -> _core.Sampler:
    """The order of epoch or step 0. Raises ConfigError HR0143 if a second call differs."""
    try:
        first, again = order_of(0), order_of(0)
    except Error:
        raise
    except Exception as failure:
        text = f"{sampler!r} raised {type(failure).__name__} for {unit} 0: {failure}"
        raise _CHANGES.error(text) from failure
    if first.fingerprint != again.fingerprint:
        raise _CHANGES.error(
            f"{sampler!r} returned two different orders for {unit} 0",
            hint=f"draw from np.random.default_rng((seed, {unit})), not from a global generator",
        )
    return first


def _inner_order(given: Any, source: Records, shuffle: bool, batches: Batches) -> _core.Sampler:
    """The input of another sampler: a sampler, record indices, or None for all records."""
    if given is None:
        return _core.shuffled_by(source.engine) if shuffle else _core.sequential(len(source))
    if not isinstance(given, Sampling):
        given = __getattr__("indices")(given)
    if shuffle and not given.shuffles:
        raise _NOT_INDICES.error(f"shuffle=True does not apply to {given!r}", hint="shuffle=False")
    return given.engine(source, shuffle, batches)


# Functions that convert values per record for the engine; they return the values and their units
# per original unit.
_PerRecord = Callable[[Any, Records], tuple[np.ndarray[Any, Any], int]]


def _weights(given: Any, source: Records) -> tuple[np.ndarray[Any, Any], int]:
    weights = np.array(arguments.numbers("weights", given), np.float64)
    if weights.shape != (len(source),):
        raise _NOT_INDICES.error(
            f"weights have shape {weights.shape}, but the source has {len(source)} records",
            hint="give one weight per record",
        )
    return weights, 1


def _labels(given: Any, source: Records) -> tuple[np.ndarray[Any, Any], int]:
    """Integers unchanged; other values are numbered in sorted order."""
    values = _array_of("labels", source.column(given) if isinstance(given, str) else given)
    if values is None or values.shape != (len(source),) or values.dtype.kind not in "iubUSO":
        found = type(given).__name__ if values is None else f"{values.dtype} {values.shape}"
        raise _NOT_INDICES.error(
            f"labels are {found}, but the source has {len(source)} records",
            hint="give one integer or string per record, or the name of an integer field",
        )
    if values.dtype.kind in "iub":
        return np.ascontiguousarray(values.astype(np.int64)), 1
    try:
        return np.unique(values, return_inverse=True)[1].astype(np.int64), 1
    except TypeError as failure:
        raise _NOT_INDICES.error(f"labels cannot be sorted: {failure}") from None


def _lengths(given: Any, source: Records) -> tuple[np.ndarray[Any, Any], int]:
    return _in_parts(_measured(given, source, source.lengths), source)


def _durations(given: Any, source: Records) -> tuple[np.ndarray[Any, Any], int]:
    """Durations of audio clips; for other fields, their values."""
    return _in_parts(_measured(given, source, source.durations), source)


def _measured(given: Any, source: Records, measure: Callable[[str], Any]) -> Any:
    """The given lengths, or those of a field: 0 for records whose header cannot be read, which are
    left to on_error=.
    """
    if not isinstance(given, str):
        return given
    has_headers = any(field.name == given and field.encoded for field in source.schema)
    return np.maximum(measure(given), 0) if has_headers else measure(given)


_PER_RECORD: Mapping[str, _PerRecord] = {
    "weights": _weights,
    "labels": _labels,
    "lengths": _lengths,
    "durations": _durations,
    "indices": lambda array, source: (as_indices(array, len(source)), 1),
}

_MICROSECONDS = 1_000_000  # parts of one unit, for lengths that are not integers


def _in_parts(lengths: Any, source: Records) -> tuple[np.ndarray[Any, Any], int]:
    """Lengths as integers, rounded up, and the number of integer units per original unit."""
    array = _array_of("lengths", lengths)
    if array is None or array.shape != (len(source),) or array.dtype.kind not in "iuf":
        given = type(lengths).__name__ if array is None else f"{array.dtype} of shape {array.shape}"
        raise _NOT_INDICES.error(
            f"lengths are {given}, but the source has {len(source)} records",
            hint="give one number per record",
        )
    if array.dtype.kind != "f":
        return np.ascontiguousarray(array.astype(np.int64)), 1
    seconds = array.astype(np.float64)
    invalid = np.flatnonzero(~(np.abs(seconds) < 1e12))  # NaN too
    if invalid.size:
        raise _NOT_INDICES.error(
            f"lengths must be finite numbers below 1e12 (got {seconds[invalid[0]]} for record "
            f"{invalid[0]})"
        )
    return np.ceil(seconds * _MICROSECONDS).astype(np.int64), _MICROSECONDS


def _array_of(what: str, given: Any) -> np.ndarray[Any, Any] | None:
    """The argument as an array; None if it is not one. Raises ConfigError if values are masked."""
    try:
        return plain_array(given)
    except (TypeError, ValueError) as failure:
        if is_masked(given):
            raise _NOT_INDICES.error(f"{what}: {failure}") from None
        return None


def as_indices(given: Any, records: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Record indices as int64, negative ones counted from the end; checks that they are in
    range."""
    array = _array_of("record indices", given)
    if array is None or array.ndim != 1 or not (array.dtype.kind in "iu" or array.size == 0):
        raise _NOT_INDICES.error(
            f"expected a one-dimensional array of record indices, got {type(given).__name__}",
            hint="hr.sampling.weighted(...), hr.sampling.balanced('label'), or a list of integers",
        )
    outside = np.flatnonzero((array < -records) | (array >= records))  # before 2**64 - 1 becomes -1
    if outside.size:
        raise _NOT_INDICES.error(
            f"index {int(array[outside[0]])} at position {int(outside[0])} is outside "
            f"the {records} records of the source"
        )
    array = array.astype(np.int64)
    return np.where(array < 0, array + records, array)


def engine_sampler(
    sampler: Any, source: Records, shuffle: bool, batches: Batches
) -> tuple[_core.Sampler | None, bool]:
    """The order of ``sampler=`` (None: the loader's own), and the ``shuffle`` to use with it."""
    if sampler is None:
        return None, shuffle
    if not isinstance(sampler, Sampling):
        sampler = __getattr__("indices")(sampler)
    return sampler.engine(source, shuffle, batches), shuffle and not sampler.shuffles


def _make_class(record: Mapping[str, Any]) -> type[RecordedSampling]:
    made = dataclasses.make_dataclass(
        record["name"],
        sampler_fields(record),
        bases=(RecordedSampling,),
        namespace={
            "__doc__": sampler_docstring(record),
            "__module__": __name__,
            "record": record,
            "shuffles": record["shuffles"],
            **({"__reduce__": _reduced} if "plugin" in record else {}),
        },
        frozen=True,
        repr=False,
    )
    return made


_SAMPLERS: Mapping[str, Mapping[str, Any]] = _core.samplers()
__all__ = ["Batches", "Records", "Sampling", "per_epoch", "per_step", *sorted(_SAMPLERS)]


def __getattr__(name: str) -> Any:
    """The class of a sampler, created on first access."""
    record = _SAMPLERS.get(name) or _core.samplers().get(name)  # a plug-in's is not in _SAMPLERS
    if record is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals().setdefault(name, _make_class(record))


def _reduced(order: RecordedSampling) -> tuple[Any, ...]:
    """How a plug-in's order is pickled: with the plug-in to load."""
    return _from_plugin, (dict(order.record["plugin"]), order.record["name"], dict(vars(order)))


def _from_plugin(plugin: Mapping[str, str], name: str, arguments: Mapping[str, Any]) -> Any:
    facts = (plugin[key] for key in ("name", "version", "path", "fingerprint"))
    _core.require_plugin(*facts, load=True)
    return __getattr__(name)(**arguments)


def __dir__() -> list[str]:
    return sorted({*globals(), *_SAMPLERS})
