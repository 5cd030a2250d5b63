# SPDX-License-Identifier: Apache-2.0
"""Headrace's exceptions. ``headrace explain CODE`` explains a code.

>>> import headrace as hr
>>> try:
...     hr.Loader([{"image": None}], batch_size=0)
... except hr.ConfigError as error:
...     error.code[:2]
'HR'
"""

from __future__ import annotations

import dataclasses
import importlib
import os
import sys
import warnings
from collections.abc import Iterable
from typing import Any, NamedTuple

from headrace import _core
from headrace.log import WARNING, frames_up, log


@dataclasses.dataclass(frozen=True)
class Where:
    """Position in the dataset; unknown parts are empty or None."""

    file: str = ""
    member: str = ""
    record: int | None = None
    offset: int | None = None
    text: str = ""

    def __str__(self) -> str:
        return self.text

    def __bool__(self) -> bool:
        return bool(self.text)


class Error(Exception):
    """Base of all errors: ``code`` ("HR0305"), ``where``, ``note``, and ``hint``, in addition to
    the message.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str = "",
        where: Where | None = None,
        note: str = "",
        hint: str = "",
    ) -> None:
        super().__init__(message)
        self.code = code
        self.where = where or Where()
        self.note = note
        self.hint = hint

    def __str__(self) -> str:
        return str(self.args[0])

    def __reduce__(self) -> tuple[Any, ...]:
        state = {name: getattr(self, name) for name in ("code", "where", "note", "hint")}
        return (_rebuild, (type(self), self.args[0], state))


class DataError(Error, ValueError):
    """Invalid data; ``on_error=`` decides what happens to the record."""


class ResourceLimitError(Error, MemoryError):
    """A limit, such as memory_limit, was exceeded."""


class StorageError(Error, OSError):
    """The bytes could not be read or written."""


class ConfigError(Error, ValueError, TypeError):
    """Invalid arguments; raised before anything runs."""


class UnsupportedError(Error, NotImplementedError):
    """Valid, but not supported."""


class Warning(UserWarning):
    """A condition that is not an error: a batch that had to be copied, a stage that hangs."""


def warn(message: str) -> None:
    """Warns at the line that requests the batch, skipping our own frames; also in the log."""
    log(WARNING, "warning", message)
    warnings.warn(message, Warning, stacklevel=frames_up(sys._getframe()))


_CLASSES: dict[str, type[Error]] = {
    "config": ConfigError,
    "data": DataError,
    "resource": ResourceLimitError,
    "storage": StorageError,
    "unsupported": UnsupportedError,
}


def _rebuild(cls: type[Error], message: str, state: dict[str, Any]) -> Error:
    return cls(message, **state)


def from_engine(
    kind: str,
    code: str,
    message: str,
    what: str,
    where: dict[str, Any],
    where_text: str,
    note: str,
    hint: str,
) -> Error:
    """Converts the engine's error to an exception; called by the bindings."""
    place = Where(
        where["file"],
        where["member"],
        None if where["record"] < 0 else where["record"],
        None if where["offset"] < 0 else where["offset"],
        where_text,
    )
    return _CLASSES[kind](message, code=code, where=place, note=note, hint=hint)


class Code(NamedTuple):
    """An error code of the Python layers, declared next to the function that raises it."""

    id: str
    kind: str
    title: str

    def error(self, what: str, *, hint: str = "", note: str = "") -> Error:
        """An exception with this code, formatted like the engine's."""
        message = f"{self.id} {self.title}: {what}"
        if note:
            message += f"\n  note: {note}"
        if hint:
            message += f"\n  help: {hint}"
        return _CLASSES[self.kind](message, code=self.id, note=note, hint=hint)


def declare(id: str, kind: str, title: str, explanation: str) -> Code:
    """Registers a code, so that ``headrace explain`` knows it."""
    _core.declare_code(id, kind, title, explanation)
    return Code(id, kind, title)


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate most similar to a name, if any is similar."""
    import difflib

    near = difflib.get_close_matches(name, sorted(candidates), n=1, cutoff=0.6)
    return near[0] if near else None


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """'did you mean "threads"?', or all candidates if none is similar."""
    known = sorted(candidates)
    near = nearest(name, known)
    if near:
        return f"did you mean {near!r}?"
    return "known: " + ", ".join(known)


def all_codes() -> dict[str, dict[str, str]]:
    """Every error code by its id: those of the engine, and of modules not imported yet."""
    import pkgutil

    # These declare none; libheadrace is the engine's library, which looks like a module,
    # insight.live.metrics and otel need an extra, and each module of trainers needs its trainer.
    none = (
        *("cli", "drawing", "insight.demo", "insight.live.metrics", "insight.live.otel"),
        *("libheadrace", "trainers."),
    )
    silent = tuple(f"headrace.{name}" for name in none)
    for module in pkgutil.walk_packages([os.path.dirname(__file__)], "headrace."):
        if not module.name.startswith(silent):
            importlib.import_module(module.name)
    return _core.error_codes()
