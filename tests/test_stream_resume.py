# SPDX-License-Identifier: Apache-2.0
"""A loader of a stream resumes at every step: by the iterable's state if it has one, otherwise by
replaying it, with a warning."""

import itertools
import json
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import headrace as hr

Records = list[dict[str, Any]]


def numbers(count: int) -> Records:
    return [{"i": i, "name": f"r{i}"} for i in range(count)]


def given_by(records: Records) -> Callable[[], Iterator[dict[str, Any]]]:
    def function() -> Iterator[dict[str, Any]]:
        yield from records

    return function


def ids(loader: hr.Loader) -> list[list[int]]:
    return [batch.i.tolist() for batch in loader]


class Stateful:
    """Like a streaming dataset of Hugging Face: the state belongs to the object, for the last pass
    begun."""

    def __init__(self, records: Records) -> None:
        self.records = records
        self.epoch = self.at = 0
        self.begin = 0
        self.given = 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def state_dict(self) -> dict[str, int]:
        return {"at": self.at, "epoch": self.epoch}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.begin = state["at"]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        self.at = self.begin
        while self.at < len(self.records):
            self.at += 1
            self.given += 1
            yield self.records[self.at - 1]


class WithStatefulIterator:
    """The state belongs to the iterator, as in torchdata."""

    def __init__(self, records: Records) -> None:
        self.records = records

    def __iter__(self) -> Any:
        return _Cursor(self.records)


class _Cursor:
    def __init__(self, records: Records) -> None:
        self.records, self.at = records, 0

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> dict[str, Any]:
        if self.at == len(self.records):
            raise StopIteration
        self.at += 1
        return self.records[self.at - 1]

    def state_dict(self) -> dict[str, int]:
        return {"at": self.at}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.at = state["at"]


def forms_of(records: Records) -> dict[str, Callable[[], Any]]:
    return {
        "state": lambda: Stateful(records),
        "iterator": lambda: WithStatefulIterator(records),
        "function": lambda: given_by(records),
    }


@pytest.mark.filterwarnings("ignore:.*read.* again")
@pytest.mark.parametrize(
    ("last_batch", "form", "buffer"),
    [
        *itertools.product(["keep"], ["state", "iterator", "function"], [0, 6]),
        *itertools.product(["pad", "drop"], ["state"], [6]),
    ],
)
def test_resume_at_every_step(form: str, buffer: int, last_batch: str) -> None:
    make = forms_of(numbers(27))[form]
    keywords: Any = {"global_batch_size": 6, "last_batch": last_batch, "seed": 6}

    def loader(**more: Any) -> hr.Loader:
        return hr.Loader(hr.stream(make(), shuffle_buffer=buffer), **keywords, **more)

    whole = loader()
    expected = [ids(whole) for _ in range(2)]
    steps = len(expected[0])
    for step in range(2 * steps):
        run = loader()
        batches, states = [], []
        while len(batches) <= step:
            for batch in run:
                batches.append(batch.i.tolist())
                if len(batches) > step:
                    states.append(json.loads(json.dumps(run.state_dict())))
                    break
        assert batches == [*expected[0], *expected[1]][: step + 1]
        run.close()
        for world in (1, 2, 3):
            parts = []
            for rank in range(world):
                resumed = loader(shard=(rank, world))
                resumed.load_state_dict(states[0])
                parts.append(ids(resumed))
            rest = [list(itertools.chain(*each)) for each in zip(*parts, strict=True)]
            epoch, batch = divmod(step + 1, steps)
            if batch == 0:  # at the end of an epoch
                epoch, batch = epoch - 1, steps
            assert rest == expected[epoch][batch:]


@pytest.mark.filterwarnings("ignore:.*read.* again")
@pytest.mark.parametrize("form", ["state", "iterator", "function"])
@pytest.mark.parametrize("buffer", [0, 6])
def test_a_run_of_two_ranks_continues_on_three(form: str, buffer: int) -> None:
    make = forms_of(numbers(45))[form]

    def ranks(world: int) -> list[hr.Loader]:
        source = [hr.stream(make(), shuffle_buffer=buffer) for _ in range(world)]
        return [
            hr.Loader(source[rank], global_batch_size=6, seed=6, shard=(rank, world))
            for rank in range(world)
        ]

    (alone,) = ranks(1)
    expected = [ids(alone) for _ in range(2)]
    for epoch, done in ((0, 1), (0, 5), (1, 3)):
        pair = ranks(2)
        for loader in pair:
            loader.set_epoch(epoch)
        for iterator in map(iter, pair):
            for _ in range(done):
                next(iterator)
        states = [json.dumps(loader.state_dict()) for loader in pair]
        assert states[0] == states[1]
        three = ranks(3)
        for loader in three:
            loader.load_state_dict(json.loads(states[0]))
        parts = [ids(loader) for loader in three]
        assert [list(itertools.chain(*each)) for each in zip(*parts, strict=True)] == (
            expected[epoch][done:]
        )


class ByEpoch(Stateful):
    """Whose records name their epoch."""

    def state_dict(self) -> dict[str, int]:
        return {"at": self.at, "epoch": self.epoch}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.begin, self.epoch = state["at"], state["epoch"]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return ({"i": 1000 * self.epoch + record["i"]} for record in super().__iter__())


def test_a_state_moved_to_another_epoch_drops_the_streams_state() -> None:
    def new() -> hr.Loader:
        return hr.Loader(hr.stream(ByEpoch(numbers(24))), batch_size=4)

    first = new()
    first.set_epoch(1)
    batches = iter(first)
    for _ in range(3):
        next(batches)
    moved = {**first.state_dict(), "epoch": 0, "batch": 0}
    assert moved["stream"]["epoch"] == 1 and moved["stream"]["number"] > 0
    second = new()
    second.load_state_dict(moved)
    assert second.state_dict()["stream"] == {"epoch": 0, "number": 0, "state": None}
    states = [second.state_dict() for batch in second if batch.i.tolist()[0] < 1000]
    assert len(states) == 6
    third = new()
    third.load_state_dict(states[3])
    assert ids(third) == [[16, 17, 18, 19], [20, 21, 22, 23]]


def test_a_view_in_the_form_of_a_dataloader_begins_an_epoch_again() -> None:
    view = hr.Loader(hr.stream(ByEpoch(numbers(24)), length=24), batch_size=4).numpy()
    epochs = [ids(view) for _ in range(2)]
    view.load_state_dict({**view.state_dict(), "epoch": 0, "batch": 0, "bad_records": 0})
    assert ids(view) == epochs[0]


@pytest.mark.parametrize(
    ("stream", "text"),
    [
        ([1], "stream is"),
        ({"epoch": 0, "number": "a", "state": 1}, "number is 'a'"),
        ({"epoch": 0, "state": 1}, "number is None"),
        ({"epoch": -1, "number": 2, "state": 1}, "epoch is -1"),
    ],
)
def test_an_invalid_state_of_a_stream_is_refused_and_changes_nothing(
    stream: Any, text: str
) -> None:
    loader = hr.Loader(hr.stream(Stateful(numbers(12))), batch_size=4)
    state = loader.state_dict()
    with pytest.raises(hr.ConfigError, match=f"HR0162.*{text}"):
        loader.load_state_dict({**state, "batch": 1, "stream": stream})
    assert len(ids(loader)) == 3


def test_a_resume_with_a_state_only_reads_nearby_records() -> None:
    first = Stateful(numbers(2000))
    loader = hr.Loader(hr.stream(first, shuffle_buffer=20), batch_size=10, seed=4)
    batches = iter(loader)
    for _ in range(150):
        next(batches)
    state = loader.state_dict()
    rest = [batch.i.tolist() for batch in batches]
    second = Stateful(numbers(2000))
    resumed = hr.Loader(hr.stream(second, shuffle_buffer=20), batch_size=10, seed=4)
    resumed.load_state_dict(state)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ids(resumed) == rest
    assert second.given < 600
    assert len(ids(resumed)) == 200  # the next epoch is complete
    assert len(json.dumps(state)) < 400


def test_a_replay_is_warned_about_with_its_count() -> None:
    loader = hr.Loader(hr.stream(given_by(numbers(20))), batch_size=4)
    batches = iter(loader)
    next(batches), next(batches)
    state = loader.state_dict()
    resumed = hr.Loader(hr.stream(given_by(numbers(20))), batch_size=4)
    resumed.load_state_dict(state)
    with pytest.warns(hr.Warning, match="8 records of epoch 0 are read again and dropped"):
        assert ids(resumed) == [[8, 9, 10, 11], [12, 13, 14, 15], [16, 17, 18, 19]]
    refusing = hr.Loader(hr.stream(given_by(numbers(20)), replay=False), batch_size=4)
    refusing.load_state_dict(state)
    with pytest.raises(hr.ConfigError, match=r"HR0695.*after 8 records of epoch 0"):
        list(refusing)


def test_a_resume_of_a_stream_that_became_shorter_is_an_error() -> None:
    loader = hr.Loader(hr.stream(given_by(numbers(40))), batch_size=4)
    batches = iter(loader)
    for _ in range(8):
        next(batches)
    resumed = hr.Loader(hr.stream(given_by(numbers(10))), batch_size=4)
    resumed.load_state_dict(loader.state_dict())
    with (
        pytest.warns(hr.Warning, match="read again"),
        pytest.raises(hr.DataError, match=r"HR0697.*32 records of epoch 0.*returns 10"),
    ):
        list(resumed)


@pytest.mark.filterwarnings("ignore:.*read.* again")
def test_early_breaks_end_the_epoch_and_set_epoch_selects_one() -> None:
    loader = hr.Loader(hr.stream(given_by(numbers(9))), batch_size=2)
    assert next(iter(loader)).i.tolist() == [0, 1]
    assert len(ids(loader)) == 5 and loader.epoch == 2  # a break ended epoch 0
    loader.set_epoch(7)
    assert len(ids(loader)) == 5 and loader.epoch == 8


def test_the_world_size_may_change_in_mid_epoch() -> None:
    source = hr.stream(Stateful(numbers(24)))
    loader = hr.Loader(source, global_batch_size=4, shard=(0, 1))
    batches = iter(loader)
    assert next(batches).i.tolist() == [0, 1, 2, 3]
    loader.set_shard(1, 2)
    assert next(batches).i.tolist() == [6, 7]


class BeginsAgain(Stateful):
    """Like a Loader of torchdata's nodes: from a state at its end, it begins again."""

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.begin = state["at"] % len(self.records)


@pytest.mark.parametrize("make", [Stateful, BeginsAgain])
@pytest.mark.parametrize("buffer", [0, 3])
def test_a_resume_at_the_end_of_an_epoch_of_whole_batches(make: Any, buffer: int) -> None:
    def new() -> hr.Loader:
        return hr.Loader(hr.stream(make(numbers(24)), shuffle_buffer=buffer), batch_size=4)

    whole = new()
    expected = [ids(whole) for _ in range(3)]
    run = new()
    states = [run.state_dict() for _ in range(2) for _ in run]
    for step in (6, 12):
        resumed = new()
        resumed.load_state_dict(states[step - 1])
        assert ids(resumed) == [], "the epoch has ended"
        assert ids(resumed) == expected[step // 6]


def test_an_iterator_with_a_state_works_for_many_epochs() -> None:
    loader = hr.Loader(hr.stream(_Cursor(numbers(5))), batch_size=2)
    assert ids(loader) == ids(loader) == [[0, 1], [2, 3], [4]]


def test_resume_on_a_device() -> None:
    from headrace import _core

    def view(records: Any) -> Any:
        loader = hr.Loader(hr.stream(records), batch_size=4, fields=["i"])
        return loader.dlpack(_core.simulated_device(seed=1))

    def labels(batches: Any) -> Any:
        import numpy as np

        return [np.asarray(batch.i.bits()).view(np.int64).ravel().tolist() for batch in batches]

    first = view(Stateful(numbers(42)))
    batches = iter(first)
    begin = labels(next(batches) for _ in range(7))
    state = first.state_dict()
    assert (state["batch"], begin[-1]) == (7, [24, 25, 26, 27])
    second = view(Stateful(numbers(42)))
    second.load_state_dict(state)
    assert labels(second) == labels(batches)
    assert len(labels(second)) == 11
