# SPDX-License-Identifier: Apache-2.0
"""Promise: an invalid number in an order is rejected by name before anything runs; numbers are
never rounded, wrapped around or replaced by defaults."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace as hr

SOURCE = hr.records(x=np.arange(60), label=np.arange(60) % 3)
NAN, INF = float("nan"), float("inf")
NO_COUNTS = (0, -5, 1.5, NAN, True, "3", 2**70)


def loader(**given: Any) -> hr.Loader:
    return hr.Loader(SOURCE, **{"batch_size": 4, **given})


def drawn(weights: Any) -> hr.Loader:
    return loader(sampler=hr.sampling.weighted(weights))


@pytest.mark.parametrize("num_samples", NO_COUNTS)
def test_num_samples_must_be_a_positive_integer(num_samples: Any) -> None:
    for make in (
        lambda: hr.sampling.weighted([1.0], num_samples),
        lambda: hr.sampling.balanced(num_samples=num_samples),
    ):
        with pytest.raises(hr.ConfigError, match="num_samples must be"):
            make()


@pytest.mark.parametrize(
    "weights",
    [
        [0.0] * 60,
        [-1.0] + [1.0] * 59,
        [NAN] * 60,
        [INF] + [1.0] * 59,
        [1e308] * 60,
        ["a"] * 60,
        [2**70] * 60,
        [1.0] * 59,
        [],
        None,
        np.ones((60, 1)),
        np.ones(60) * 1j,
    ],
    ids=str,
)
def test_weights_without_a_drawable_record_are_refused(weights: Any) -> None:
    with pytest.raises(hr.ConfigError, match="weight"):
        drawn(weights)


@pytest.mark.parametrize("kind", [np.uint8, np.int64, np.float32, bool])
def test_numpy_weights_and_draws_are_accepted(kind: Any) -> None:
    weights = np.zeros(60, kind)
    weights[7] = 1
    sampler = hr.sampling.weighted(weights, num_samples=np.int32(9))
    assert [b.x.tolist() for b in loader(sampler=sampler)] == [[7] * 4, [7] * 4, [7]]


@pytest.mark.parametrize("tiny", [4e-7, 1e-12, 5e-324])
def test_weights_below_a_millionth_have_distinct_states(tiny: float) -> None:
    weights = np.full(60, tiny)
    other = weights.copy()
    other[:30] = 0
    with pytest.raises(hr.ConfigError, match="HR0711"):
        drawn(other).load_state_dict(drawn(weights).state_dict())
    drawn(-0.0 * weights + other).load_state_dict(drawn(other).state_dict())


BY_LENGTH: dict[str, Callable[[Any], Any]] = {
    "buckets": lambda lengths: hr.sampling.buckets(lengths, batch_size=4),
    "budget": lambda lengths: hr.sampling.budget(lengths, total=100),
    "second budget": lambda lengths: hr.sampling.budget((np.ones(60), lengths), total=(100, 100)),
}


@pytest.mark.parametrize("name", BY_LENGTH)
@pytest.mark.parametrize(
    ("bad", "text"),
    [
        (-1, "HR0724.*record 7 has a length of -1"),
        (-0.5, "HR0724.*record 7 has a length of -0.5"),
        (-(2**62), "HR0724.*record 7 has a length of -4611686018427387904|-4.6"),
        (NAN, "HR0150.*got nan for record 7"),
        (INF, "HR0150.*got inf for record 7"),
        (1e300, "HR0150.*got 1e.300 for record 7"),
    ],
    ids=str,
)
def test_lengths_that_are_none_are_refused_with_their_record(
    name: str, bad: Any, text: str
) -> None:
    lengths = [3, *[5] * 6, bad, *[9] * 52]
    with pytest.raises(hr.ConfigError, match=text):
        loader(batch_size=None, sampler=BY_LENGTH[name](lengths))
    source = hr.records(x=np.arange(60), length=np.array(lengths))
    with pytest.raises(hr.ConfigError, match=text):
        hr.Loader(source, sampler=hr.sampling.buckets("length", batch_size=4), batch_size=4)


@pytest.mark.parametrize("wrong", [0, 1, 99], ids=["zero", "too small", "too large"])
def test_wrong_lengths_only_change_which_records_share_a_batch(wrong: int) -> None:
    lengths = np.random.default_rng(3).integers(2, 20, 60)
    lengths[::7] = wrong
    for name, make in BY_LENGTH.items():
        size = 4 if name == "buckets" else None
        run = loader(batch_size=size, sampler=make(lengths))
        drawn = [batch.x for batch in run]
        assert sorted(np.concatenate(drawn)) == list(range(60))


@pytest.mark.parametrize(
    "make",
    [
        lambda: hr.mix(SOURCE, SOURCE, weights=[1, NAN]),
        lambda: hr.mix(SOURCE, SOURCE, weights=[1, -1]),
        lambda: hr.mix(SOURCE, SOURCE, weights=[0, 0]),
        lambda: hr.mix(SOURCE, SOURCE, weights=[1e308, 1e308]),
        lambda: hr.mix(SOURCE, SOURCE, weights=[1, 1e-300]),
        lambda: hr.mix(SOURCE, SOURCE, weights=["a", 1]),
        lambda: hr.mix(SOURCE, SOURCE, weights=2),
        lambda: hr.mix(SOURCE, SOURCE, size=2.5),
        lambda: hr.mix(SOURCE, SOURCE, size=0),
        lambda: hr.mix(SOURCE, SOURCE, seed=-1),
        lambda: hr.split(SOURCE, "a"),
        lambda: hr.split(SOURCE, 0.5, NAN),
        lambda: hr.split(SOURCE, 0.5, seed=2**64),
        lambda: hr.kfold(SOURCE, 2.5),
        lambda: hr.kfold(SOURCE, -2),
        lambda: hr.kfold(SOURCE, 2**40),
        lambda: hr.subset(SOURCE, [2**63]),
        lambda: hr.subset(SOURCE, np.array([2**64 - 1], np.uint64)),
        lambda: loader(sampler=[True, False]),
        lambda: loader(sampler=[0.0]),
        lambda: loader(sampler=[60]),
        lambda: loader(sampler=[-61]),
        lambda: loader(seed=-1),
        lambda: loader(seed=2**64),
        lambda: loader(threads=2**40),
        lambda: loader(batch_size=2**62),
        lambda: loader(batch_size=2**61, shard=(0, 8)),
        lambda: loader(shard=(0, 2**33)),
        lambda: loader(shuffle="blocks", shuffle_window=-1),
        lambda: loader(shuffle="blocks", shuffle_window=2**62),
        lambda: loader(error_budget=(1.5, 0.1)),
        lambda: loader(error_budget=(1, "a")),
        lambda: loader(memory_limit="99999999 TB"),
        lambda: loader().set_epoch(-1),
        lambda: loader().set_epoch(2**62),
        lambda: loader().batch(0, -1),
        lambda: loader().batch(2**63, 0),
    ],
)
def test_invalid_arguments_are_refused_when_the_order_is_made(make: Callable[[], Any]) -> None:
    with pytest.raises(hr.ConfigError):
        make()
