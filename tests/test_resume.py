# SPDX-License-Identifier: Apache-2.0
"""A loader continues exactly where the state was taken, on any number of threads and ranks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Numbers

import headrace as hr
from headrace import _core
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


def test_another_global_batch_is_refused_with_both_sizes(pictures: Path) -> None:
    state = make(pictures).state_dict()
    with pytest.raises(hr.ConfigError, match="global batch of 4, but this loader's is 8") as caught:
        make(pictures, batch_size=8).load_state_dict(state)
    assert "global_batch_size=4" in caught.value.hint


def test_another_source_is_refused(pictures: Path) -> None:
    state = make(pictures).state_dict()
    other = hr.Loader(hr.subset(hr.open(pictures), range(20)), AUGMENT, batch_size=4, shuffle=True)
    with pytest.raises(hr.ConfigError, match="different records"):
        other.load_state_dict(state)


def test_an_invalid_state_is_refused(pictures: Path) -> None:
    with pytest.raises(hr.ConfigError, match=r"it has no .*epoch"):
        make(pictures).load_state_dict({})
    state = make(pictures).state_dict()
    with pytest.raises(hr.ConfigError, match="version 99"):
        make(pictures).load_state_dict({**state, "headrace": 99})


def test_the_seed_is_part_of_the_state(pictures: Path) -> None:
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


def ids(batches: Any) -> list[list[int]]:
    return [batch.id.tolist() for batch in batches]


def numbers(**changes: Any) -> hr.Loader:
    options: dict[str, Any] = {"batch_size": 6, "shuffle": True, "seed": 5, "fields": "id"}
    return hr.Loader(Numbers(60), **{**options, **changes})


def stopped_after(batches: int, **changes: Any) -> tuple[dict[str, int], list[list[int]]]:
    """A state in epoch 1, and the batches after it."""
    first = numbers(**changes)
    first.set_epoch(1)
    iteration = iter(first)
    for _ in range(batches):
        next(iteration)
    return first.state_dict(), ids(iteration)


def test_set_epoch_with_the_epoch_of_a_loaded_state_keeps_the_position() -> None:
    state, rest = stopped_after(3)
    loader = numbers()
    loader.load_state_dict(state)
    seen = []
    for epoch in range(state["epoch"], 3):  # as in typical training loops
        loader.set_epoch(epoch)
        seen.append(ids(loader))
    assert seen[0] == rest
    assert seen[1] == ids(numbers().batch(2, index) for index in range(10))


def test_set_epoch_with_another_epoch_begins_it() -> None:
    state, _ = stopped_after(3)
    loader = numbers()
    loader.load_state_dict(state)
    loader.set_epoch(0)
    assert ids(loader) == ids(numbers())
    loader.set_epoch(1)  # a batch was received since: the state is outdated
    assert len(ids(loader)) == 10


def test_set_epoch_may_be_called_after_iter_as_in_framework_hooks() -> None:
    state, rest = stopped_after(3)
    loader = numbers()
    iteration = iter(loader)
    loader.set_epoch(0)
    assert len(ids(iteration)) == 10
    loader.load_state_dict(state)
    iteration = iter(loader)
    loader.set_epoch(1)
    assert ids(iteration) == rest
    for form in (hr.Loader.numpy, lambda loader: loader.dlpack(_core.simulated_device(1))):
        iteration = iter(form(loader))
        loader.set_epoch(7)
        assert [np.array(b.id).tolist() for b in iteration] == ids(
            numbers().batch(7, i) for i in range(10)
        )
    loader.set_epoch(2)
    iteration = iter(loader)
    next(iteration)
    loader.set_epoch(2)  # now it means to start again
    with pytest.raises(hr.ConfigError, match="HR0161"):
        next(iteration)
    assert len(ids(loader)) == 10


def test_an_unused_iterator_does_not_consume_the_position() -> None:
    """Frameworks make one iterator to inspect the loader, and another one to train."""
    state, rest = stopped_after(3)
    loader = numbers()
    loader.load_state_dict(state)
    iter(loader)
    iter(loader.dlpack(_core.simulated_device(1)))
    assert loader.state_dict() == state
    assert ids(loader) == rest


@pytest.mark.parametrize("hook", [True, False])
@pytest.mark.parametrize("looks", [True, False])
def test_a_state_of_the_last_batch_is_followed_by_the_next_epoch(hook: bool, looks: bool) -> None:
    """Lightning makes an iterator over the rest of the epoch, sees that none is left, and makes
    one for the next epoch; a plain loop passes over nothing once."""
    state, rest = stopped_after(10)
    assert (state["batch"], rest) == (10, [])
    loader = numbers()
    loader.load_state_dict(state)
    none = iter(loader)
    if hook:
        loader.set_epoch(1)
    if looks:
        assert list(none) == []
    iteration = iter(loader)
    if hook:
        loader.set_epoch(2)
    assert ids(iteration) == ids(numbers().batch(2, index) for index in range(10))
    assert loader.epoch == 3


def test_peeking_shows_the_loaded_seed() -> None:
    state, rest = stopped_after(3)
    loader = numbers(seed=8)
    loader.peek()
    loader.load_state_dict(state)
    assert loader.peek().id.tolist() == rest[0]
    assert loader.batch(1, 4).id.tolist() == rest[1]
    assert "seed=5" in repr(loader)
    assert ids(loader) == rest


@pytest.mark.parametrize("size", [{"batch_size": 3}, {"batch_size": None, "global_batch_size": 6}])
def test_a_state_may_be_loaded_before_the_process_group_exists(
    size: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    state, rest = stopped_after(3)
    loader = numbers(**size)
    loader.load_state_dict(state)
    assert loader.state_dict() == state
    for name, value in {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}.items():
        monkeypatch.setenv(name, value)
    assert loader.peek().id.tolist() == rest[0][3:]
    loader.set_epoch(1)
    assert ids(loader) == [batch[3:] for batch in rest]


def test_a_state_for_ranks_that_never_start_is_refused() -> None:
    state, rest = stopped_after(3)
    loader = numbers(batch_size=3)
    loader.load_state_dict(state)
    for look in (iter, hr.Loader.peek, hr.Loader.show):
        with pytest.raises(hr.ConfigError, match="global batch of 6, but this loader's is 3"):
            look(loader)
    assert loader.state_dict() == state
    again = numbers()
    again.load_state_dict(loader.state_dict())
    assert ids(again) == rest


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("epoch", -1),
        ("batch", 2**70),
        ("batch", "3"),
        ("seed", -3),
        ("seed", 2**64),
        ("fingerprint", 0.5),
        ("records", None),
        ("epoch", True),
        ("bad_records", -(2**63)),
        ("headrace", "1"),
        ("epoch", 2**62),
    ],
)
def test_invalid_numbers_are_refused_and_change_nothing(name: str, value: Any) -> None:
    state, rest = stopped_after(3)
    loader = numbers()
    loader.load_state_dict(state)
    with pytest.raises(hr.ConfigError, match=f"HR0162.*{name} is"):
        loader.load_state_dict({**state, name: value})
    assert ids(loader) == rest


def test_a_state_survives_numpy_and_torch(pictures: Path) -> None:
    state, rest = stopped_after(3)
    loader = numbers()
    loader.load_state_dict({name: np.uint64(value) for name, value in state.items()})
    assert loader.state_dict() == state
    assert ids(loader) == rest


def test_a_refused_call_during_a_run_does_not_silently_end_it() -> None:
    for form in (hr.Loader.numpy, lambda loader: loader.dlpack(_core.simulated_device(1))):
        loader = numbers()
        iteration = iter(form(loader))
        next(iteration)
        with pytest.raises(hr.ConfigError, match="HR0162"):
            loader.load_state_dict({})
        with pytest.raises(hr.ConfigError, match="HR0161"):
            next(iteration)
