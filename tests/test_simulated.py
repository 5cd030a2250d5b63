# SPDX-License-Identifier: Apache-2.0
"""Promise: orders, shards and resume states keep their promises at any number of records."""

from __future__ import annotations

import functools
import json
import operator
import pickle
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

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


ORDERS = [False, True, "blocks", "streams"]


def thousand(
    shuffle: bool | str, world: int, rank: int = 0, *, records: int = BILLION
) -> hr.Loader:
    """A rank's loader of a billion records of 110 kB."""
    given = {"global_batch_size": 2000, "shuffle": shuffle, "uneven": True, "last_batch": "drop"}
    src = hr.simulated(records, image=(1, 1, 1))
    return hr.Loader(src, **given, shard=(rank, world), threads=1, seed=1)


# All ranks; of a billion records in blocks only two, because each rank computes the order of 13
# million blocks itself.
@pytest.mark.parametrize(
    ("shuffle", "records", "ranks"),
    [
        (False, BILLION, range(1000)),
        (True, BILLION, range(1000)),
        ("blocks", BILLION, (0, 999)),
        ("blocks", BILLION // 1000, range(1000)),
        ("streams", BILLION, (0, 999)),
        ("streams", BILLION // 1000, range(1000)),
    ],
)
def test_ranks_of_a_thousand_tile_batches_of_a_billion_records(
    shuffle: bool | str, records: int, ranks: Sequence[int]
) -> None:
    loader = thousand(shuffle, 1000, records=records)
    whole = thousand(shuffle, 1, records=records)
    whole.load_state_dict(loader.state_dict())  # the same number of streams
    batches = (0, len(loader) // 4, len(loader) - 1) if len(ranks) == 1000 else (123_456,)
    rows = [whole.batch(0, batch).number.tolist() for batch in batches]
    assert all(len(set(each)) == 2000 for each in rows)
    for rank in ranks:
        loader.set_shard(rank, 1000)
        for batch, each in zip(batches, rows, strict=True):
            assert loader.batch(0, batch).number.tolist() == each[2 * rank : 2 * rank + 2]


@pytest.mark.parametrize("shuffle", ORDERS)
def test_crashes_with_a_billion_records_on_a_thousand_ranks_are_exact(shuffle: bool | str) -> None:
    """Crashes, and changes to any world size: each rank continues with its slice of the next batch,
    from a state of less than 4 kB.
    """
    whole = thousand(shuffle, 1)
    saved = thousand(shuffle, 1000).state_dict()
    whole.load_state_dict(saved)
    draw = random.Random(3)
    for epoch, world in enumerate((1000, 999, 2000)):
        rank = draw.randrange(world)
        loader = thousand(shuffle, world, rank)
        loader.load_state_dict(saved)
        state = loader.state_dict()
        assert len(json.dumps(state)) < 4096
        (got,) = numbers(loader, 1)
        wanted = whole.batch(state["epoch"], state["batch"]).number.tolist()
        assert got == wanted[2000 * rank // world : 2000 * (rank + 1) // world]
        saved = {**loader.state_dict(), "batch": draw.randrange(len(loader)), "epoch": epoch // 2}


def test_a_state_of_a_billion_records_is_small_and_continues_exactly() -> None:
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


@pytest.mark.parametrize("order", ["records", "blocks", "streams"])
def test_a_billion_records_take_less_than_100_mb_on_one_of_a_thousand_ranks(order: str) -> None:
    """Order, blocks and index; bench/scale.py also measures the time."""
    script = Path(__file__).parent.parent / "bench" / "scale.py"
    command = [sys.executable, str(script), "--order", order, "--json"]
    (row,) = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    assert row["records"] == BILLION and row["world"] == 1000
    assert row["index_mib"] * 2**20 < 100e6 and row["state_bytes"] < 4096


def test_subsets_of_a_billion_records_need_no_index_lists() -> None:
    src = hr.simulated(BILLION, image=(1, 1, 1))
    part = src[999_000_000::-1000]
    assert len(part) == 999_001 and part[1]["number"] == 998_999_000
    assert len(hr.subset(part, np.arange(0, 999_001, 1000))) == 1000


def test_blocks_and_shards_equal_those_of_a_dataset_of_that_size() -> None:
    src = hr.simulated(1000, record_bytes=1 << 20, shards=3, image=(1, 1, 1))
    assert "3 shards" in repr(src) and src.key(333) == "1/0"
    for shuffle in (True, "blocks"):
        loader = hr.Loader(src, batch_size=100, shuffle=shuffle, shuffle_window=2, threads=1)
        epoch = numbers(loader, 10)
        assert sorted(functools.reduce(operator.iadd, epoch, [])) == list(range(1000))
        # Blocks of 8 MiB, two of them in a window: neighbors are near one another.
        blocks = {number // 8 for number in epoch[0][:16]}
        assert (len(blocks) <= 4) == (shuffle == "blocks")
    assert src.column("label").tolist() == list(range(1000))
