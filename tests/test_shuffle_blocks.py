# SPDX-License-Identifier: Apache-2.0
"""Promise: ``shuffle="blocks"`` and ``"streams"`` keep exact order, epochs, shards and resume, and
read few blocks at a time."""

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


@pytest.mark.parametrize("shuffle", ["blocks", "streams"])
def test_every_record_is_delivered_once_in_a_new_order_each_epoch(shuffle: str) -> None:
    run = loader(shuffle=shuffle)
    epochs = [values(run) for _ in range(3)]
    for epoch in epochs:
        assert sorted(epoch) == list(range(RECORDS))
    assert epochs[0] != epochs[1] != epochs[2]
    assert values(loader(shuffle=shuffle, threads=1)) == epochs[0]


def test_one_window_of_blocks_is_read_at_a_time() -> None:
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


def test_shards_together_give_the_same_batches() -> None:
    whole = [batch.value.tolist() for batch in loader(batch_size=60)]
    parts = [
        [batch.value.tolist() for batch in loader(batch_size=20, shard=(rank, 3))]
        for rank in range(3)
    ]
    assert [a + b + c for a, b, c in zip(*parts, strict=True)] == whole


def test_another_window_gives_another_order() -> None:
    state = loader().state_dict()
    with pytest.raises(hr.ConfigError, match="a different order"):
        loader(shuffle_window=4).load_state_dict(state)
    with pytest.raises(hr.ConfigError, match="'blocks'"):
        loader(shuffle="block")
    with pytest.raises(hr.ConfigError, match="shuffle_window"):
        loader(shuffle_window=0)
    with pytest.raises(hr.ConfigError, match="both decide"):
        loader(shuffle="streams", sampler=[1, 2])


def streams(**given: Any) -> hr.Loader:
    return loader(**{"batch_size": None, "global_batch_size": 48, "shuffle": "streams", **given})


@pytest.mark.parametrize("last_batch", ["keep", "drop", "pad"])
def test_streams_resume_at_every_batch_in_any_world_size(last_batch: str) -> None:
    first = streams(last_batch=last_batch)
    assert first.state_dict()["streams"] == 8  # of 64, halved: there are twelve blocks
    states = [first.state_dict()]
    whole = []
    for batch in first:
        whole.append(batch.value.tolist())
        states.append(first.state_dict())
    for number, state in enumerate(states[:-1]):
        if number % 7 != 3 and number < len(whole) - 1:
            continue
        world = (1, 2, 3, 4, 6)[number % 5]
        rows: list[int] = []
        for rank in range(world):
            run = streams(last_batch=last_batch, shard=(rank, world))
            run.load_state_dict(state)
            rows += next(iter(run)).value.tolist()
            assert run.batch(0, number).value.tolist() == rows[-len(rows) // (rank + 1) :]
        assert rows == whole[number]


def test_the_number_of_streams_does_not_depend_on_the_world_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = hr.records(value=np.arange(40_000))  # 157 blocks

    def run(world: int, **given: Any) -> hr.Loader:
        options = {"global_batch_size": 1280, "shuffle": "streams", "shard": (0, world), **given}
        return hr.Loader(source, **options)

    few, many = run(1), run(40)
    assert (few.state_dict()["streams"], many.state_dict()["streams"]) == (64, 128)
    for _, batch in zip(range(2), few, strict=False):
        kept = batch
    many.load_state_dict(few.state_dict())
    assert many.state_dict() == few.state_dict()
    assert many.batch(0, 1).value.tolist() == kept.value[:32].tolist()
    assert next(iter(many)).value.tolist() == few.batch(0, 2).value[:32].tolist()
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "8")
    assert run(40).state_dict()["streams"] == 64  # five machines
    given = run(1, shuffle=False, sampler=hr.sampling.streams(count=32, sticky=False))
    assert "32 streams" in repr(given) and "redistributed each epoch" in repr(given)
    before = given.state_dict()
    with pytest.raises(hr.ConfigError, match=r"HR0711.*64 streams.*has 32"):
        given.load_state_dict(few.state_dict())
    assert given.state_dict() == before
    with pytest.raises(hr.ConfigError, match="HR0711"):
        run(1).load_state_dict(run(1, shuffle=True).state_dict())
