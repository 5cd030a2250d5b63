# SPDX-License-Identifier: Apache-2.0
"""``len()`` is correct, each record comes once per epoch, and early breaks and restarts work."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from conftest import Numbers

import headrace as hr


def ids(loader: hr.Loader) -> list[list[int]]:
    return [batch.id.tolist() for batch in loader]


@pytest.mark.parametrize("records", [1, 2, 7, 8, 9])
@pytest.mark.parametrize("shuffle", [False, True])
def test_each_record_is_delivered_once(records: int, shuffle: bool) -> None:
    loader = hr.Loader(Numbers(records), batch_size=4, shuffle=shuffle, fields="id")
    for _ in range(3):
        batches = ids(loader)
        assert len(batches) == len(loader) == -(-records // 4)
        assert sorted(number for batch in batches for number in batch) == list(range(records))


def test_the_last_batch_is_short_dropped_or_padded() -> None:
    def sizes(last_batch: str) -> list[int]:
        return [
            len(b)
            for b in ids(hr.Loader(Numbers(10), batch_size=4, last_batch=last_batch, fields="id"))
        ]

    assert sizes("keep") == [4, 4, 2]
    assert sizes("drop") == [4, 4]
    assert sizes("pad") == [4, 4, 4]


def test_padding_is_marked_not_valid() -> None:
    loader = hr.Loader(Numbers(10), batch_size=4, last_batch="pad", fields=("id", "valid"))
    batches = list(loader)
    assert [batch.valid.sum() for batch in batches] == [4, 4, 2]
    assert sum(len(batch.id[batch.valid]) for batch in batches) == 10


@pytest.mark.parametrize("world", [1, 2, 3, 4])
@pytest.mark.parametrize("last_batch", ["keep", "drop", "pad"])
def test_all_ranks_have_the_same_number_of_batches(world: int, last_batch: str) -> None:
    loaders = [
        hr.Loader(
            Numbers(30), batch_size=2, shuffle=True, shard=(rank, world), last_batch=last_batch,
            fields=("id", "valid"),
        )
        for rank in range(world)
    ]  # fmt: skip
    assert len({len(loader) for loader in loaders}) == 1
    seen = [batch.id[batch.valid] for loader in loaders for batch in loader]
    everything = np.concatenate(seen)
    assert len(np.unique(everything)) == len(everything)
    whole = 30 - 30 % (2 * world) if last_batch == "drop" else 30
    assert len(everything) == whole


def test_each_loop_is_the_next_epoch() -> None:
    loader = hr.Loader(Numbers(20), batch_size=4, shuffle=True, fields="id")
    first, second = ids(loader), ids(loader)
    assert first != second
    assert loader.epoch == 2
    loader.set_epoch(0)
    assert ids(loader) == first


def test_an_early_break_ends_the_epoch() -> None:
    loader = hr.Loader(Numbers(20), batch_size=4, shuffle=True, fields="id")
    reference = hr.Loader(Numbers(20), batch_size=4, shuffle=True, fields="id")
    epochs = [ids(reference) for _ in range(2)]
    for batch in loader:
        assert batch.id.tolist() == epochs[0][0]
        break
    assert loader.epoch == 0
    assert ids(loader) == epochs[1]


def test_iter_without_a_batch_does_not_count() -> None:
    loader = hr.Loader(Numbers(20), batch_size=4, shuffle=True, fields="id")
    iter(loader)
    iter(loader)
    assert loader.epoch == 0


def test_peeking_does_not_count() -> None:
    loader = hr.Loader(Numbers(20), batch_size=4, shuffle=True, fields=("x", "id"))
    peeked = loader.peek().id.tolist()
    loader.batch(7, 2)
    loader.trace(0)
    assert next(iter(loader)).id.tolist() == peeked
    assert loader.epoch == 0
    assert loader.state_dict()["batch"] == 1


def test_peek_in_the_middle_is_the_next_batch(pictures: Path) -> None:
    loader = hr.Loader(pictures, batch_size=4, shuffle=True, fields=("label", "id"))
    iteration = iter(loader)
    next(iteration)
    peeked = loader.peek()
    assert next(iteration).id.tolist() == peeked.id.tolist()


def test_a_second_iter_closes_the_first() -> None:
    loader = hr.Loader(Numbers(20), batch_size=4, fields="id")
    first = iter(loader)
    next(first)
    second = iter(loader)
    next(second)
    with pytest.raises(hr.ConfigError, match="this iterator was closed"):
        next(first)
    next(second)


def test_an_exhausted_iterator_stays_exhausted() -> None:
    loader = hr.Loader(Numbers(3), batch_size=4, fields="id")
    iteration = iter(loader)
    next(iteration)
    for _ in range(2):
        with pytest.raises(StopIteration):
            next(iteration)
    assert len(ids(loader)) == 1


def test_len_is_always_the_full_epoch() -> None:
    loader = hr.Loader(Numbers(20), batch_size=4)
    iteration = iter(loader)
    next(iteration)
    assert len(loader) == 5
    loader.load_state_dict(loader.state_dict())
    assert len(loader) == 5


def test_several_loaders_run_at_once(pictures: Path) -> None:
    loaders = [hr.Loader(pictures, batch_size=3, fields=("label", "id")) for _ in range(4)]
    together = list(zip(*loaders, strict=True))
    assert len(together) == 8
    for batches in together:
        assert len({tuple(batch.id.tolist()) for batch in batches}) == 1
