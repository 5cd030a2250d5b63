# SPDX-License-Identifier: Apache-2.0
"""A loader goes on exactly where the state was taken, on any number of threads and ranks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Numbers

import headrace as hr
from headrace import transforms as T

AUGMENT = [T.RandomResizedCrop(16), T.RandomHorizontalFlip()]


def make(pictures: Path, **changes: Any) -> hr.Loader:
    options: dict[str, Any] = {"batch_size": 4, "shuffle": True, "seed": 5, **changes}
    return hr.Loader(pictures, AUGMENT, **options)


def two_epochs(loader: hr.Loader) -> list[Any]:
    return [batch.image.copy() for _ in range(2) for batch in loader]


@pytest.mark.parametrize("step", range(13))
def test_resume_at_every_step(pictures: Path, step: int) -> None:
    expected = two_epochs(make(pictures))
    first = make(pictures, threads=1)
    received = 0
    state = first.state_dict()
    while received < step:
        for _ in first:
            received += 1
            state = first.state_dict()
            if received == step:
                break
    state = json.loads(json.dumps(state))
    second = make(pictures, threads=3)
    second.load_state_dict(state)
    rest = [batch.image.copy() for _ in range(2) for batch in second]
    for got, want in zip(rest, expected[step:], strict=False):
        np.testing.assert_array_equal(got, want)
    assert len(rest) >= len(expected) - step


def test_states_count_what_was_received(pictures: Path) -> None:
    loader = make(pictures)
    for number, _ in enumerate(loader, 1):
        assert loader.state_dict()["batch"] == number
    assert (loader.state_dict()["epoch"], loader.state_dict()["batch"]) == (1, 0)


def test_a_state_is_a_few_hundred_bytes(pictures: Path) -> None:
    assert len(json.dumps(make(pictures).state_dict())) < 500


@pytest.mark.parametrize("world", [1, 2, 3, 6])
def test_resume_on_another_number_of_ranks(world: int) -> None:
    options: dict[str, Any] = {"global_batch_size": 6, "shuffle": True, "fields": "id"}
    reference = hr.Loader(Numbers(60), **options)
    expected = [batch.id for batch in reference]
    first = [hr.Loader(Numbers(60), shard=(rank, 2), **options) for rank in range(2)]
    for iteration in map(iter, first):
        for _ in range(3):
            next(iteration)
    state = first[0].state_dict()
    assert state == first[1].state_dict()
    ranks = [hr.Loader(Numbers(60), shard=(rank, world), **options) for rank in range(world)]
    for loader in ranks:
        loader.load_state_dict(state)
    for want, *parts in zip(expected[3:], *ranks, strict=True):
        np.testing.assert_array_equal(np.concatenate([part.id for part in parts]), want)


def test_another_global_batch_is_refused_in_numbers(pictures: Path) -> None:
    state = make(pictures).state_dict()
    with pytest.raises(hr.ConfigError, match="global batch of 4, this loader's is 8") as caught:
        make(pictures, batch_size=8).load_state_dict(state)
    assert "global_batch_size=4" in caught.value.hint


def test_another_source_is_refused(pictures: Path) -> None:
    state = make(pictures).state_dict()
    other = hr.Loader(hr.subset(hr.open(pictures), range(20)), AUGMENT, batch_size=4, shuffle=True)
    with pytest.raises(hr.ConfigError, match="other records"):
        other.load_state_dict(state)


def test_what_is_no_state_is_refused(pictures: Path) -> None:
    with pytest.raises(hr.ConfigError, match=r"it has no .*epoch"):
        make(pictures).load_state_dict({})
    state = make(pictures).state_dict()
    with pytest.raises(hr.ConfigError, match="version 99"):
        make(pictures).load_state_dict({**state, "headrace": 99})


def test_the_seed_travels_with_the_state(pictures: Path) -> None:
    first = make(pictures, seed=1)
    expected = two_epochs(first)
    first.set_epoch(0)
    next(iter(first))
    second = make(pictures, seed=2)
    second.load_state_dict(first.state_dict())
    np.testing.assert_array_equal(next(iter(second)).image, expected[1])


def test_python_steps_draw_the_same_after_a_resume(pictures: Path) -> None:
    def noise(image: Any, rng: np.random.Generator) -> Any:
        return (image + rng.integers(0, 9, image.shape)).astype(np.uint8)

    steps = [T.Resize((8, 8)), noise]
    first = hr.Loader(pictures, steps, batch_size=4, shuffle=True)
    expected = [batch.image.copy() for batch in first]
    first.set_epoch(0)
    iteration = iter(first)
    next(iteration)
    second = hr.Loader(pictures, steps, batch_size=4, shuffle=True, threads=1)
    second.load_state_dict(first.state_dict())
    for got, want in zip(second, expected[1:], strict=True):
        np.testing.assert_array_equal(got.image, want)
