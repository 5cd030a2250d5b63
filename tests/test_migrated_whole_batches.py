# SPDX-License-Identifier: Apache-2.0
"""A DataLoader whose dataset returns whole batches (batch_size=None, with torch's BatchSampler as
sampler) is translated if these are its stacked records, and refused otherwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from migrated_classes import assert_same_batches, first_of, translated

import headrace as hr

torch = pytest.importorskip("torch")
from torch.utils.data import (  # noqa: E402
    BatchSampler,
    DataLoader,
    Dataset,
    RandomSampler,
    SequentialSampler,
    Subset,
    TensorDataset,
)

COUNT = 22


def numbers() -> Any:
    return TensorDataset(torch.arange(COUNT * 3.0).reshape(COUNT, 3), torch.arange(COUNT))


def whole_batches(dataset: Any, shuffle: bool = False, drop: bool = False, **options: Any) -> Any:
    order = RandomSampler(dataset) if shuffle else SequentialSampler(dataset)
    sampler = BatchSampler(order, 4, drop)
    return DataLoader(dataset, sampler=sampler, batch_size=None, **options)


class Table(Dataset):  # type: ignore[type-arg]
    """Columns, of which rows are taken as with a NumPy array, or in ascending order, as in HDF5."""

    ascending = False

    def __len__(self) -> int:
        return COUNT

    def __getitem__(self, rows: Any) -> dict[str, Any]:
        if self.ascending and not np.all(np.diff(np.atleast_1d(rows)) > 0):
            raise TypeError("Indexing elements must be in increasing order")
        x = np.arange(COUNT * 2, dtype=np.float32).reshape(COUNT, 2)
        return {"x": x[rows], "label": np.arange(COUNT)[rows]}


@pytest.mark.parametrize("drop_last", [False, True])
def test_batches_equal_those_of_torch(drop_last: bool) -> None:
    for dataset in (numbers(), Subset(numbers(), [7, 3, 3, 21, 0]), Table()):
        dataloader = whole_batches(dataset, drop=drop_last)
        loader = translated(dataloader)
        theirs = list(dataloader)
        assert len(loader) == len(theirs)
        if isinstance(dataset, Table):
            for mine, other in zip(loader.torch(), theirs, strict=True):
                assert mine.keys() == other.keys()
                assert all(torch.equal(mine[name], other[name]) for name in mine)
        else:
            assert_same_batches(dataloader, loader)


def test_a_random_order_is_shuffled_anew_in_each_epoch() -> None:
    loader = translated(whole_batches(numbers(), shuffle=True))
    epochs = [[batch[1].tolist() for batch in loader.torch()] for _ in range(2)]
    for epoch in epochs:
        assert [len(batch) for batch in epoch] == [4, 4, 4, 4, 4, 2]
        assert sorted(label for batch in epoch for label in batch) == list(range(COUNT))
    assert epochs[0] != epochs[1]


def test_a_dataset_that_takes_ascending_indices_only_can_be_sequential() -> None:
    table = Table()
    table.ascending = True
    loader = translated(whole_batches(table))
    assert torch.cat([batch["label"] for batch in loader.torch()]).tolist() == list(range(COUNT))
    with pytest.raises(hr.ConfigError, match=r"HR0834.*increasing order"):
        translated(whole_batches(table, shuffle=True))


class Summed(Table):
    """Its batches are not its stacked records."""

    def __getitem__(self, rows: Any) -> dict[str, Any]:
        values = super().__getitem__(rows)
        return {**values, "x": values["x"] - values["x"].mean()}


class Ragged(Table):
    def __getitem__(self, rows: Any) -> Any:
        return np.zeros(len(rows)) if isinstance(rows, list) else np.zeros(rows)


@pytest.mark.parametrize(
    ("dataloader", "what"),
    [
        (lambda: whole_batches([(torch.zeros(3), 1)] * 5), "list of indices.*TypeError"),
        (lambda: whole_batches(Summed()), r"indices \[0, 21\] is not the stacked records"),
        (lambda: whole_batches(Summed(), shuffle=True), r"indices \[21, 0\]"),
        (lambda: whole_batches(Ragged()), "stacked records"),
        (lambda: whole_batches(numbers(), collate_fn=first_of), "collate_fn=first_of gets whole"),
        (lambda: DataLoader(numbers(), sampler=[[1, 2]], batch_size=None), "no batches"),
    ],
)
def test_other_batches_are_refused(dataloader: Callable[[], Any], what: str) -> None:
    with pytest.raises(hr.ConfigError, match=f"(?s)HR0834.*{what}"):
        translated(dataloader())


def test_they_are_stacked_if_that_is_requested() -> None:
    loader = translated(whole_batches(Summed()), collate="default")
    assert next(iter(loader.torch()))["label"].tolist() == [0, 1, 2, 3]
    with pytest.raises(hr.ConfigError, match=r"(?s)HR0834.*default_convert gets whole batches"):
        translated(whole_batches(numbers()), collate="copy")
