# SPDX-License-Identifier: Apache-2.0
"""Tensors of ragged fields stay within the memory limit, and are made before the consumer requests
them."""

from __future__ import annotations

import re
import threading
import time
from typing import Any

import numpy as np
import pytest
from test_ragged import loader

import headrace as hr
from headrace import _core
from headrace import transforms as T


def test_one_record_with_many_rows_hits_the_memory_limit_not_the_machines() -> None:
    records = [{"boxes": np.ones((1, 4), np.float32)} for _ in range(127)]
    records.append({"boxes": np.ones((100_000, 4), np.float32)})
    options = {"records": records, "batch_size": 128, "memory_limit": "64 MiB", "threads": 1}
    with loader(ragged="pad", **options) as padded:
        with pytest.raises(hr.ConfigError, match='"boxes" would be float32') as raised:
            next(iter(padded))
        assert raised.value.code == "HR0706"
        with pytest.raises(hr.ConfigError, match="packed"):
            padded.batch(0, 0)
        there = padded.torch([_core.simulated_device(1)])
        for view in (padded, there, padded):  # again, each time it is requested
            with pytest.raises(hr.ConfigError, match="HR0706"):
                next(iter(view))
    with loader(ragged="packed", **options) as packed:
        assert next(iter(packed)).boxes.shape == (100_127, 4)


def test_extents_whose_product_overflows_are_an_error() -> None:
    huge = 2**40
    records = [{"rows": np.zeros((huge, 0), np.float32)}, {"rows": np.zeros((0, huge), np.float32)}]
    opened = hr.open(records, shapes={"rows": (-1, -1)})
    with (
        hr.Loader(opened, batch_size=2, ragged="pad") as padded,
        pytest.raises(hr.ConfigError, match="HR0706"),
    ):
        next(iter(padded))


def long_records(count: int) -> list[dict[str, Any]]:
    """Every eighth has many rows, so that padding enlarges batches a lot."""
    rows = [2000 if index % 8 == 3 else 1 for index in range(count)]
    return [{"boxes": np.full((n, 4), i, np.float32)} for i, n in enumerate(rows)]


def test_padding_is_done_before_the_consumer_requests_the_batch() -> None:
    """Memory for a padded batch stays reserved while the consumer is busy."""
    options: dict[str, Any] = {"ragged": "pad", "batch_size": 64, "threads": 2}
    with loader(records=long_records(640), **options) as padded:
        batches = iter(padded)
        padded_bytes = next(batches).boxes.nbytes
        deadline = time.monotonic() + 60
        while padded.stats()["memory_used"] < 2 * padded_bytes:
            assert time.monotonic() < deadline, "nothing is made ahead"
            time.sleep(0.01)
        assert [int(batch.boxes[0, 0, 0]) for batch in batches] == list(range(64, 640, 64))


@pytest.mark.parametrize("ragged", ["pad", "packed"])
@pytest.mark.parametrize("limit", ["80 MiB", "100 MiB", "512 MiB"])
def test_batches_are_the_same_and_the_limit_holds_with_little_memory(
    ragged: str, limit: str
) -> None:
    """If few padded batches fit into their share, or only one."""
    options: dict[str, Any] = {"ragged": ragged, "batch_size": 256, "shuffle": True, "seed": 3}
    records = long_records(2048)
    with loader(records=records, threads=1, **options) as one:
        expected = [(batch.boxes.sum(), batch.boxes.shape) for batch in one]
    with loader(records=records, threads=3, memory_limit=limit, **options) as three:
        for _ in range(2):
            three.set_epoch(0)
            got = [(batch.boxes.sum(), batch.boxes.shape) for batch in three]
            assert got == expected
        assert three.stats()["memory_peak"] <= int(limit.split()[0]) << 20


def test_an_iteration_may_end_while_ragged_tensors_are_made() -> None:
    options: dict[str, Any] = {"ragged": "pad", "batch_size": 64, "threads": 3}
    with loader(records=long_records(640), **options) as padded:
        for _ in range(30):
            next(iter(padded))
        first = next(iter(padded)).boxes
    assert first[:, 0, 0].tolist() == [float(i) for i in range(64)]


def test_padding_masks_count_towards_the_limit() -> None:
    def padded(length: int) -> Any:
        values = [{"x": np.ones(n, np.uint8)} for n in (length, *[1] * 63)]
        opened = hr.open(values, shapes={"x": (-1,)})
        options: dict[str, Any] = {"memory_limit": "64 MiB", "threads": 1, "ragged": "pad"}
        return next(iter(hr.Loader(opened, batch_size=64, **options)))

    with pytest.raises(hr.ConfigError, match='"x" would be uint8') as raised:
        padded(1 << 20)
    found = re.search(r"leaves (\d+) MiB", str(raised.value))
    assert found is not None
    a_record = (int(found[1]) << 20) // 64
    with pytest.raises(hr.ConfigError, match='"x_mask" would be bool'):
        padded(a_record * 7 // 10)
    assert padded(a_record * 3 // 10).x_mask.sum() == a_record * 3 // 10 + 63


def long_value(index: int) -> dict[str, Any]:
    """Most take some hundred KiB, whose memory is reused, with small ones in between."""
    rows = 7 if index % 5 == 4 else 20_000 + 7_000 * (index % 4)
    return {"boxes": np.full((rows, 4), index, np.float32)}


def raise_at_every_sixth(boxes: Any) -> Any:
    if boxes[0, 0] % 6 == 5:
        raise ValueError("of the step's own")
    return boxes


@pytest.mark.parametrize("on_error", ["skip", "substitute"])
def test_values_that_are_held_are_not_overwritten(on_error: str) -> None:
    """While others are dropped, in any thread, or written to, and after the loader is gone."""
    records = [long_value(index) for index in range(48)]
    opened = hr.open(records, kinds={"boxes": "boxes:xyxy"}, shapes={"boxes": (-1, 4)})
    options: dict[str, Any] = {"on_error": on_error, "ragged": "list"}
    step = T.Python(raise_at_every_sixth, fields="boxes")
    expected: list[int] = []
    kept: list[Any] = []
    with hr.Loader(opened, [step], batch_size=6, threads=2, memory_limit="64 MiB", **options) as it:
        for epoch in range(3):
            for number, batch in enumerate(it):
                values = [int(value[0, 0]) for value in batch.boxes]
                assert values == [int(value[-1, 3]) for value in batch.boxes]
                wanted = [i for i in range(number * 6, number * 6 + 6) if i % 6 != 5]
                assert values[:5] == wanted and (on_error == "substitute") == (len(values) == 6)
                for value, index in zip(batch.boxes, values, strict=True):
                    assert (value == index).all() and len(value) == len(records[index]["boxes"])
                if number % 3 == epoch:
                    kept.append(batch.boxes[number % 5][5:, 1:])
                    expected.append(values[number % 5])
                else:
                    for value in batch.boxes:
                        value[:] = -1
                dropped = [batch]
                del batch, value
                thread = threading.Thread(target=dropped.clear)
                thread.start()
                thread.join()
        stats = it.stats()
        assert stats["memory_peak"] <= 64 << 20
    for value, index in zip(kept, expected, strict=True):
        assert (value == index).all()
