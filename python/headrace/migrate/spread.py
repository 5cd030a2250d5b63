# SPDX-License-Identifier: Apache-2.0
"""Chooses the records to inspect, if not all: some, spread over the dataset."""

from __future__ import annotations


def spread(length: int, count: int) -> list[int]:
    """At most ``count`` of the positions below ``length``, ascending: first, last, and evenly in
    between. Without np.unique, because NumPy imports its masked arrays for it, which takes 15 ms.
    """
    gaps = max(1, min(count, length) - 1)
    return sorted({i * (length - 1) // gaps for i in range(min(count, length))})
