# SPDX-License-Identifier: Apache-2.0
"""Grain's protocols in both directions: ``hr.grain`` and ``hr.from_grain``.

A headrace.Source already is a RandomAccessDataSource. Tested with grain 0.2.18.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from grain import DatasetIterator, IterDataset

from headrace.arguments import integer
from headrace.loader import Loader
from headrace.loader.views import Delivered
from headrace.sources import Source
from headrace.sources.objects import source_from_object
from headrace.trainers import NO_RECORDS

_MOST = 1 << 40  # records; a MapDataset that repeats indefinitely has sys.maxsize


def grain(loader: Any, epochs: int | None = 1) -> Any:
    """A loader's batches as a ``grain.IterDataset``, whose iterator has Grain's ``get_state`` and
    ``set_state``. These use the loader's state, which is exact, for any number of ranks. loader: a
    Loader, whose batches are delivered as dictionaries of NumPy arrays, or a view of one. epochs:
    passes over the records; None: unlimited. One iterator at a time: a new one ends the previous
    ones, and begins with epoch 0 unless its state is set.
    """
    view = loader.numpy(batch="dict") if isinstance(loader, Loader) else loader
    if not isinstance(view, Delivered):
        raise TypeError(f"hr.grain takes a headrace.Loader or a view of one, not {loader!r}")
    return _Batches(view, None if epochs is None else integer("epochs", epochs, 1))


class _Batches(IterDataset):  # type: ignore[misc]
    def __init__(self, view: Delivered, epochs: int | None) -> None:
        super().__init__()
        self._view, self._epochs = view, epochs

    def __iter__(self) -> Any:
        return _Iterator(self._view, self._epochs)

    def __str__(self) -> str:
        return f"hr.grain({self._view!r})"


class _Iterator(DatasetIterator):  # type: ignore[misc]
    def __init__(self, view: Delivered, epochs: int | None) -> None:
        super().__init__()
        self._view, self._epochs = view, epochs
        self._run: Iterator[Any] | None = None
        self._is_closed = False
        self.set_state({**view.state_dict(), "epoch": 0, "batch": 0, "bad_records": 0})

    def __next__(self) -> Any:
        if self._is_closed:
            raise ValueError("this iterator is closed")
        while True:
            if self._run is None:
                self._begin()
            assert self._run is not None
            for batch in self._run:
                return batch
            self._run = None

    def _begin(self) -> None:
        """The loader's current epoch; raises StopIteration after the last one."""
        state = self._view.state_dict()
        epoch = state["epoch"] + (state["batch"] >= len(self._view))
        if self._epochs is not None and epoch >= self._epochs:
            raise StopIteration
        self._run = iter(self._view)

    def get_state(self) -> dict[str, Any]:
        return dict(self._view.state_dict())

    def set_state(self, state: dict[str, Any]) -> None:
        self._run = None
        self._view.load_state_dict(state)

    def start_prefetch(self) -> None:
        if self._run is None:
            self._begin()

    def close(self) -> None:
        """The loader stays open, since another iterator may follow."""
        self._run, self._is_closed = None, True
        super().close()


def from_grain(source: Any, **options: Any) -> Source:
    """A Grain RandomAccessDataSource or MapDataset as a source for a Loader, which shuffles,
    shards and repeats it instead of Grain. Records are read on one Python thread.

    options: as in ``headrace.open`` for objects: names=, kinds=, shapes=, classes=, labels=.
    Raises ConfigError HR0851 if it does not have a record at each index.
    """
    if not hasattr(source, "__len__") or not hasattr(source, "__getitem__"):
        raise NO_RECORDS.error(f"{type(source).__name__} has no len() and [i]")
    if len(source) > _MOST:
        raise NO_RECORDS.error("it repeats indefinitely", hint="pass the dataset before .repeat()")
    return source_from_object(_Records(source), **options)


class _Records:
    """Records by number; a missing one is an error."""

    def __init__(self, source: Any) -> None:
        self._source = source

    def __len__(self) -> int:
        return len(self._source)

    def __getitem__(self, index: int) -> Any:
        record = self._source[index]
        if record is None:  # a filtered MapDataset returns None for missing records
            raise NO_RECORDS.error(f"record {index} was filtered out")
        return record

    def __repr__(self) -> str:
        return repr(self._source)
