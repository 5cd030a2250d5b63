# SPDX-License-Identifier: Apache-2.0
"""The faults of ../faults.cc, in a program that it was preloaded into."""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterator

ALLOCATIONS, READS = 1, 2
SHORT = -1  # in place of an errno: reads return fewer bytes
EVER = 1 << 62

_library = ctypes.PyDLL(os.environ["LD_PRELOAD"])
_library.faults_arm.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_int)
_library.faults_disarm.restype = _library.faults_live.restype = ctypes.c_int64


class Counted:
    """The engine's calls of a kind, after the context."""

    calls = 0


@contextlib.contextmanager
def faults(kind: int, first: int, last: int, error: int = 1) -> Iterator[Counted]:
    """Makes the engine's calls of a kind fail, from first to last, counted from 1; 0: none."""
    counted = Counted()
    _library.faults_arm(kind, first, last, error)
    try:
        yield counted
    finally:
        counted.calls = _library.faults_disarm()


def live() -> int:
    """Number of C++ objects currently allocated."""
    return int(_library.faults_live())
