# SPDX-License-Identifier: Apache-2.0
"""Random generators held by the user's code: Python's, NumPy's and torch's.

Their draws are made a function of seed, epoch and record, like those of the global generators, so
that they repeat after a resume, and differ between worker processes, each of which has a copy.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headrace import twisters
from headrace.migrate.held import reached_from
from headrace.migrate.parts import is_thing

_GENERATORS = ("Generator", "RandomState", "Random", "SystemRandom")
_BITS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")
_MOST = 20_000  # objects to visit
_APART = 0x9E3779B97F4A7C15  # between the seeds of two generators


def is_generator(value: Any) -> bool:
    """Whether it is a generator of Python, NumPy or torch."""
    return type(value).__name__ in (*_GENERATORS, *_BITS)


def state_of(generator: Any) -> Any:
    """The state that determines its next draws, in a comparable form."""
    if hasattr(generator, "initial_seed"):  # torch's
        return generator.get_state().numpy().tobytes()
    try:
        if hasattr(generator, "getstate"):
            return generator.getstate()
        return pickle.dumps(generator)
    except Exception:
        return id(generator)


def generators_in(root: Any) -> list[Any]:
    """Generators reachable from an object: attributes, closures, and globals used by its code."""
    reached = reached_from(root, _MOST, lambda each: not (_methods_of(each) or is_thing(each)))
    return [value for value in reached if _methods_of(value)]


def seed_all(generators: Sequence[Any], seed: int) -> Callable[[], None]:
    """Seeds each of them, and returns a function that restores them."""
    undo = []
    for number, generator in enumerate(generators, 1):
        methods = _methods_of(generator)
        assert methods is not None
        get, put, begin = methods
        undo.append((put, get()))
        begin((seed + number * _APART) & ((1 << 63) - 1))

    def put_back() -> None:
        for put, state in undo:
            put(state)

    return put_back


_Methods = tuple[Callable[[], Any], Callable[[Any], Any], Callable[[int], Any]]


def _methods_of(value: Any) -> _Methods | None:
    """Functions that get, restore and seed the generator's state; None if it has no state."""
    if not is_generator(value):
        return None
    if hasattr(value, "manual_seed"):  # torch's
        return value.get_state, value.set_state, value.manual_seed
    if hasattr(value, "set_state"):  # NumPy's RandomState
        return *twisters.of_numpy(value), lambda seed: value.seed(seed & 0xFFFFFFFF)
    if type(value).__name__ == "Random":
        return *twisters.of_python(value), value.seed
    bits = getattr(value, "bit_generator", value)
    if not hasattr(bits, "state"):  # the operating system's
        return None

    def put(state: Any) -> None:
        bits.state = state

    def begin(seed: int) -> None:
        put(_pcg64_state(seed) if type(bits) is np.random.PCG64 else type(bits)(seed).state)

    return lambda: bits.state, put, begin


def _pcg64_state(seed: int) -> dict[str, Any]:
    """Any 128 bits are a valid state, and any odd value is a valid increment, so no generator has
    to be created."""
    import hashlib  # imported late: not needed for importing headrace

    digest = hashlib.blake2b(seed.to_bytes(8, "little"), digest_size=32).digest()
    state, increment = (int.from_bytes(digest[at : at + 16], "little") for at in (0, 16))
    inner = {"state": state, "inc": increment | 1}
    return {"bit_generator": "PCG64", "state": inner, "has_uint32": 0, "uinteger": 0}
