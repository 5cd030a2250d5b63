# SPDX-License-Identifier: Apache-2.0
"""Reading without decoding: what `headrace bench --preset raw` measures.

It looks like a loader to the benchmark, and has the engine read records as they are stored. A value
becomes an object of Python's only when somebody looks at it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, overload

from headrace import _core
from headrace.counters import STAGES

READ_AHEAD = 2  # batches in flight for each thread


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

    def views(self) -> list[Any]:
        """The bytes of the values where the engine read them to; valid for as long as held."""
        return self._batch.views(self._field)


class RawReader:
    """Batches of stored values; each is a tuple with a column for each field.

    order: the numbers of the records, int64; those of the source in its order where left out.
    """

    def __init__(
        self, source: Any, batch_size: int, threads: int, order: Any | None = None
    ) -> None:
        import numpy as np

        self.batch_size = batch_size
        self._threads = threads
        self._fields = range(len(source.schema))
        numbers = np.arange(len(source)) if order is None else np.asarray(order, np.int64)
        self._stream: _core.RecordStream | None = _core.RecordStream(
            source.engine, numbers, batch_size, threads, READ_AHEAD * threads
        )
        self._read_seconds = self._wait_seconds = 0.0

    def __iter__(self) -> Iterator[tuple[RawColumn, ...]]:
        stream = self._stream
        if stream is None:
            raise ValueError("this reader is closed")
        stream.start()
        while True:
            start = time.perf_counter()
            batch = stream.next()
            self._wait_seconds += time.perf_counter() - start
            if batch is None:
                return
            self._read_seconds += batch.read_seconds
            yield tuple(RawColumn(batch, field) for field in self._fields)

    def stats(self) -> dict[str, Any]:
        times = {"read": self._read_seconds, "wait": self._wait_seconds}
        return {"threads": self._threads, "stages": {**dict.fromkeys(STAGES, 0.0), **times}}

    def close(self) -> None:
        self._stream = None
