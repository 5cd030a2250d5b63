# SPDX-License-Identifier: Apache-2.0
"""A loader as a DataLoader's parts: its dataset, sampler, batch sampler and collate function.

DataLoaders that trainers build from these parts (accelerate's skip_first_batches, and thus Hugging
Face's Trainer when it resumes) still deliver the loader's finished batches, and skip without
decoding: instead of a list of indices, the batch sampler yields ``BatchIndices``, which identify
the batch.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from typing import Any

from headrace.errors import declare
from headrace.loader.viewed import ViewedLoader
from headrace.loader.views import Delivered

_NOT_FINISHED = declare(
    "HR0808",
    "config",
    "view's collate_fn called with records",
    "Batches of a Headrace loader are complete, so the collate_fn of its view only passes them "
    "on, in a DataLoader made of the view's dataset, batch_sampler and collate_fn, with "
    "num_workers=0. It does not collate records: iterate the view itself, or give the DataLoader "
    "its own collate_fn for records of the dataset.",
)


class BatchIndices(Sequence[int]):
    """The records of batch ``number`` of an epoch; computed on demand."""

    def __init__(self, batches: Batches, epoch: int, number: int) -> None:
        self.batches = batches
        self.epoch = epoch
        self.number = number

    def _indices(self) -> list[int]:
        engine = self.batches.loader.assembly.engine()
        return list(engine.indices(self.epoch, self.number))

    def __len__(self) -> int:
        return len(self._indices())

    def __getitem__(self, index: Any) -> Any:
        return self._indices()[index]

    def __reduce__(self) -> Any:
        return list, (self._indices(),)  # for a worker process, which has no loader


class Finished:
    """A finished batch, as passed to ``finished_batch``."""

    def __init__(self, batch: Any) -> None:
        self.batch = batch


def finished_batch(records: Any) -> Any:
    """The collate_fn of a view: returns the finished batch unchanged. Raises ConfigError HR0808 if
    it gets records instead.
    """
    if isinstance(records, Finished):
        return records.batch
    raise _NOT_FINISHED.error(
        f"it got {type(records).__name__}",
        hint="iterate loader.torch(), or a DataLoader of all its parts with num_workers=0",
    )


class Batches:
    """The batch sampler of a view: the batches of the next epoch."""

    def __init__(self, view: Delivered, loader: ViewedLoader) -> None:
        self.view = view
        self.loader = loader
        self.sampler = Order(view, loader)
        self._run: Any = None
        self._next = (-1, -1)  # epoch and number of the next batch of the run

    @property
    def batch_size(self) -> int:
        """Records in a full batch of this rank."""
        return self.loader.batch_size

    @property
    def drop_last(self) -> bool:
        """Whether an incomplete last batch is dropped."""
        return bool(self.loader.assembly.given["last_batch"] == "drop")

    def __len__(self) -> int:
        return len(self.loader)

    def set_epoch(self, epoch: int) -> None:
        """See Loader.set_epoch."""
        self.loader.set_epoch(epoch)

    def __iter__(self) -> Iterator[BatchIndices]:
        give_batches(getattr(self.view, "dataset", None))
        return self._of_epoch(self.sampler.next_epoch())

    def _of_epoch(self, epoch: int) -> Iterator[BatchIndices]:
        for number in range(len(self)):
            yield BatchIndices(self, epoch, number)
        # Past the epoch's end, like a for loop; only here, since its last batch was in use until
        # now.
        if self._next == (epoch, len(self)) and self._run is not None:
            run, self._run = self._run, None
            if not run.has_ended():
                next(run, None)

    def take(self, epoch: int, number: int) -> Any:
        """Returns that batch, without making earlier ones."""
        run = self._run
        if run is None or run.has_ended() or self._next != (epoch, number):
            place = {"epoch": epoch, "batch": number, "bad_records": 0}
            self.view.load_state_dict({**self.view.state_dict(), **place})
            run = self._run = iter(self.view)
        batch = next(run)
        self._next = (epoch, number + 1)
        return batch


class Order:
    """The sampler of a view: record indices of this rank in the next epoch."""

    def __init__(self, view: Delivered, loader: ViewedLoader) -> None:
        self._view = view
        self._loader = loader

    @property
    def epoch(self) -> int:
        """The current epoch."""
        return self._loader.epoch

    def set_epoch(self, epoch: int) -> None:
        """See Loader.set_epoch."""
        self._loader.set_epoch(epoch)

    def next_epoch(self) -> int:
        """The epoch of an iteration that starts now."""
        self._loader.place()
        state = self._loader.present_state()
        begun = state["batch"] > 0 and not self._loader.is_resumed
        return state["epoch"] + (begun or state["batch"] >= len(self._loader))

    def __len__(self) -> int:
        given, count = self._loader.assembly.given, len(self._loader)
        if given["batch_size"] is None and given["global_batch_size"] is None:
            return sum(len(self._batch(0, number)) for number in range(count))
        return (count - 1) * len(self._batch(0, 0)) + len(self._batch(0, count - 1))

    def __iter__(self) -> Iterator[int]:
        epoch = self.next_epoch()
        for number in range(len(self._loader)):
            yield from self._batch(epoch, number)

    def _batch(self, epoch: int, number: int) -> list[int]:
        return self._loader.assembly.engine().indices(epoch, number)


class Records:
    """The dataset of a view: the records of ``original``, or of the loader's source."""

    def __init__(self, loader: ViewedLoader, original: Any = None) -> None:
        self._loader = loader
        self._records = loader.source if original is None else original

    @property
    def classes(self) -> list[str]:
        """Names of the labels."""
        return self._loader.source.classes

    @property
    def class_to_idx(self) -> dict[str, int]:
        """The label of each class."""
        return self._loader.source.class_to_idx

    def __len__(self) -> int:
        return len(self._records)

    def __getitem__(self, index: int) -> Any:
        return self._records[index]

    def __getitems__(self, indices: Any) -> Any:
        return _batch_or_records(self, None, indices)


class _BatchesOf:
    """``dataset.__getitems__`` of a DataLoader's original dataset, for batches of a view, too."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = weakref.ref(dataset)  # it refers to this object

    def __call__(self, indices: Any) -> Any:
        dataset = self._dataset()
        own = getattr(type(dataset), "__getitems__", None)
        return _batch_or_records(dataset, own, indices)

    def __reduce__(self) -> Any:
        return _BatchesOf, (self._dataset(),)


def _batch_or_records(dataset: Any, own: Any, indices: Any) -> Any:
    if isinstance(indices, BatchIndices):
        return Finished(indices.batches.take(indices.epoch, indices.number))
    return [dataset[index] for index in indices] if own is None else own(dataset, indices)


def give_batches(dataset: Any) -> None:
    """Lets a DataLoader made of the view's parts fetch from the original dataset: torch's fetcher
    requests all records of a batch at once.
    """
    attributes = getattr(dataset, "__dict__", None)
    if isinstance(dataset, Records) or attributes is None:
        return
    if not isinstance(attributes.get("__getitems__"), _BatchesOf):
        attributes["__getitems__"] = _BatchesOf(dataset)
