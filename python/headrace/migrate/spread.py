# SPDX-License-Identifier: Apache-2.0
"""Which records of a dataset are looked at, where not all are: some of all of it."""

from __future__ import annotations


def spread(length: int, count: int) -> list[int]:
    """At most ``count`` of the positions below ``length``, ascending: first, last, evenly between.

    Without np.unique, for which NumPy imports its masked arrays: 15 ms of a script's start.
    """
    gaps = max(1, min(count, length) - 1)
    return sorted({i * (length - 1) // gaps for i in range(min(count, length))})
