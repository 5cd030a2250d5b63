# SPDX-License-Identifier: Apache-2.0
"""State to restore after a run: generators and plain attributes.

Even a draw that affects one record in a million is immediately visible in the state of a generator.
"""

from __future__ import annotations

import random
import sys
import types
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from headrace.migrate.generators import is_generator, state_of
from headrace.migrate.look.marks import Mark
from headrace.migrate.look.recorders import Stand

State = dict[str, Any]
_DEPTH, _MOST = 4, 64
_GENERATOR = " (a generator)"


def reader() -> Callable[[], State]:
    """A function that reads the global generators of Python, NumPy and torch, even while mocks
    replace their functions.
    """
    of_python, of_numpy = random.getstate, np.random.get_state
    torch = sys.modules.get("torch")

    def states() -> State:
        state: Any = of_numpy(legacy=False)
        out: State = {
            "random": of_python(),
            "numpy.random": (state["state"]["key"].tobytes(), state["state"]["pos"]),
        }
        if torch:
            out["torch"] = torch.default_generator.get_state().numpy().tobytes()
        return out

    return states


def held(dataset: Any, homes: Iterable[dict[str, Any]]) -> State:
    """By name: generators in the dataset or its modules, and attributes that are or contain plain
    values.
    """
    out: State = {}
    seen: set[int] = set()

    def walk(name: str, value: Any, depth: int) -> None:
        kind = type(value)
        if kind in (int, float, str, bool, bytes, types.NoneType):
            out[name] = value
            return
        if kind is Mark or id(value) in seen or depth > _DEPTH:
            return
        seen.add(id(value))
        if is_generator(value):
            out[name + _GENERATOR] = state_of(value)
        elif isinstance(value, Stand):
            walk(name, value.own_real, depth + 1)
        elif kind is dict or isinstance(value, dict):
            # A cache that fills up does not count as a change: its entries from files are marks.
            out[name] = sum(type(each) is not Mark for each in value.values())
            for key, each in list(value.items())[:_MOST]:
                walk(f"{name}[{key!r}]", each, depth + 1)
        elif isinstance(value, (list, tuple, set)):
            out[name] = len(value)
            for number, each in enumerate(list(value)[:_MOST]):
                walk(f"{name}[{number}]", each, depth + 1)
        elif kind.__module__ == "numpy":
            out[name] = (value.shape, str(value.dtype)) if hasattr(value, "shape") else None
        elif hasattr(value, "__dict__") and not isinstance(
            value, (type, types.ModuleType, types.FunctionType, types.MethodType)
        ):
            for key, each in list(vars(value).items()):
                walk(f"{name}.{key}", each, depth + 1)

    walk("self", dataset, 0)
    for namespace in homes:
        for key, value in list(namespace.items()):
            if is_generator(value):
                walk(key, value, 0)
            elif type(value) in (int, float, bool, str) and not key.startswith("__"):
                out[f"the global {key}"] = value
    return out


def changed(before: State, after: State) -> list[str]:
    """Names of the objects that have changed."""
    missing = object()
    names = {**before, **after}
    return sorted(n for n in names if before.get(n, missing) != after.get(n, missing))


def drawn_from(before: State, after: State) -> str:
    """ " from NAME" for a generator that has changed."""
    names = [name for name in changed(before, after) if name.endswith(_GENERATOR)]
    return f" from {names[0].removesuffix(_GENERATOR)}" if names else ""
