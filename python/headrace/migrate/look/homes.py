# SPDX-License-Identifier: Apache-2.0
"""The modules of a dataset's code, whose functions are replaced by name."""

from __future__ import annotations

import dis
import itertools
import sys
import types
from collections.abc import Iterator
from typing import Any

from headrace.migrate.look.recorders import is_dataset
from headrace.migrate.modules import is_users

_FOREIGN = ("torch", "builtins", "headrace", "typing", "abc", "collections")


def homes_of(dataset: Any) -> list[str]:
    """Names of the modules of its classes, functions and datasets, and of the modules that those
    import, unless they are installed.
    """
    homes: dict[str, None] = {}
    for one in _datasets_in(dataset):
        for base in type(one).__mro__:
            _add(base.__module__, homes)
        for value in vars(one).values():
            if isinstance(value, types.FunctionType):
                _add(value.__module__, homes)
    for name in list(homes):
        for value in list(vars(sys.modules[name]).values()):
            module = getattr(value, "__module__", None)
            if isinstance(value, (type, types.FunctionType)) and is_users(module):
                _add(module, homes)
    return list(homes)


def _datasets_in(dataset: Any) -> Iterator[Any]:
    seen: set[int] = set()
    waiting = [dataset]
    while waiting:
        one = waiting.pop()
        if id(one) in seen or not hasattr(one, "__dict__"):
            continue
        seen.add(id(one))
        yield one
        for value in vars(one).values():
            held = value if isinstance(value, (list, tuple)) and len(value) < 64 else [value]
            waiting += [each for each in held if is_dataset(each)]


def _add(module: str | None, homes: dict[str, None]) -> None:
    if module and module.partition(".")[0] not in _FOREIGN and module in sys.modules:
        homes[module] = None


def fetches_batches(dataset: Any) -> bool:
    """Whether the user defined ``__getitems__``, which torch prefers to ``__getitem__``."""
    fetch = getattr(type(dataset), "__getitems__", None)
    return fetch is not None and is_users(fetch.__module__)


def handles_exceptions(dataset: Any) -> bool:
    """Whether a ``__getitem__`` of its classes has an ``except``: it may skip damaged files."""
    codes = [
        getattr(vars(base).get("__getitem__"), "__code__", None)
        for one in _datasets_in(dataset)
        for base in type(one).__mro__
    ]
    return any(code is not None and _has_handler(code) for code in codes)


def _has_handler(code: types.CodeType) -> bool:
    steps = [step.opname for step in dis.get_instructions(code)]
    if {"CHECK_EXC_MATCH", "JUMP_IF_NOT_EXC_MATCH"} & set(steps):
        return True
    return any(a == "PUSH_EXC_INFO" and b == "POP_TOP" for a, b in itertools.pairwise(steps))
