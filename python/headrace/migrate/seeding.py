# SPDX-License-Identifier: Apache-2.0
"""Draws as a function of a seed: global generators of torch, NumPy and Python, and others.

They are seeded before code of the user's is called, and put back afterwards. One thread does that
at a time; what another thread draws from a global generator meanwhile comes from the wrong stream.
That cannot be prevented, and is found: a generator that is another one than it was left by the last
call is drawn from elsewhere.
"""

from __future__ import annotations

import contextlib
import functools
import operator
import os
import random
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from headrace.errors import warn
from headrace.migrate import twisters
from headrace.migrate.generators import seed_all

_lock = threading.RLock()
_left: dict[str, Any] = {}  # states of global generators, as the last call left them
_warned: set[str] = set()


def _renew() -> None:
    """In a forked child: the thread that was inside is not there."""
    global _lock
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_renew)


class _Global(NamedTuple):
    """A generator that all threads share. take: its state."""

    take: Callable[[], Any]
    put: Callable[[Any], None]
    seed: Callable[[int], Any]
    equal: Callable[[Any, Any], bool]


@functools.lru_cache(2)
def _globals(torch: Any) -> dict[str, _Global]:
    """torch: the module, where the process has it."""
    python: Any = random.random
    numpy: Any = np.random.random_sample
    out = {
        "random": _Global(*twisters.of_python(python.__self__), random.seed, operator.eq),
        "numpy.random": _Global(
            *twisters.of_numpy(numpy.__self__),
            lambda seed: np.random.seed(seed & 0xFFFFFFFF),
            operator.eq,
        ),
    }
    if torch:
        out["torch"] = _Global(
            torch.random.get_rng_state,
            torch.random.set_rng_state,
            torch.random.default_generator.manual_seed,
            torch.equal,
        )
    return out


@contextlib.contextmanager
def seeded(seed: int, more: Sequence[Any] = (), of: str = "") -> Iterator[None]:
    """Global generators, and more, as a function of ``seed`` inside, and as they were outside. One
    thread is inside at a time. of: what is called, while another thread may draw."""
    with _lock:
        put_back = seed_all(more, seed)
        try:
            yield from _seeded(seed, of)
        finally:
            put_back()


def begin() -> None:
    """A loop begins: what was drawn before is no matter."""
    _left.clear()


def _seeded(seed: int, of: str) -> Iterator[None]:
    own = _globals(sys.modules.get("torch"))
    before = {name: each.take() for name, each in own.items()}
    others = [n for n in own if of and n in _left and not own[n].equal(_left[n], before[n])]
    for each in own.values():
        each.seed(seed)
    seeds = {name: own[name].take() for name in others}
    try:
        yield
    finally:
        for name in others:
            if name not in _warned and not own[name].equal(own[name].take(), seeds[name]):
                _warned.add(name)
                warn(_BOTH.format(name, of))
        for name, each in own.items():
            each.put(before[name])
        _left.update(before)


_BOTH = (
    "the training loop draws from {0} while {1} does on another thread: either may get the other's "
    "numbers, so runs are not repeatable; a generator of the loop's own, or python_workers=1, "
    "keeps them apart"
)
