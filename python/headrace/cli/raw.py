# SPDX-License-Identifier: Apache-2.0
"""Reading without decoding: what `headrace bench --preset raw` measures.

It looks like a loader to the benchmark, and reads records as they are stored with some threads.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

READ_AHEAD = 2  # batches in flight for each thread


class RawReader:
    """Batches of stored values in the source's order; each is a tuple of lists, one a field."""

    def __init__(self, source: Any, batch_size: int, threads: int) -> None:
        self.batch_size = batch_size
        self._source, self._threads = source, threads
        self._pool = ThreadPoolExecutor(threads)
        self._read_seconds = self._wait_seconds = 0.0

    def __iter__(self) -> Iterator[tuple[list[Any], ...]]:
        pending: deque[Future[tuple[float, tuple[list[Any], ...]]]] = deque()
        for first in range(0, len(self._source), self.batch_size):
            numbers = range(first, min(first + self.batch_size, len(self._source)))
            pending.append(self._pool.submit(self._read, numbers))
            if len(pending) >= READ_AHEAD * self._threads:
                yield self._take(pending)
        while pending:
            yield self._take(pending)

    def _read(self, numbers: Sequence[int]) -> tuple[float, tuple[list[Any], ...]]:
        start = time.perf_counter()
        records = [self._source.engine.read(number) for number in numbers]
        fields = tuple([record[name] for record in records] for name in records[0])
        return time.perf_counter() - start, fields

    def _take(
        self, pending: deque[Future[tuple[float, tuple[list[Any], ...]]]]
    ) -> tuple[list[Any], ...]:
        start = time.perf_counter()
        seconds, batch = pending.popleft().result()
        self._wait_seconds += time.perf_counter() - start
        self._read_seconds += seconds
        return batch

    def stats(self) -> dict[str, Any]:
        stages = dict.fromkeys(("entropy", "transform", "resample", "store", "python"), 0.0)
        times = {"read": self._read_seconds, "wait": self._wait_seconds}
        return {"threads": self._threads, "stages": {**stages, **times}}

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)
