# SPDX-License-Identifier: Apache-2.0
"""States of Python's and NumPy's Mersenne Twisters, copied directly in memory.

The generators' own functions convert each of 624 words to an integer, or make an array, which takes
tens of microseconds per record. The position of the words in memory is determined once, from a
generator with a known state. If the words are not found, as in another implementation of Python,
the generators' own functions are used.
"""

from __future__ import annotations

import ctypes
import functools
import pickle
import random
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

_WORDS = 624
_BYTES = 4 * _WORDS + 4  # words and the index of the next one
_GAUSS = 0.7310585786300049  # a stored second normal number

Copy = Callable[[], Any]
Put = Callable[[Any], None]


def of_python(generator: random.Random) -> tuple[Copy, Put]:
    """Functions that copy a generator's state, for comparison and put(), and restore it."""
    offset = _python_offset() if type(generator) is random.Random else None
    if offset is None:
        return generator.getstate, generator.setstate
    address = id(generator) + offset

    def take() -> Any:
        return ctypes.string_at(address, _BYTES), generator.gauss_next  # type: ignore[attr-defined]

    def put(state: Any) -> None:
        ctypes.memmove(address, state[0], _BYTES)
        generator.gauss_next = state[1]  # type: ignore[attr-defined]

    return take, put


def of_numpy(generator: np.random.RandomState) -> tuple[Copy, Put]:
    """The same for a RandomState, whose bit generator may be replaced."""
    offset = _numpy_offset() if type(generator) is np.random.RandomState else None
    if offset is None:
        return functools.partial(_pickled, generator), functools.partial(_unpickle, generator)
    gauss = id(generator) + offset
    known: Any = None
    address = 0

    def find() -> Any:
        nonlocal known, address
        bits = generator._bit_generator
        if bits is not known and type(bits) is np.random.MT19937:
            known, address = bits, bits.ctypes.state_address
        return bits if bits is known else None

    def take() -> Any:
        if (bits := find()) is None:
            return _pickled(generator)
        with bits.lock:  # a draw of many numbers holds this lock, but not the interpreter's
            return ctypes.string_at(address, _BYTES), ctypes.string_at(gauss, 16)

    def put(state: Any) -> None:
        if isinstance(state, bytes) or (bits := find()) is None:
            _unpickle(generator, state)
            return
        with bits.lock:
            ctypes.memmove(address, state[0], _BYTES)
            ctypes.memmove(gauss, state[1], 16)

    return take, put


def _pickled(generator: Any) -> bytes:
    return pickle.dumps(generator.get_state(legacy=False))


def _unpickle(generator: Any, state: bytes) -> None:
    generator.set_state(pickle.loads(state))


@functools.cache
def _python_offset() -> int | None:
    """Offset of the index, which 624 words follow."""
    generator = random.Random(5)
    generator.random()
    *words, index = generator.getstate()[1]
    found = _memory_of(generator).find(struct.pack(f"i{_WORDS}I", index, *words))
    return found if found >= 0 else None


@functools.cache
def _numpy_offset() -> int | None:
    """Offset of the flag for a second normal number, which follows it. None also if the words of an
    MT19937 are not where it says."""
    generator = np.random.RandomState(5)
    state: Any = generator.get_state()
    name, words, index = state[:3]
    address = generator._bit_generator.ctypes.state_address
    if ctypes.string_at(address, _BYTES) != words.tobytes() + struct.pack("i", index):
        return None
    places = []
    for has in (0, 1):
        generator.set_state((name, words, index, has, _GAUSS))
        places.append(_memory_of(generator).find(struct.pack("ixxxxd", has, _GAUSS)))
    return places[0] if places[0] == places[1] and places[0] >= 0 else None


def _memory_of(thing: Any) -> bytes:
    return ctypes.string_at(id(thing), type(thing).__basicsize__)
