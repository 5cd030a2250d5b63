# SPDX-License-Identifier: Apache-2.0
"""Chooses sample records spread over the dataset."""

from __future__ import annotations


def spread(length: int, count: int) -> list[int]:
    """At most ``count`` positions below ``length``, ascending: the first, the last, and evenly in
    between. Without np.unique, for which NumPy imports its masked arrays, in 15 ms.
    """
    gaps = max(1, min(count, length) - 1)
    return sorted({i * (length - 1) // gaps for i in range(min(count, length))})
