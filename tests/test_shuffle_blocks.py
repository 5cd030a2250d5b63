# SPDX-License-Identifier: Apache-2.0
"""Promise: ``shuffle="blocks"`` keeps exact order, epochs, shards and resume, and reads few blocks
at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as hr

RECORDS = 3000  # blocks of 256 records


def loader(**given: Any) -> hr.Loader:
    source = hr.records(value=np.arange(RECORDS))
    options = {"batch_size": 50, "shuffle": "blocks", "shuffle_window": 3, "seed": 7, **given}
    return hr.Loader(source, **options)


def values(batches: Any) -> list[int]:
    return [int(value) for batch in batches for value in batch.value]


def test_every_record_comes_once_in_another_order_each_epoch() -> None:
    run = loader()
    epochs = [values(run) for _ in range(3)]
    for epoch in epochs:
        assert sorted(epoch) == list(range(RECORDS))
    assert epochs[0] != epochs[1] != epochs[2]
    assert values(loader(threads=1)) == epochs[0]


def test_a_window_of_blocks_is_read_at_a_time() -> None:
    order = np.array(values(loader()))
    for begin in range(0, RECORDS - 768, 768):
        assert len(set(order[begin : begin + 768] // 256)) <= 4  # three, and the short last one


def test_it_resumes_at_every_batch() -> None:
    whole = values(loader())
    first = loader()
    for number, _ in enumerate(first, 1):
        rest = loader()
        rest.load_state_dict(first.state_dict())
        if number % 7 == 0:
            assert values(rest) == whole[number * 50 :]


def test_shards_make_up_the_same_batches() -> None:
    whole = [batch.value.tolist() for batch in loader(batch_size=60)]
    parts = [
        [batch.value.tolist() for batch in loader(batch_size=20, shard=(rank, 3))]
        for rank in range(3)
    ]
    assert [a + b + c for a, b, c in zip(*parts, strict=True)] == whole


def test_another_window_is_another_order() -> None:
    state = loader().state_dict()
    with pytest.raises(hr.ConfigError, match="another order"):
        loader(shuffle_window=4).load_state_dict(state)
    with pytest.raises(hr.ConfigError, match="'blocks'"):
        loader(shuffle="block")
    with pytest.raises(hr.ConfigError, match="shuffle_window"):
        loader(shuffle_window=0)
