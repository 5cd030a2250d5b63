# SPDX-License-Identifier: Apache-2.0
"""The parts of an object, by name: ``.attribute``, ``[entry]``, or a full name for objects that do
not belong to it, such as a global that a function uses.

The user's own classes and functions are parts of their instances; those of libraries are compared
by identity, except for methods that a script may replace.
"""

from __future__ import annotations

import collections
import dis
import enum
import functools
import itertools
import sys
import types
from collections.abc import Iterator
from typing import Any, NamedTuple

from headrace.migrate.modules import is_users, module_of

Parts = dict[str, Any]
_FEW = 64

_PLAIN = frozenset({dict, list, tuple})  # types without attributes

# Standard library types that hold the user's values; all others are opaque.
_HOLDERS = (
    *(dict, list, tuple, set, frozenset, collections.deque, types.SimpleNamespace),
    *(functools.partial, functools.partialmethod, functools.cached_property),
    *(property, staticmethod, classmethod, types.FunctionType, types.MethodType),
)
_HOLDERS_BY_NAME = (
    "argparse.Namespace",
    "configparser.ConfigParser",
    "functools._lru_cache_wrapper",
    "sqlite3.Connection",
)
_GENERATORS = ("Generator", "RandomState", "Random", "SystemRandom", "BitGenerator")
# Names with which code accesses globals indirectly.
_BY_TEXT = {"globals", "eval", "exec", "f_globals", "__globals__"}
_MODULES = {"sys", "modules"}
# Methods of a dataset, a transform or a sampler that a library calls.
_CALLED = (
    *("__getitem__", "__getitems__", "__len__", "__iter__", "__call__"),
    *("forward", "transform", "make_params", "_transform", "_get_params", "get_params"),
)
# Methods that are called when an object is created, shown or pickled, not per record.
_NOT_CALLED = (
    *("__init__", "__new__", "__post_init__", "__del__", "__init_subclass__"),
    *("__repr__", "__str__", "__reduce__", "__getstate__", "__setstate__"),
)


def is_thing(value: Any) -> bool:
    """Whether it is compared by identity alone: a file, a lock, a module, a generator."""
    kind = type(value)
    if module_of(kind).startswith("headrace.migrate.look."):  # a stand-in
        return True
    if isinstance(value, (type, types.FunctionType)):
        return not is_users(value.__module__)
    if isinstance(value, (types.ModuleType, enum.Enum)) or kind.__name__ in _GENERATORS:
        return True
    if isinstance(value, _HOLDERS):
        return False
    home = module_of(kind)
    if f"{home}.{kind.__qualname__}" in _HOLDERS_BY_NAME or home == "multiprocessing.sharedctypes":
        return False
    return home.partition(".")[0] in sys.stdlib_module_names


def parts_of(value: Any) -> Parts:
    """The parts of an object. REQUIRES: it is not compared by identity."""
    if type(value) in _PLAIN:  # annotations may have thousands of these
        return _entries_of(value)
    if isinstance(value, types.FunctionType):
        return _of_function(value)
    if isinstance(value, type):
        return {f".{name}": each for name, each in vars(value).items() if counts(name, each)}
    if isinstance(value, types.MethodType):
        return {"": value.__func__, ".__self__": value.__self__}
    if isinstance(value, (functools.partial, functools.partialmethod)):
        return {".func": value.func, ".args": value.args, ".keywords": value.keywords}
    if isinstance(value, property):
        return {"": value.fget}
    if isinstance(value, (staticmethod, classmethod)):
        return {"": value.__func__}
    if isinstance(value, functools.cached_property):
        return {"": value.func}
    if type(value).__name__ == "_lru_cache_wrapper":
        return {"": value.__wrapped__}
    if type(value).__name__ == "Connection" and module_of(type(value)) == "sqlite3":
        return {".total_changes": value.total_changes, ".data_version": _version_of(value)}
    return _of_object(value)


def _version_of(database: Any) -> Any:
    """Changes when another connection writes; None on a thread other than its own."""
    try:
        return database.execute("PRAGMA data_version").fetchone()
    except Exception:
        return None


def few_parts_of(value: Any) -> list[Any]:
    """The parts without names; if there are many entries, only the first ones."""
    if isinstance(value, (dict, list, tuple, set, frozenset)) and len(value) > _FEW:
        return list(itertools.islice(value.values() if isinstance(value, dict) else value, _FEW))
    return list(parts_of(value).values())


def is_namespace(value: Any) -> bool:
    """Whether it is a module that holds options of the whole program."""
    return isinstance(value, types.SimpleNamespace) or type(value).__name__ == "Namespace"


def _of_object(value: Any) -> Parts:
    out = _entries_of(value)
    if not out and (columns := _of_pandas(value)) is not None:
        return columns
    for name, each in _attributes(value):
        if not module_of(type(each)).startswith("headrace."):  # ours: views add this method
            out[f".{name}"] = each
    for base in type(value).__mro__:
        home = module_of(base).partition(".")[0]
        name = base.__qualname__
        while name in out:
            name += "'"
        if is_users(module_of(base)):
            out[name] = base
        elif home not in sys.stdlib_module_names:
            out.update((f"{name}.{n}", vars(base)[n]) for n in _CALLED if n in vars(base))
    return out


def _entries_of(value: Any) -> Parts:
    if isinstance(value, dict):
        return {f"[{key!r}]": each for key, each in value.items()}
    if isinstance(value, (list, tuple, collections.deque)):
        return {f"[{number}]": each for number, each in enumerate(value)}
    return {"{}": sorted(map(repr, value))} if isinstance(value, (set, frozenset)) else {}


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    yield from list(getattr(value, "__dict__", {}).items())
    for base in type(value).__mro__:
        slots = vars(base).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and hasattr(value, name):
                yield name, getattr(value, name)


def _of_pandas(value: Any) -> Parts | None:
    """The columns, without pandas' caches."""
    if module_of(type(value)).partition(".")[0] != "pandas":
        return None
    if type(value).__name__ == "DataFrame":
        columns = {f"[{name!r}]": _column(value[name]) for name in value.columns}
        return {".index": _column(value.index), **columns}
    if not hasattr(value, "to_numpy"):
        return None
    index = {".index": _column(value.index)} if hasattr(value, "index") else {}
    return {"": _column(value), **index}


def _column(values: Any) -> Any:
    array = values.to_numpy()
    return array.tolist() if array.dtype.kind == "O" else array


def counts(name: str, value: Any) -> bool:
    """Whether a class attribute was defined by the user."""
    if name in _NOT_CALLED:
        return False
    return not name.startswith("__") or isinstance(value, types.FunctionType)


def _of_function(function: types.FunctionType) -> Parts:
    code = function.__code__
    out: Parts = {
        ".__code__": code,
        ".__defaults__": function.__defaults__,
        ".__kwdefaults__": function.__kwdefaults__,
        **{f".{name}": each for name, each in vars(function).items()},
    }
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            out[f"{name} of {function.__qualname__}()"] = cell.cell_contents
        except ValueError:
            continue  # it has no value yet
    names = names_in(code)
    by_text = (n for n in names.others if n.endswith("globals"))
    if _BY_TEXT & {*names.globals, *by_text} or {*names.globals, *names.others} >= _MODULES:
        space = function.__globals__.items()
        out.update((f"the global {n}", each) for n, each in space if _is_plain(each))
    for name in names.globals:
        if name not in function.__globals__:
            continue
        value = function.__globals__[name]
        out[f"the global {name}"] = value
        if isinstance(value, types.ModuleType):
            own, users = vars(value), is_users(value.__name__)
            named = (each for each in names.others if each in own)
            out.update((f"{name}.{n}", own[n]) for n in named if users or _is_plain(own[n]))
    return out


def _is_plain(value: Any) -> bool:
    """Whether it is a value, or a list or dictionary of values, such as ``sys.argv``."""
    if type(value) is dict:
        value = list(value.values())
    entries = list(value) if isinstance(value, (list, tuple, set)) else [value]
    return all(type(each) in (int, float, bool, str, bytes, type(None)) for each in entries)


class Names(NamedTuple):
    """Names in code: globals, and attributes and strings."""

    globals: tuple[str, ...]
    others: tuple[str, ...]


@functools.lru_cache(None)
def names_in(code: types.CodeType) -> Names:
    """Names in code and in its inner functions."""
    outer, others = [], []
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            outer.append(step.argval)
        elif step.opname in ("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR"):
            others.append(step.argval)
    for constant in code.co_consts:
        if isinstance(constant, str):
            others.append(constant)
        elif isinstance(constant, types.CodeType):
            inner = names_in(constant)
            outer += inner.globals
            others += inner.others
    return Names(tuple(dict.fromkeys(outer)), tuple(dict.fromkeys(others)))
