# SPDX-License-Identifier: Apache-2.0
"""Promise: what holds of an order, a shard or a resume state holds at any number of records."""

from __future__ import annotations

import functools
import json
import operator
import pickle

import numpy as np
import pytest

import headrace as hr

BILLION = 1_000_000_000


def numbers(loader: hr.Loader, batches: int) -> list[list[int]]:
    return [
        batch["number"].tolist() for batch, _ in zip(loader.numpy(), range(batches), strict=False)
    ]


def test_records_are_functions_of_their_numbers() -> None:
    src = hr.simulated(BILLION, image=(3, 5, 7), classes=10)
    record = src[123_456_789]
    assert (record["label"], record["number"]) == (9, 123_456_789)
    assert record["image"].shape == (3, 5, 7) and record["image"].dtype == np.uint8
    again = hr.simulated(BILLION, image=(3, 5, 7), classes=10)
    assert np.array_equal(again[123_456_789]["image"], record["image"])
    assert not np.array_equal(src[123_456_788]["image"], record["image"])
    assert pickle.loads(pickle.dumps(src)).fingerprint == src.fingerprint
    assert again.fingerprint == src.fingerprint != hr.simulated(BILLION + 1).fingerprint
    assert src.key(BILLION - 1) == "102444/9761"
    for arguments in ({"records": 0}, {"shards": 11}, {"image": (3, 5)}, {"record_bytes": 0}):
        with pytest.raises(hr.ConfigError, match="HR0160"):
            hr.simulated(**{"records": 10, **arguments})


@pytest.mark.parametrize("shuffle", [False, True])
def test_ranks_of_a_thousand_tile_a_batch_of_a_billion_records(shuffle: bool) -> None:
    src = hr.simulated(BILLION, image=(1, 1, 1))
    world, rows = 1000, 2

    def loader(rank: int, of: int, size: int) -> hr.Loader:
        return hr.Loader(src, batch_size=size, shuffle=shuffle, shard=(rank, of), threads=1)

    (whole,) = numbers(loader(0, 1, world * rows), 1)
    assert len(set(whole)) == world * rows
    for rank in (0, 1, 500, 999):
        assert numbers(loader(rank, world, rows), 1)[0] == whole[rank * rows : (rank + 1) * rows]


def test_a_state_of_a_billion_records_is_small_and_goes_on_exactly() -> None:
    src = hr.simulated(BILLION, image=(1, 1, 1))

    def loader() -> hr.Loader:
        return hr.Loader(src, batch_size=4, shuffle=True, threads=1)

    first = loader()
    first.load_state_dict({**first.state_dict(), "batch": 200_000_000})
    assert len(json.dumps(first.state_dict())) < 4096
    expected = numbers(first, 4)
    second = loader()
    second.load_state_dict({**second.state_dict(), "batch": 200_000_002})
    assert numbers(second, 2) == expected[2:]


def test_parts_of_it_need_no_lists_of_numbers() -> None:
    src = hr.simulated(BILLION, image=(1, 1, 1))
    part = src[999_000_000::-1000]
    assert len(part) == 999_001 and part[1]["number"] == 998_999_000
    assert len(hr.subset(part, np.arange(0, 999_001, 1000))) == 1000


def test_blocks_and_shards_are_those_of_a_dataset_of_that_size() -> None:
    src = hr.simulated(1000, record_bytes=1 << 20, shards=3, image=(1, 1, 1))
    assert "3 shards" in repr(src) and src.key(333) == "1/0"
    for shuffle in (True, "blocks"):
        loader = hr.Loader(src, batch_size=100, shuffle=shuffle, shuffle_window=2, threads=1)
        epoch = numbers(loader, 10)
        assert sorted(functools.reduce(operator.iadd, epoch, [])) == list(range(1000))
        # Blocks of 8 MiB, two of them in a window: neighbours are near one another.
        blocks = {number // 8 for number in epoch[0][:16]}
        assert (len(blocks) <= 4) == (shuffle == "blocks")
    assert src.column("label").tolist() == list(range(1000))
