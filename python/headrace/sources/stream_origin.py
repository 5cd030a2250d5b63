# SPDX-License-Identifier: Apache-2.0
"""The origin of a stream's records: a function, an iterable or an iterator, and how a pass over it
begins: at its start, or at a saved state.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
import threading
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from headrace.errors import declare, warn
from headrace.sources.source import NOT_A_SOURCE
from headrace.steps import describe

ONCE = declare(
    "HR0693",
    "config",
    "stream cannot be read again",
    "An iterator yields its records only once. A function that returns an iterator, or an object "
    "with __iter__, can be read again in each epoch, and after a resume: use hr.stream(function) "
    "instead of hr.stream(function()).",
)
FAILED = declare(
    "HR0691",
    "data",
    "stream failed",
    "The iterable raised an exception. Records before it were delivered in full batches. An "
    "iterable cannot continue after an exception, so on_error= does not apply.",
)
_PATIENCE = 5.0  # seconds within which a closed generator has to end
_ASKED = ("epoch", "rank", "world_size")


class Shares(NamedTuple):
    """Identifies a pass over the records, as arguments for the user's function."""

    epoch: int = 0
    rank: int = 0
    world_size: int = 1


class Origin:
    """The iterable given to a stream."""

    def __init__(self, given: Any) -> None:
        self._given = given
        self._asked: tuple[str, ...] = ()
        self._used = self._moved = False
        self.is_function = callable(given) and not hasattr(given, "__iter__")
        self.is_once = isinstance(given, Iterator) and not _has_state(given)
        if self.is_function:
            self._asked = _asked_by(given)
        elif not hasattr(given, "__iter__"):
            raise NOT_A_SOURCE.error(
                f"{type(given).__name__} is neither an iterable nor a function that returns one",
                hint="hr.stream(function), where function() is a generator",
            )
        self._start = None
        if _has_state(given):
            with contextlib.suppress(Exception):  # some have one only when iterated
                self._start = _state_of(given)

    @property
    def name(self) -> str:
        name = getattr(self._given, "__name__", "") if self.is_function else ""
        return name or type(self._given).__name__

    @property
    def is_upright(self) -> bool:
        """Whether the library rotates images, so that they are already upright."""
        return type(self._given).__module__.partition(".")[0] == "datasets"

    @property
    def classes(self) -> list[str]:
        """Names of the labels, if the object knows them."""
        return [str(name) for name in getattr(self._given, "classes", None) or ()]

    @property
    def asks_for_rank(self) -> bool:
        return "rank" in self._asked

    def check(self) -> None:
        """Raises ConfigError HR0693 if it was read before and cannot be read again."""
        if self.is_once and self._used:
            raise ONCE.error(
                f"a {self.name} yields its records only once, and was already read",
                hint="hr.stream(function), where function() returns a new iterator for each epoch",
            )

    def open(self, shares: Shares, state: Any = None) -> Pass:
        """A pass from the start, or from an earlier state. Raises HR0691 if that fails."""
        self.check()
        self._used = True
        try:
            return self._opened(shares, state)
        except Exception as failure:
            raise FAILED.error(
                f"{self.name} failed when epoch {shares.epoch} began: {describe(failure)}"
            ) from failure

    def _opened(self, shares: Shares, state: Any) -> Pass:
        records = self._given
        if self.is_function:
            records = records(**{name: getattr(shares, name) for name in self._asked})
        if hasattr(records, "set_epoch"):
            records.set_epoch(shares.epoch)
        of_object = _has_state(records)
        if of_object and state is not None:
            records.load_state_dict(copy.deepcopy(state))
            self._moved = not self.is_function
        elif of_object and self._moved and self._start is not None:
            records.load_state_dict(copy.deepcopy(self._start))
        self._moved |= of_object and isinstance(records, Iterator)
        iterator = iter(records)
        holder = records if of_object else iterator if _has_state(iterator) else None
        if state is not None and not of_object:
            if holder is None:
                raise TypeError(
                    "it has no load_state_dict(), but the state is of an iterable that has it"
                )
            iterator.load_state_dict(copy.deepcopy(state))
        return Pass(iterator, holder)


class Pass:
    """One pass over the records, closed when it is dropped in mid-epoch."""

    def __init__(self, iterator: Iterator[Any], holder: Any) -> None:
        self._iterator = iterator
        self._holder = holder
        self._failure: Exception | None = None

    def __next__(self) -> Any:
        if self._failure is not None:
            raise self._failure
        return next(self._iterator)

    def fail_next(self, failure: Exception) -> None:
        """Stores a failure; the next reader gets the exception."""
        self._failure = failure

    @property
    def has_state(self) -> bool:
        return self._holder is not None

    def state(self) -> Any:
        """The state for a pass that continues after the last record returned."""
        return _state_of(self._holder)

    def close(self) -> None:
        """Closes a generator, with a warning if its ``finally`` takes long or fails."""
        close = getattr(self._iterator, "close", None)
        if not inspect.isgenerator(self._iterator) or self._iterator.gi_frame is None:
            return
        failures: list[Exception] = []

        def end() -> None:
            try:
                close()  # type: ignore[misc]
            except Exception as failure:
                failures.append(failure)

        thread = threading.Thread(target=end, name="headrace stream close", daemon=True)
        thread.start()
        thread.join(_PATIENCE)
        name = getattr(self._iterator, "__name__", "the generator")
        if thread.is_alive():
            warn(f"{name} was closed before its end, but still runs after {_PATIENCE:g} s")
        elif failures:
            warn(f"{name} was closed before its end, and raised {describe(failures[0])}")


def _asked_by(function: Any) -> tuple[str, ...]:
    """The arguments among epoch, rank and world_size that the function takes."""
    try:
        parameters: Mapping[str, inspect.Parameter] = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return ()
    needed = [
        name
        for name, each in parameters.items()
        if each.default is each.empty and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
    ]
    if unknown := [name for name in needed if name not in _ASKED]:
        raise NOT_A_SOURCE.error(
            f"the function needs {', '.join(unknown)}, but a stream only passes epoch, rank and "
            "world_size",
            hint=f"hr.stream(functools.partial(function, {unknown[0]}=...))",
        )
    asked = tuple(name for name in _ASKED if name in parameters)
    if ("rank" in asked) != ("world_size" in asked):
        raise NOT_A_SOURCE.error("a function that takes rank must also take world_size")
    return asked


def _has_state(records: Any) -> bool:
    return hasattr(records, "state_dict") and hasattr(records, "load_state_dict")


def _state_of(holder: Any) -> Any:
    return copy.deepcopy(holder.state_dict())
