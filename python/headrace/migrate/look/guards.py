# SPDX-License-Identifier: Apache-2.0
"""What must be as it was after a run: generators and plain attributes.

A record that is drawn once in a million calls shows in the state of a generator at once.
"""

from __future__ import annotations

import pickle
import random
import sys
import types
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from headrace.migrate.look.marks import Mark
from headrace.migrate.look.recorders import Stand

State = dict[str, Any]
_GENERATORS = ("Generator", "RandomState", "Random", "SystemRandom")
_BITS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")
_DEPTH, _MOST = 4, 64


def reader() -> Callable[[], State]:
    """What reads the global generators of Python, NumPy and torch, also once stand-ins have taken
    the places of the functions that do."""
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
    """Generators that the dataset or its modules hold, and its attributes that are plain values or
    hold some: by name."""
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
            out[name] = state_of(value)
        elif isinstance(value, Stand):
            walk(name, value.own_real, depth + 1)
        elif kind is dict or isinstance(value, dict):
            # A cache that fills is no change: what it keeps of files are marks.
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
            if type(value).__name__ in _GENERATORS:
                walk(key, value, 0)
            elif type(value) in (int, float, bool, str) and not key.startswith("__"):
                out[f"the global {key}"] = value
    return out


def changed(before: State, after: State) -> list[str]:
    """Names of what is another one now."""
    missing = object()
    names = {**before, **after}
    return sorted(n for n in names if before.get(n, missing) != after.get(n, missing))


def is_generator(value: Any) -> bool:
    """Whether it is a generator of Python's, NumPy's or torch's."""
    return type(value).__name__ in (*_GENERATORS, *_BITS)


def state_of(generator: Any) -> Any:
    """What it draws next is a function of."""
    if hasattr(generator, "initial_seed"):  # torch's
        return generator.get_state().numpy().tobytes()
    try:
        if hasattr(generator, "getstate"):
            return generator.getstate()
        return pickle.dumps(generator)
    except Exception:
        return id(generator)
