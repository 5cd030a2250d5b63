# SPDX-License-Identifier: Apache-2.0
"""hr.prefetch: batches of any iterable, copied ahead, in order, each equal to its source.

The device is simulated: it copies as late and as much out of order as it may, so a batch that was
handed over too early, or memory that was reused too early, gives wrong values.
"""

from __future__ import annotations

import dataclasses
import gc
import os
import signal
import subprocess
import sys
import threading
import weakref
from collections import OrderedDict, UserDict, namedtuple

import numpy as np
import pytest
from awaited_warning import ended_by_warning
from timing import PATIENCE

import headrace as hr
from headrace import _core

Pair = namedtuple("Pair", "images labels")


@dataclasses.dataclass(frozen=True)
class Sample:
    image: np.ndarray
    name: str


def simulated(seed=1, **options):
    return _core.simulated_device(seed, **options)


def numbered(n, shape=(3, 5)):
    for i in range(n):
        yield np.full(shape, i, np.int32)


def test_every_batch_equals_its_source_even_if_shapes_change():
    dtypes = ["uint8", "int64", "float16", "float32", "float64", "bool"]

    def make(i):
        rng = np.random.default_rng(i)
        shape = tuple(rng.integers(0, 40, rng.integers(0, 4)))
        return np.asarray(rng.random(shape) * 100).astype(dtypes[i % len(dtypes)])

    batches = hr.prefetch((make(i) for i in range(500)), simulated(), depth=3)
    for i, batch in enumerate(batches):
        expected = make(i)
        assert batch.dtype == expected.dtype and batch.shape == expected.shape
        np.testing.assert_array_equal(batch, expected)
    assert i == 499


def test_nested_structures_are_preserved():
    image = np.arange(12, dtype=np.float32).reshape(3, 4)
    source = [
        image,
        (image, 7),
        [image, "text", None],
        {"image": image, "more": {"deep": [image + 1, (image + 2,)]}},
        OrderedDict(a=image),
        UserDict(a=image),
        Pair(image, np.arange(3)),
        Sample(image, "a.jpg"),
    ]
    got = list(hr.prefetch(source, simulated(), depth=2))
    assert [type(batch) for batch in got] == [type(batch) for batch in source]
    np.testing.assert_array_equal(got[3]["more"]["deep"][1][0], image + 2)
    assert got[1][1] == 7 and got[2][1:] == ["text", None]
    np.testing.assert_array_equal(got[6].labels, np.arange(3))
    np.testing.assert_array_equal(got[7].image, image)
    assert got[7].name == "a.jpg"
    assert got[7].image is not image  # the source's own state is unchanged


def test_arrays_of_any_strides_and_byte_order_keep_their_values():
    base = np.arange(60, dtype=np.int16).reshape(3, 4, 5)
    source = [
        base.T,
        base[:, ::2],
        base[::-1],
        base.astype(">i2"),
        np.asfortranarray(base),
        base[0, 0, 0, ...],
    ]
    for given, got in zip(source, hr.prefetch(source, simulated()), strict=True):
        np.testing.assert_array_equal(got, given)


def test_a_source_error_is_raised_at_its_batch_with_its_traceback():
    def source():
        yield from numbered(5)
        raise KeyError("the sixth")

    run = iter(hr.prefetch(source(), simulated(), depth=4))
    for i in range(5):
        assert (next(run) == i).all()
    with pytest.raises(KeyError, match="the sixth") as caught:
        next(run)
    assert caught.traceback[-1].name == "source"
    with pytest.raises(StopIteration):
        next(run)


def test_a_source_may_be_empty_or_have_one_batch():
    assert list(hr.prefetch([], simulated())) == []
    assert len(list(hr.prefetch([np.zeros(3)], simulated()))) == 1


def test_len_and_other_attributes_are_the_sources():
    class Source(list):
        batch_size = 32

    batches = hr.prefetch(Source(numbered(7)), simulated())
    assert len(batches) == 7 and batches.batch_size == 32
    with pytest.raises(TypeError):
        len(hr.prefetch(numbered(3), simulated()))
    with pytest.raises(AttributeError):
        batches.no_such_thing  # noqa: B018


def test_it_can_be_iterated_again_and_an_early_break_loses_nothing():
    source = list(numbered(20))
    batches = hr.prefetch(source, simulated(), depth=3)
    for stop in (0, 1, 7, 19):
        for i, batch in enumerate(batches):
            assert (batch == i).all()
            if i == stop:
                break
    assert sum(1 for _ in batches) == 20


def test_a_second_iteration_closes_the_first():
    batches = hr.prefetch(list(numbered(5)), simulated())
    first = iter(batches)
    next(first)
    second = iter(batches)
    assert (next(second) == 0).all()
    with pytest.raises(hr.ConfigError, match="HR0888"):
        next(first)


def test_a_dropped_iterator_stops_reading():
    asked, ended = [], threading.Event()

    def source():
        try:
            for i in range(10_000):
                asked.append(i)
                yield np.zeros(10)
        finally:
            ended.set()

    for _ in hr.prefetch(source(), simulated(), depth=2):
        break
    gc.collect()
    assert ended.wait(PATIENCE)
    assert len(asked) < 10


def test_on_the_cpu_batches_are_prefetched_and_passed_unchanged():
    threads = set()

    def source():
        for i in range(5):
            threads.add(threading.get_ident())
            yield {"text": str(i)}

    batches = hr.prefetch(source(), "cpu", transform=lambda batch: {**batch, "seen": True})
    assert list(batches) == [{"text": str(i), "seen": True} for i in range(5)]
    assert threading.get_ident() not in threads


def test_a_transform_on_the_device_sees_the_copies():
    got = list(hr.prefetch(numbered(10), simulated(), transform=lambda batch: batch * 2.0))
    assert [batch.flat[0] for batch in got] == [2.0 * i for i in range(10)]


def test_batches_without_arrays_are_refused_with_their_type():
    with pytest.raises(hr.ConfigError, match=r"HR0885 .*: str"):
        next(iter(hr.prefetch(["a path"], simulated())))
    with pytest.raises(hr.UnsupportedError, match=r"HR0886 .* complex128"):
        next(iter(hr.prefetch([np.zeros(3, complex)], simulated())))
    with pytest.raises(hr.UnsupportedError, match=r"HR0886 .* object"):
        next(iter(hr.prefetch([np.array([None])], simulated())))


def test_missing_gpus_and_invalid_device_names_are_refused():
    if _core.cuda_devices()[0] == 0:
        with pytest.raises(hr.UnsupportedError, match="HR0882 device not found: cuda:0: "):
            hr.prefetch([], "cuda")
    with pytest.raises(hr.ConfigError, match=r'HR0881 .*"gpu"'):
        hr.prefetch([], "gpu")
    with pytest.raises(hr.ConfigError, match="depth"):
        hr.prefetch([], "cpu", depth=0)


def test_waiting_is_counted_and_a_long_wait_names_its_cause():
    release = threading.Event()

    def source():
        yield np.zeros(3)
        release.wait()
        yield np.ones(3)

    batches = hr.prefetch(source(), simulated(), patience=0.1)
    run = iter(batches)
    next(run)
    with ended_by_warning("the source has not delivered its next batch", release.set):
        assert (next(run) == 1).all()
    assert batches.stats()["wait_seconds"] >= 0.1
    assert batches.stats()["source_seconds"] >= 0.1


class Stateful:
    def __init__(self, n=10):
        self.n, self.at = n, 0

    def __iter__(self):
        while self.at < self.n:
            self.at += 1
            yield np.full(4, self.at - 1)

    def state_dict(self):
        return {"at": self.at}

    def load_state_dict(self, state):
        self.at = state["at"]


def test_the_state_counts_what_was_received():
    batches = hr.prefetch(Stateful(), simulated(), depth=4, resumable=True)
    run = iter(batches)
    for _ in range(3):
        next(run)
    assert batches.state_dict() == {"at": 3}
    other = hr.prefetch(Stateful(), simulated(), depth=4, resumable=True)
    other.load_state_dict(batches.state_dict())
    assert [int(batch[0]) for batch in other] == list(range(3, 10))
    with pytest.raises(hr.ConfigError, match="HR0887"):
        hr.prefetch(Stateful(), simulated()).state_dict()


def test_a_closed_prefetcher_frees_its_memory_and_threads():
    before = threading.active_count()
    source = list(numbered(10))
    batches = hr.prefetch(source, simulated())
    next(iter(batches))
    gone = weakref.ref(batches)
    batches.close()
    with pytest.raises(ValueError, match="closed"):
        iter(batches)
    del batches
    gc.collect()
    assert gone() is None
    assert threading.active_count() <= before + 1  # the engine's thread as seen by Python


def test_streams_wait_before_and_after_a_transform(monkeypatch):
    """The rule that makes memory of the side stream safe, on streams that only record calls."""
    notes = []

    class Noted:
        def side_waits_for_current(self):
            notes.append("side waits")

        def current_waits_for(self, event):
            notes.append(f"current waits {event}")

        def on_side(self):
            import contextlib

            return contextlib.nullcontext()

        def record(self):
            notes.append(f"transformed {len([n for n in notes if n.startswith('transformed')])}")
            return len([n for n in notes if n.startswith("transformed")]) - 1

    batches = hr.prefetch(numbered(6), simulated(), transform=lambda batch: batch + 1)
    batches._streams = Noted()
    for i, batch in enumerate(batches):
        assert (batch == i + 1).all()
        # Its transform was queued before, and this stream waits for it last.
        assert notes[-1] == f"current waits {i}"
        notes.append("step")
    # No transform is queued unless the side stream has waited since the step before it.
    since = []
    for note in notes:
        if note == "step":
            since = []
        since.append(note)
        if note.startswith("transformed"):
            assert "side waits" in since
    assert notes.count("step") == 6


def test_a_transform_error_is_raised_at_its_batch():
    class Free:
        def side_waits_for_current(self): ...
        def current_waits_for(self, event): ...
        def on_side(self):
            import contextlib

            return contextlib.nullcontext()

        def record(self): ...

    def third_fails(batch):
        if batch.flat[0] == 2:
            raise ZeroDivisionError
        return batch

    batches = hr.prefetch(numbered(5), simulated(), transform=third_fails)
    batches._streams = Free()
    run = iter(batches)
    assert [int(next(run).flat[0]) for _ in range(2)] == [0, 1]
    with pytest.raises(ZeroDivisionError):
        next(run)


CTRL_C = """
import headrace as hr, numpy as np, time, sys
from headrace import _core
def source():
    yield np.zeros(3)
    print("waiting", flush=True)
    time.sleep(1000)
for _ in hr.prefetch(source(), _core.simulated_device(1)):
    pass
"""


def test_ctrl_c_ends_a_loop_that_waits():
    process = subprocess.Popen(
        [sys.executable, "-c", CTRL_C], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "waiting\n"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=300)
    assert "KeyboardInterrupt" in errors


def test_use_in_a_forked_child_is_an_error():
    batches = hr.prefetch(list(numbered(5)), simulated())
    run = iter(batches)
    next(run)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            next(run)
        except hr.ConfigError as error:
            code = 0 if error.code == "HR0701" else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert (next(run) == 1).all()
