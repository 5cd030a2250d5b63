# SPDX-License-Identifier: Apache-2.0
"""The order in which a shuffle buffer returns a stream: computed from (seed, epoch, record), so
that a run resumes without the buffer's contents.

Record i is held until the stream is at i + d, where d is drawn from [0, 2 * size) for this record
alone. So about ``size`` records are held, never more than 2 * size, and no record moves by more
than 2 * size. So the record at a position depends only on the records near it, and the order is the
same from any starting point.

>>> order = ShuffleBuffer(2, seed=5, epoch=0)
>>> [number for number, _ in order.of(enumerate("abcdefgh"))]
[2, 0, 1, 3, 4, 5, 6, 7]
>>> order.begin(6)
(3, 3)
>>> [number for number, _ in order.of((number, "") for number in range(3, 8))][3:]
[6, 7]
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

_BITS = 32  # fractional bits, so that no two records are held equally long
_BLOCK = 4096  # number of draws made at once


class ShuffleBuffer:
    """The order of one epoch. size: 0 keeps the iterable's order."""

    def __init__(self, size: int, seed: int, epoch: int) -> None:
        self._span = max(1, 2 * size)
        self._key = np.array([seed % (1 << 64), epoch], np.uint64)
        self._block, self._draws = -1, np.empty(0, np.uint64)

    def begin(self, place: int) -> tuple[int, int]:
        """For an order that starts at this position: the first record that it needs, and how many
        of the records returned by ``of`` from there come before the position.
        """
        first = max(0, place - self._span + 1)
        return first, place - first

    def _until(self, number: int) -> int:
        """The stream's position when the record is returned."""
        if self._span == 1:
            return number << _BITS
        block, within = divmod(number, _BLOCK)
        if block != self._block:
            draws = np.random.Philox(key=self._key, counter=np.array([0, block, 0, 0], np.uint64))
            self._block, self._draws = block, draws.random_raw(_BLOCK) >> np.uint64(64 - _BITS)
        return (number << _BITS) + int(self._draws[within]) * self._span

    def of(self, records: Iterable[tuple[int, Any]]) -> Iterator[tuple[int, Any]]:
        """Reorders consecutively numbered records."""
        held: list[tuple[int, int, Any]] = []
        for number, record in records:
            heapq.heappush(held, (self._until(number), number, record))
            while held and held[0][0] <= (number + 1) << _BITS:
                yield heapq.heappop(held)[1:]
        while held:
            yield heapq.heappop(held)[1:]
