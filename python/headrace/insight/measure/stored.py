# SPDX-License-Identifier: Apache-2.0
"""Reads stored records without decoding, for the rate of a source alone: `headrace bench --preset
raw`. A value becomes a Python object only when it is accessed.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, overload

import numpy as np

from headrace import _core

READ_AHEAD = 2  # batches in flight per thread


class RawColumn(Sequence[Any]):
    """The values of one field in a batch."""

    def __init__(self, batch: _core.StoredBatch, field: int) -> None:
        self._batch, self._field = batch, field

    def __len__(self) -> int:
        return len(self._batch)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._batch.values(self._field))

    @overload
    def __getitem__(self, at: int) -> Any: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Any]: ...
    def __getitem__(self, at: int | slice) -> Any:
        return self._batch.values(self._field)[at]


class RawReader:
    """Batches of stored values; each is a tuple with a column for each field.

    order: record indices, int64; default: all records in the source's order.
    """

    def __init__(
        self, source: Any, batch_size: int, threads: int, order: Any | None = None
    ) -> None:
        self.batch_size = batch_size
        self._threads = threads
        self._fields = range(len(source.schema))
        self._order = np.arange(len(source)) if order is None else np.asarray(order, np.int64)
        self._reader: _core.StoredReader | None = _core.StoredReader(source.engine)
        self._read_seconds = self._wait_seconds = 0.0

    def __iter__(self) -> Iterator[tuple[RawColumn, ...]]:
        if self._reader is None:
            raise ValueError("this reader is closed")
        batches = read_ahead(self._reader, self._order, self.batch_size, self._threads)
        while True:
            start = time.perf_counter()
            batch = next(batches, None)
            self._wait_seconds += time.perf_counter() - start
            if batch is None:
                return
            self._read_seconds += batch.read_seconds
            yield tuple(RawColumn(batch, field) for field in self._fields)

    def stats(self) -> dict[str, Any]:
        stages = dict.fromkeys(
            ("decode", "prepare", "transform", "resample", "store", "python"), 0.0
        )
        times = {"read": self._read_seconds, "wait": self._wait_seconds}
        return {"threads": self._threads, "stages": {**stages, **times}}

    def close(self) -> None:
        self._reader = None


def read_ahead(
    reader: _core.StoredReader, order: Any, batch_size: int, threads: int
) -> Iterator[_core.StoredBatch]:
    """Reads the records of an order in batches, ahead of the consumer, on threads."""
    ahead: deque[Future[_core.StoredBatch]] = deque()
    with ThreadPoolExecutor(threads, "headrace-reader") as pool:
        try:
            for begin in range(0, len(order), batch_size):
                ahead.append(pool.submit(reader.read, order[begin : begin + batch_size]))
                if len(ahead) >= READ_AHEAD * threads:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()
        finally:
            for one in ahead:
                one.cancel()
