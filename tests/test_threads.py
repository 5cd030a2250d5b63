# SPDX-License-Identifier: Apache-2.0
"""One loader and several threads: no batch comes twice, no thread waits forever."""

from __future__ import annotations

import gc
import os
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from gates import LIMIT, Gate, outcome_of, records
from headrace.loader.turn import Turn

import headrace as hr
from headrace import _core


@pytest.fixture
def gate() -> Iterator[Gate]:
    gate = Gate()
    yield gate
    gate.open.set()


def views(loader: hr.Loader) -> list[Any]:
    device = _core.simulated_device(1)
    return [loader, loader.dlpack(device)]


@pytest.mark.parametrize("view", [0, 1], ids=["host", "device"])
def test_eight_threads_on_one_iterator_get_no_record_twice(view: int) -> None:
    loader = hr.Loader(records(400), batch_size=4, shuffle=True)
    iterator = iter(views(loader)[view])
    taken: list[Any] = []

    def take() -> None:
        while True:
            try:
                taken.append(next(iterator))
            except hr.ConfigError as error:
                assert error.code == "HR0190"
            except StopIteration:
                return

    threads = [threading.Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
    assert loader.state_dict()["epoch"] == 1 and loader.state_dict()["batch"] == 0
    assert len(taken) == 100
    if view == 0:
        assert sorted(x for batch in taken for x in batch.x) == list(range(400))


def test_a_second_thread_in_next_is_refused_and_the_first_one_continues(gate: Gate) -> None:
    iterator = iter(hr.Loader(records(2), [gate], batch_size=1))
    thread, outcome = outcome_of(lambda: next(iterator))
    assert gate.reached.wait(LIMIT)
    with pytest.raises(hr.ConfigError, match="HR0190 iterator already in use"):
        next(iterator)
    gate.open.set()
    thread.join(LIMIT)
    assert outcome[0].x.tolist() == [0]
    assert next(iterator).x.tolist() == [1]


ENDINGS: dict[str, Callable[[hr.Loader, dict[str, int]], Any]] = {
    "iter": lambda loader, _: iter(loader),
    "set_epoch": lambda loader, _: loader.set_epoch(3),
    "load_state_dict": lambda loader, state: loader.load_state_dict(state),
    "close": lambda loader, _: loader.close(),
}


@pytest.mark.parametrize("view", [0, 1], ids=["host", "device"])
@pytest.mark.parametrize("ending", ENDINGS)
def test_a_waiting_consumer_is_notified_when_its_iteration_ends(
    ending: str, view: int, gate: Gate
) -> None:
    loader = hr.Loader(records(2), [gate], batch_size=1)
    state = loader.state_dict()
    iterator = iter(views(loader)[view])
    thread, outcome = outcome_of(lambda: next(iterator))
    assert gate.reached.wait(LIMIT)
    other, _ = outcome_of(lambda: ENDINGS[ending](loader, state))
    thread.join(LIMIT)
    assert not thread.is_alive() and outcome[0].code == "HR0161"
    gate.open.set()
    other.join(LIMIT)
    assert not other.is_alive()
    with pytest.raises(hr.ConfigError):
        next(iterator)
    if ending != "close":
        assert [batch.x.tolist() for batch in loader] == [[0], [1]]


def test_close_during_any_other_call_is_safe() -> None:
    calls = [
        lambda loader, iterator: next(iterator, None),
        lambda loader, iterator: loader.stats(),
        lambda loader, iterator: loader.state_dict(),
        lambda loader, iterator: loader.quarantine,
        lambda loader, iterator: loader.batch(0, 1),
        lambda loader, iterator: loader.plan(),
        lambda loader, iterator: len(loader),
        lambda loader, iterator: repr(loader),
    ]
    for _ in range(20):
        loader = hr.Loader(records(64), [lambda x: x], batch_size=2)
        iterator = iter(loader)
        running = threading.Barrier(len(calls) + 1)

        def use(
            call: Any,
            loader: Any = loader,
            iterator: Any = iterator,
            running: threading.Barrier = running,
        ) -> None:
            running.wait(LIMIT)
            for _ in range(50):
                try:
                    call(loader, iterator)
                except hr.ConfigError as error:
                    assert error.code in ("HR0161", "HR0792"), error

        threads = [outcome_of(lambda call=call: use(call)) for call in calls]
        running.wait(LIMIT)
        loader.close()
        for thread, outcome in threads:
            thread.join(LIMIT)
            assert outcome == [None]


def test_a_prefetcher_notifies_a_waiting_consumer(gate: Gate) -> None:
    def source() -> Iterator[list[int]]:
        gate(0)
        yield [1]

    class Source:
        def __iter__(self) -> Iterator[list[int]]:
            return source()

    prefetch = hr.prefetch(Source(), "cpu")
    first = iter(prefetch)
    thread, outcome = outcome_of(lambda: next(first))
    assert gate.reached.wait(LIMIT)
    with pytest.raises(hr.ConfigError, match="HR0190"):
        next(first)
    other, second = outcome_of(lambda: iter(prefetch))
    thread.join(LIMIT)
    assert outcome[0].code == "HR0888"
    gate.open.set()
    other.join(LIMIT)
    assert list(second[0]) == [[1]]


def test_a_close_that_timed_out_releases_its_lock() -> None:
    """The consumer exits while close() works; a later call would wait for it forever."""
    turn = Turn()
    turn.holder = threading.get_ident() + 1  # a consumer on another thread

    def work() -> None:
        turn.holder = None  # in its finally

    turn.take_over(work, patience=0)
    assert turn.holder is None


def test_closing_a_prefetcher_ends_its_consumers_wait(gate: Gate) -> None:
    def source() -> Iterator[list[int]]:
        gate(0)
        yield [1]

    prefetch = hr.prefetch(source(), "cpu")
    iterator = iter(prefetch)
    thread, outcome = outcome_of(lambda: next(iterator))
    assert gate.reached.wait(LIMIT)
    prefetch.close()
    thread.join(LIMIT)
    assert outcome[0].code in ("HR0888", "HR0792")
    with pytest.raises(hr.ConfigError):
        prefetch.stats()


def test_a_warning_turned_into_an_error_loses_no_batch() -> None:
    source = [{"image": np.zeros((256, 256, 3), "uint8"), "n": i} for i in range(160)]
    expected = [batch.n.tolist() for batch in hr.Loader(source, batch_size=8)]
    iterator = iter(hr.Loader(source, batch_size=8))
    kept, failures = [], 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        while True:
            try:
                batch = next(iterator, None)
            except hr.errors.Warning:  # all slots are held
                failures += 1
                continue
            if batch is None:
                break
            kept.append(batch)
    assert failures == 1
    assert [batch.n.tolist() for batch in kept] == expected


def test_a_failed_delivery_loses_no_batch() -> None:
    loader = hr.Loader(records(6), batch_size=2)
    view = loader.dlpack()
    refused = [MemoryError(), None, KeyboardInterrupt(), None, MemoryError(), MemoryError(), None]

    def convert(array: Any) -> Any:
        if error := refused.pop(0):
            raise error
        return np.asarray(array).tolist()

    view.form.convert = convert
    iterator = iter(view)
    taken = []
    while refused:
        received = loader.state_dict()["batch"]
        try:
            taken.append(next(iterator).x)
        except (MemoryError, KeyboardInterrupt):
            assert loader.state_dict()["batch"] == received
    assert taken == [[0, 1], [2, 3], [4, 5]]
    assert next(iterator, None) is None


def test_a_failed_delivery_to_a_device_loses_no_batch() -> None:
    loader = hr.Loader(records(6), batch_size=2)
    view = loader.dlpack(_core.simulated_device(1))
    refused = [MemoryError(), None, MemoryError(), None, None]
    taken = []

    def convert(array: Any) -> Any:
        if error := refused.pop(0):
            raise error
        return array

    view.form.convert = convert
    iterator = iter(view)
    while refused:
        try:
            taken.append(next(iterator))
        except MemoryError:
            assert loader.state_dict()["batch"] == len(taken)
    assert len(taken) == 3 and loader.state_dict()["batch"] == 3
    assert next(iterator, None) is None


def test_no_threads_remain_after_64_loaders_are_closed() -> None:
    def threads() -> int:
        return len(os.listdir("/proc/self/task"))

    gc.collect()  # loaders of other tests
    before = threads()
    loaders = [hr.Loader(list(range(100)), batch_size=10, threads=3) for _ in range(64)]
    for each in loaders:
        next(iter(each))
    assert threads() > before
    for each in loaders:
        each.close()
    assert threads() <= before + 1, "but for Python's own, which stays"
