# SPDX-License-Identifier: Apache-2.0
"""The origin of a source: a function and its arguments. A source is pickled in this form, so a
process on another machine opens the same files, and detects if they differ there. Sources among the
arguments are pickled in the same way. Small arrays are pickled by value; ``carrying_arrays()`` is
for callers that send them once per machine.
"""

from __future__ import annotations

import binascii
import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any, NamedTuple, ParamSpec, Protocol, TypeVar

import numpy as np

from headrace.errors import declare

_NOT_PICKLABLE = declare(
    "HR0171",
    "config",
    "source cannot be pickled",
    "A source pickles as the call that created it: a path with its parameters, or the values "
    "passed to the call. Values up to 1 MB are included. For more, write them to a file "
    "(numpy.save, headrace convert, headrace pack) that all processes can open.",
)
_DIFFERS = declare(
    "HR0172",
    "config",
    "records differ from the pickled source",
    "An unpickled source opens its files again, and must find what the first process found: the "
    "same number of records, the same fields and classes, the same fingerprint. Usually a copy is "
    "incomplete or outdated, or the path is a different disk on that machine.",
)

_Taken = ParamSpec("_Taken")
_Given = TypeVar("_Given")
_MOST_BYTES = 1_000_000  # maximum bytes of arrays in one source
_SAMPLED = 16  # number of records whose keys are compared

_carries: ContextVar[bool] = ContextVar("carries", default=False)


@contextlib.contextmanager
def carrying_arrays() -> Iterator[None]:
    """Inside, arrays of any size are pickled: the caller sends them only once."""
    token = _carries.set(True)
    try:
        yield
    finally:
        _carries.reset(token)


class Recipe(NamedTuple):
    """One of Headrace's functions, found by name, and its arguments by name."""

    make: Callable[..., Any]
    arguments: Mapping[str, Any]


_functions: dict[str, Callable[..., Any]] = {}


def makes_sources(function: Callable[_Taken, _Given]) -> Callable[_Taken, _Given]:
    """Registers a function that recipes in plain data may refer to."""
    _functions[function.__name__] = function
    return function


class Facts(NamedTuple):
    """Facts that must be equal wherever the source is opened."""

    text: str
    records: int
    fields: tuple[str, ...]
    classes: tuple[str, ...]
    keys: Mapping[int, str]  # keys of some records
    fingerprint: int
    folder: str  # current_folder()


def current_folder() -> str:
    """Empty if it was deleted: only relative paths need one."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return ""


class Made(Protocol):
    """The part of a source's interface that this module needs."""

    @property
    def recipe(self) -> Recipe | None: ...
    @property
    def fingerprint(self) -> int: ...
    def facts(self) -> Facts: ...


def sampled(records: int) -> list[int]:
    """Indices of some records, including the first and the last."""
    return sorted({int(i) for i in np.linspace(0, records - 1, _SAMPLED)}) if records else []


def checked_recipe(source: Made) -> Recipe:
    """The source's recipe. Raises ConfigError HR0171 if it has none, or if that is too large."""
    recipe = source.recipe
    if recipe is None:
        raise _NOT_PICKLABLE.error(
            source.facts().text,
            hint="open it in the process that needs it: pass a function that opens and returns it",
        )
    largest = [(_bytes_of(value), name) for name, value in recipe.arguments.items()]
    total = sum(size for size, _ in largest)
    if total > _MOST_BYTES and not _carries.get():
        raise _NOT_PICKLABLE.error(
            f"{source.facts().text} holds {total:,} bytes of arrays, most in {max(largest)[1]}; "
            f"at most {_MOST_BYTES:,} can be pickled",
            hint="use numpy.save and hr.npy, or hr.pack, where all processes can read the file; "
            "a pool of hr.ray sends arrays of any size once to each machine",
        )
    return recipe


def _bytes_of(value: Any) -> int:
    """Bytes of arrays in an argument, without those of sources, which count their own."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        many = len(value) > _SAMPLED and not isinstance(value[0], (list, tuple, Mapping))
        return 0 if many and not hasattr(value[0], "nbytes") else sum(map(_bytes_of, value))
    return int(getattr(value, "nbytes", 0))


def made_again(recipe: Recipe, facts: Facts) -> Any:
    """The source, in another process. Raises ConfigError HR0172 for the first difference."""
    source = recipe.make(**recipe.arguments)
    check_facts(facts, source.facts())
    return source


def check_facts(there: Facts, here: Facts) -> None:
    """Raises ConfigError HR0172 if a source differs from the original. there: the facts of the
    original.
    """
    difference = _difference(there, here)
    if difference is None:
        return
    note = ""
    if there.folder != here.folder:
        note = f"relative paths are resolved in {here.folder} here, in {there.folder} there"
    raise _DIFFERS.error(f"{here.text}: {difference}", note=note)


def _difference(there: Facts, here: Facts) -> str | None:
    """The first difference in words; None if there is none."""
    if there.records != here.records:
        return f"{here.records:,} records here, {there.records:,} there"
    for kind in ("fields", "classes"):
        ours, theirs = getattr(here, kind), getattr(there, kind)
        for number in range(max(len(ours), len(theirs))):
            pair = [names[number] if number < len(names) else None for names in (ours, theirs)]
            if pair[0] != pair[1]:
                return f"{kind} differ: {pair[0]!r} here, {pair[1]!r} there"
    if there.fingerprint == here.fingerprint:
        return None
    for number, key in there.keys.items():
        if os.path.basename(here.keys[number]) != os.path.basename(key):
            return f"record {number} is {here.keys[number]!r} here, {key!r} there"
    return (
        f"fingerprint {here.fingerprint:016x} here, {there.fingerprint:016x} there: file sizes or "
        "contents differ"
    )


# --- As plain data --------------------------------------------------------------------------------


def plain_recipe(source: Made) -> dict[str, Any]:
    """The recipe as dictionaries, lists, numbers and text. Raises ConfigError HR0171 for values
    that cannot be expressed in this form, such as Python objects.
    """
    recipe = checked_recipe(source)
    arguments = {name: plain_value(value) for name, value in recipe.arguments.items()}
    return {"make": recipe.make.__name__, "arguments": arguments}


def source_of_plain(recipe: Mapping[str, Any]) -> Any:
    """The inverse."""
    function = _functions.get(recipe["make"])
    if function is None:
        raise _NOT_PICKLABLE.error(f"{recipe['make']!r} is not a function that makes sources")
    return function(**{name: value_of_plain(value) for name, value in recipe["arguments"].items()})


def plain_value(value: Any) -> Any:
    if hasattr(value, "recipe"):
        return {"source": plain_recipe(value)}
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        text = _text_of(value.tobytes())
        return {"array": text, "dtype": value.dtype.name, "shape": list(value.shape)}
    if isinstance(value, (bytes, bytearray)):
        return {"bytes": _text_of(value)}
    if isinstance(value, Mapping):
        return {"named": {str(name): plain_value(item) for name, item in value.items()}}
    if isinstance(value, (list, tuple)):
        return [plain_value(item) for item in value]
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise _NOT_PICKLABLE.error(
        f"{type(value).__name__} has no form in plain data", hint="pickle the source instead"
    )


def _text_of(value: bytes | bytearray) -> str:
    return binascii.b2a_base64(value, newline=False).decode()


def value_of_plain(value: Any) -> Any:
    if isinstance(value, list):
        return [value_of_plain(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    if "source" in value:
        return source_of_plain(value["source"])
    if "array" in value:
        flat = np.frombuffer(binascii.a2b_base64(value["array"]), value["dtype"])
        return flat.reshape(value["shape"])
    if "bytes" in value:
        return binascii.a2b_base64(value["bytes"])
    return {name: value_of_plain(item) for name, item in value["named"].items()}
