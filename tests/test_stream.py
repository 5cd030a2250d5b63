# SPDX-License-Identifier: Apache-2.0
"""hr.stream: an iterable gives the batches of the list of its records, at any number of ranks,
after any resume; inexact cases give a warning."""

import io
import itertools
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import audio_files
import numpy as np
import pytest
from headrace.loader.viewed import left_for_last_batch
from PIL import Image

import headrace as hr
from headrace import _core
from headrace import transforms as T

Records = list[dict[str, Any]]


def numbers(count: int) -> Records:
    return [{"x": np.float32([i, -i]), "i": i, "name": f"r{i}"} for i in range(count)]


def photos(count: int) -> Records:
    """JPEGs of several sizes, boxes of several numbers."""
    random, out = np.random.default_rng(5), []
    for i in range(count):
        pixels = random.integers(0, 255, (24 + i % 5, 30 + i % 7, 3), np.uint8)
        file = io.BytesIO()
        Image.fromarray(pixels).save(file, "jpeg")
        boxes = np.float32([[1, 2, 9 + k, 12] for k in range(i % 4)]).reshape(-1, 4)
        out.append({"image": file.getvalue(), "label": i, "boxes": boxes})
    return out


def given_by(records: Records) -> Callable[[], Iterator[dict[str, Any]]]:
    def function() -> Iterator[dict[str, Any]]:
        yield from records

    return function


def negative(x: Any) -> Any:
    return -x


def values(batch: Any) -> list[Any]:
    return [value if isinstance(value, list) else np.array(value) for value in batch]


def assert_equal(some: list[Any], others: list[Any]) -> None:
    assert len(some) == len(others)
    for one, other in zip(some, others, strict=True):
        for value, expected in zip(values(one), values(other), strict=True):
            np.testing.assert_equal(value, expected)


def ids(loader: hr.Loader) -> list[list[int]]:
    return [batch.i.tolist() for batch in loader]


# --- The batches of a list ------------------------------------------------------------------------


@pytest.mark.parametrize("last_batch", ["keep", "drop", "pad"])
@pytest.mark.parametrize("count", [1, 4, 7, 8, 9, 70])
def test_batches_equal_those_of_the_list(count: int, last_batch: str) -> None:
    keywords: Any = {"batch_size": 4, "last_batch": last_batch, "seed": 3}
    stream = hr.stream(given_by(numbers(count)))
    if count < 4 and last_batch == "drop":
        with pytest.raises(hr.ConfigError, match="drops every batch"):
            list(hr.Loader(stream, **keywords))
        return
    of_list = hr.Loader(numbers(count), **keywords)
    of_stream = hr.Loader(stream, **keywords)
    for epoch in range(3):
        assert of_stream.epoch == epoch
        assert_equal(list(of_stream), list(of_list))
    ours, theirs = of_stream.stats(), of_list.stats()
    assert (ours.batches, ours.records) == (theirs.batches, theirs.records)


@pytest.mark.parametrize("ragged", ["list", "pad", "packed"])
def test_images_boxes_and_random_transforms_equal_those_of_the_list(ragged: str) -> None:
    kinds = {"boxes": "boxes:xyxy"}
    steps = [T.RandomResizedCrop(16), T.RandomHorizontalFlip(), T.ToDtype("float32", scale=True)]
    records = photos(21)
    keywords: Any = {"batch_size": 6, "ragged": ragged, "seed": 8, "fields": ["image", "boxes"]}
    of_list = hr.Loader(hr.open(records, kinds=kinds, shapes={"boxes": (-1, 4)}), steps, **keywords)
    stream = hr.stream(given_by(records), kinds=kinds, shapes={"boxes": (-1, 4)})
    of_stream = hr.Loader(stream, steps, **keywords)
    for _ in range(2):
        assert_equal(list(of_stream), list(of_list))


def test_audio_and_worker_processes() -> None:
    waves = [audio_files.int16_waves(800 + 10 * i, seed=i) for i in range(9)]
    records = [{"audio": audio_files.wav_of(wave), "i": i} for i, wave in enumerate(waves)]
    keywords: Any = {"batch_size": 4, "ragged": "list"}
    of_list = hr.Loader(hr.open(records, kinds={"audio": "audio"}), **keywords)
    of_stream = hr.Loader(hr.stream(given_by(records), kinds={"audio": "audio"}), **keywords)
    assert_equal(list(of_stream), list(of_list))
    stream = hr.stream(given_by(numbers(9)))
    with hr.Loader(stream, [negative], batch_size=4, python_workers=2) as loader:
        for _ in range(2):
            assert [batch.x[-1].tolist() for batch in loader] == [[-3, 3], [-7, 7], [-8, 8]]


def test_python_transforms_and_mixing_of_batches() -> None:
    def doubled(image: Any) -> Any:
        return image // 2

    steps = [T.Resize((16, 16)), doubled, T.ToDtype("float32"), T.MixUp(num_classes=32)]
    records = [{"image": each["image"], "label": each["label"]} for each in photos(19)]
    keywords: Any = {"batch_size": 8, "seed": 1}
    of_list, of_stream = (
        hr.Loader(source, steps, **keywords) for source in (records, hr.stream(given_by(records)))
    )
    for _ in range(2):
        assert_equal(list(of_stream), list(of_list))


@pytest.mark.parametrize("devices", [1, 2])
@pytest.mark.parametrize("count", [1, 20, 23])
def test_batches_on_devices(devices: int, count: int) -> None:
    records = [{"image": each["image"], "label": each["label"]} for each in photos(count)]
    steps = [T.RandomResizedCrop(16), T.ToDtype("float32", scale=True)]
    keywords: Any = {"batch_size": 4, "seed": 2, "ragged": "list"}
    of_list = hr.Loader(records, steps, **keywords)
    of_stream = hr.Loader(hr.stream(given_by(records)), steps, **keywords)
    targets = [_core.simulated_device(seed=4 + k) for k in range(devices)]
    for _ in range(3):
        got = []
        for parts in of_stream.dlpack(targets if devices > 1 else targets[0]):
            each = parts if devices > 1 else [parts]
            got.append([np.concatenate([np.asarray(p[k].bits()) for p in each]) for k in range(2)])
        expected = list(of_list)
        assert len(got) == len(expected) == -(-count // 4)
        for (image, label), batch in zip(got, expected, strict=True):
            assert image.tobytes() == batch.image.tobytes()
            assert label.tobytes() == batch.label.tobytes()
    assert of_stream.stats().batches == of_list.stats().batches


def test_values_of_all_kinds_and_reused_arrays() -> None:
    def function() -> Iterator[dict[str, Any]]:
        array = np.zeros(3, np.float32)
        for i in range(10):
            array[:] = i
            yield {"x": array, "t": str(i), "b": bytes([i]), "f": i / 2, "n": np.int64(i)}

    got = list(hr.Loader(hr.stream(function, shuffle_buffer=3), batch_size=4))
    assert [len(batch.t) for batch in got] == [4, 4, 2]
    for batch in got:
        for k, text in enumerate(batch.t):
            i = int(text)
            assert batch.x[k].tolist() == [i] * 3 and batch.b[k] == bytes([i])
            assert (batch.f[k], batch.n[k]) == (i / 2, i)


def test_tuples_have_names() -> None:
    def pairs() -> Iterator[Any]:
        for i in range(3):
            yield np.full(2, i, np.float32), i

    batches = list(hr.Loader(hr.stream(pairs), batch_size=2))
    assert batches[0]._fields == ("data", "label")
    assert [batch.label.tolist() for batch in batches] == [[0, 1], [2]]


def test_images_of_several_sizes_need_no_shapes() -> None:
    def function() -> Iterator[dict[str, Any]]:
        for i in range(20):
            yield {"image": Image.new("RGB", (20 + i, 30)), "label": i}

    batches = list(hr.Loader(hr.stream(function), [T.Resize((8, 8))], batch_size=8))
    assert [batch.image.shape for batch in batches] == [(8, 3, 8, 8), (8, 3, 8, 8), (4, 3, 8, 8)]


# --- Order ----------------------------------------------------------------------------------------


def sorted_order(count: int, size: int, seed: int, epoch: int) -> list[int]:
    """The shuffle buffer's order, as its definition says: all records by the time until which each
    is held."""
    drawn = []
    for block in range(count // 4096 + 1):
        key = np.array([seed, epoch], np.uint64)
        philox = np.random.Philox(key=key, counter=np.array([0, block, 0, 0], np.uint64))
        drawn += [int(word) >> 32 for word in philox.random_raw(4096)]
    return sorted(range(count), key=lambda i: ((i << 32) + drawn[i] * 2 * size, i))


@pytest.mark.parametrize("size", [1, 2, 7, 100, 1000])
def test_the_shuffle_buffer_sorts_by_a_draw_of_each_record(size: int) -> None:
    stream = hr.stream(given_by(numbers(300)), shuffle_buffer=size)
    loader = hr.Loader(stream, batch_size=16, seed=9)
    for epoch in range(2):
        order = list(itertools.chain(*ids(loader)))
        assert order == sorted_order(300, size, 9, epoch)
        assert order != sorted(order)
    moved = np.abs(np.array(order) - np.arange(300))
    assert moved.max() < 2 * size


def test_the_shuffle_order_continues_after_a_block_of_random_draws() -> None:
    stream = hr.stream(({"i": i} for i in range(9000)), shuffle_buffer=50)
    order = list(itertools.chain(*ids(hr.Loader(stream, batch_size=100))))
    assert order == sorted_order(9000, 50, 0, 0)


def test_little_more_than_the_buffer_is_held() -> None:
    given = 0

    def function() -> Iterator[dict[str, Any]]:
        nonlocal given
        for given in range(1_000_000):
            yield {"i": given}

    loader = hr.Loader(hr.stream(function, shuffle_buffer=500), batch_size=10)
    for _, batch in zip(range(20), loader, strict=False):
        assert given < batch.i.max() + 1100 + 10_000
    loader.close()


def test_each_epoch_calls_the_function_again_with_its_arguments() -> None:
    called = []

    def function(epoch: int, rank: int = -1, world_size: int = -1) -> Iterator[dict[str, Any]]:
        called.append((epoch, rank, world_size))
        yield from ({"i": 10 * epoch + k} for k in range(3))

    loader = hr.Loader(hr.stream(function), batch_size=2)
    assert [ids(loader) for _ in range(3)] == [
        [[0, 1], [2]],
        [[10, 11], [12]],
        [[20, 21], [22]],
    ]
    assert called == [(0, 0, 1), (1, 0, 1), (2, 0, 1)]


def test_set_epoch_of_the_iterable_is_called() -> None:
    class Shuffled:
        def set_epoch(self, epoch: int) -> None:
            self.epoch = epoch

        def __iter__(self) -> Iterator[dict[str, int]]:
            return iter([{"i": 100 * self.epoch + k} for k in range(4)])

    loader = hr.Loader(hr.stream(Shuffled()), batch_size=4)
    assert ids(loader) == [[0, 1, 2, 3]]
    loader.set_epoch(7)
    assert ids(loader) == [[700, 701, 702, 703]]


def test_the_key_is_the_iterables_index_and_the_id_the_position() -> None:
    stream = hr.stream(given_by(numbers(50)), shuffle_buffer=9)
    for batch in hr.Loader(stream, batch_size=8, fields=["i", "key", "id"]):
        assert batch.key == [str(i) for i in batch.i]
    assert batch.id.tolist() == [48, 49]


# --- Length ---------------------------------------------------------------------------------------


def test_len_is_a_type_error_without_length() -> None:
    loader = hr.Loader(hr.stream(given_by(numbers(5))), batch_size=2)
    with pytest.raises(TypeError, match=r"HR0690.*length="):
        len(loader)
    assert "unknown number per epoch" in repr(loader)
    assert len(hr.Loader(hr.stream(given_by(numbers(5)), length=5), batch_size=2)) == 3


def test_length_ends_an_endless_stream() -> None:
    def endless(epoch: int) -> Iterator[dict[str, int]]:
        yield from ({"i": 1000 * epoch + k} for k in itertools.count())

    loader = hr.Loader(hr.stream(endless, length=7), batch_size=3)
    assert len(loader) == 3
    assert ids(loader) == [[0, 1, 2], [3, 4, 5], [6]]
    assert ids(loader) == [[1000, 1001, 1002], [1003, 1004, 1005], [1006]]


def test_the_error_of_a_stream_shorter_than_its_length_names_the_end() -> None:
    loader = hr.Loader(hr.stream(given_by(numbers(7)), length=9), batch_size=3)
    batches = iter(loader)
    assert [next(batches).i.tolist(), next(batches).i.tolist()] == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(hr.DataError, match=r"HR0692.*ended after 7 records in epoch 0; length=9"):
        next(batches)


# --- Ranks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("world_size", [1, 2, 3])
@pytest.mark.parametrize("last_batch", ["keep", "drop", "pad"])
@pytest.mark.parametrize("buffer", [0, 20])
def test_ranks_divide_the_global_batches(world_size: int, last_batch: str, buffer: int) -> None:
    records = numbers(47)
    alone = hr.Loader(
        hr.stream(given_by(records), shuffle_buffer=buffer),
        global_batch_size=12,
        last_batch=last_batch,
    )
    ranks = [
        hr.Loader(
            hr.stream(given_by(records), shuffle_buffer=buffer),
            global_batch_size=12,
            last_batch=last_batch,
            shard=(rank, world_size),
        )
        for rank in range(world_size)
    ]
    for _ in range(2):
        parts = [ids(loader) for loader in ranks]
        together = [list(itertools.chain(*batch)) for batch in zip(*parts, strict=True)]
        assert together == ids(alone)
        assert len({len(part) for part in parts}) == 1
    read = ranks[-1].stats()["stream"]
    assert read["read"] >= 2 * 47  # every rank reads everything
    assert read["dropped"] == (0 if world_size == 1 else read["dropped"]) >= 0


@pytest.mark.parametrize("world_size", [2, 3, 5, 7])
@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_an_unknown_length_suits_any_number_of_ranks(world_size: int, size: int) -> None:
    total = 3 * size * world_size
    parts = [
        ids(
            hr.Loader(
                hr.stream(given_by(numbers(total))), batch_size=size, shard=(rank, world_size)
            )
        )
        for rank in range(world_size)
    ]
    together = [list(itertools.chain(*batch)) for batch in zip(*parts, strict=True)]
    assert together == [list(range(at, at + total // 3)) for at in range(0, total, total // 3)]


def test_a_last_batch_that_is_too_small_for_the_ranks_is_refused() -> None:
    loader = hr.Loader(hr.stream(given_by(numbers(13))), batch_size=4, shard=(0, 3))
    batches = iter(loader)
    assert next(batches).i.tolist() == [0, 1, 2, 3]
    with pytest.raises(hr.ConfigError, match=r"HR0721.*1 records remain for 3 ranks"):
        next(batches)


@pytest.mark.parametrize("last_batch", ["keep", "drop"])
def test_each_rank_may_have_a_separate_stream(last_batch: str) -> None:
    def function(rank: int, world_size: int) -> Iterator[dict[str, int]]:
        yield from ({"i": 1000 * rank + k} for k in range(100))

    seen = []
    for rank in range(3):
        stream = hr.stream(function, length=34)
        loader = hr.Loader(stream, batch_size=4, shard=(rank, 3), last_batch=last_batch)
        assert len(loader) == (3 if last_batch == "keep" else 2)
        seen.append([ids(loader), ids(loader)])
        assert loader.stats()["stream"]["dropped"] == 0
    for rank, epochs in enumerate(seen):
        own = [1000 * rank + k for k in range(12)]
        assert epochs[0] == epochs[1]
        assert list(itertools.chain(*epochs[0])) == own[: sum(map(len, epochs[0]))]
        assert [len(batch) for batch in epochs[0]][:2] == [4, 4]


def test_ranks_with_separate_streams_draw_differently() -> None:
    record = photos(1)[0]
    steps = [T.RandomResizedCrop(8)]
    pixels = []
    for rank in range(2):
        stream = hr.stream(itertools.repeat(record), length=16, sharded=True)
        loader = hr.Loader(stream, steps, batch_size=4, shard=(rank, 2), fields=["image"])
        pixels.append(np.concatenate([batch.image for batch in loader]).tobytes())
    assert pixels[0] != pixels[1]


def test_separate_streams_per_rank_need_a_length() -> None:
    stream = hr.stream(given_by(numbers(8)), sharded=True)
    with pytest.raises(hr.ConfigError, match=r"HR0696.*without length="):
        hr.Loader(stream, batch_size=2, shard=(0, 2))
    assert len(list(hr.Loader(stream, batch_size=2))) == 4  # a single rank needs none


def test_one_ranks_stream_that_is_too_short_is_an_error_there() -> None:
    def function(rank: int, world_size: int) -> Iterator[dict[str, int]]:
        yield from ({"i": k} for k in range(8 - 3 * rank))

    loaders = [
        hr.Loader(hr.stream(function, length=16), batch_size=4, shard=(rank, 2))
        for rank in range(2)
    ]
    assert ids(loaders[0]) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    with pytest.raises(hr.DataError, match="rank 1 of function ended after 5 records"):
        list(loaders[1])


# --- Errors ---------------------------------------------------------------------------------------


def test_a_generator_that_raises_names_the_record() -> None:
    def function() -> Iterator[dict[str, int]]:
        yield from ({"i": k} for k in range(10))
        raise OSError("the network is gone")

    batches = iter(hr.Loader(hr.stream(function), batch_size=4))
    assert [next(batches).i.tolist(), next(batches).i.tolist()] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    with pytest.raises(hr.DataError, match=r"HR0691.*at record 10 of epoch 0.*the network is gone"):
        next(batches)


@pytest.mark.parametrize("at", [0, 3])
def test_a_generator_that_raises_in_the_first_records_is_an_error(at: int) -> None:
    def function() -> Iterator[dict[str, Any]]:
        yield from ({"image": Image.new("L", (4, 4))} for _ in range(at))
        raise RuntimeError("oh")

    with pytest.raises(hr.DataError, match=rf"HR0691.*at record {at}.*oh"):
        list(hr.Loader(hr.stream(function), batch_size=2))


def test_a_schema_change_in_record_1000_is_an_error() -> None:
    def function(wrong: Any) -> Iterator[dict[str, Any]]:
        for k in range(1200):
            yield wrong if k == 1000 else {"i": k, "x": np.zeros(2, np.float32)}

    for wrong, words in (
        ({"i": 5}, r"no field x.*has i"),
        ({"i": "text", "x": np.zeros(2, np.float32)}, "i is 'text'"),
        ({"i": 1, "x": np.zeros(3, np.float32)}, r"x has shape \(3,\), but record 0 has \(2,\)"),
        (None, "no field i"),
    ):
        records = list(function(wrong))
        loader = hr.Loader(hr.stream(given_by(records)), batch_size=100)
        batches = iter(loader)
        for _ in range(10):
            next(batches)
        with pytest.raises(hr.DataError, match=rf"HR0611.*record 1000 of function: .*{words}"):
            next(batches)
        skipping = hr.Loader(hr.stream(given_by(records)), batch_size=100, on_error="skip")
        assert [len(batch.i) for batch in skipping] == [100] * 10 + [99] + [100]
        [bad] = skipping.quarantine
        assert bad["key"] == "1000"


def test_a_bad_record_of_a_shuffled_stream_has_the_iterables_number() -> None:
    records = numbers(60)
    del records[33]["x"]
    stream = hr.stream(given_by(records), shuffle_buffer=16)
    with pytest.raises(hr.DataError, match="record 33 of function"):
        list(hr.Loader(stream, batch_size=4))


@pytest.mark.parametrize("records", [[], ()])
def test_an_empty_stream_is_an_error(records: Any) -> None:
    with pytest.raises(hr.DataError, match=r"HR0694.*returned no record"):
        hr.stream(lambda: iter(records))


def test_a_stream_that_is_empty_in_a_later_epoch() -> None:
    def function(epoch: int) -> Iterator[dict[str, int]]:
        yield from ({"i": k} for k in range(0 if epoch == 1 else 4))

    loader = hr.Loader(hr.stream(function), batch_size=4)
    assert ids(loader) == [[0, 1, 2, 3]]
    with pytest.raises(hr.DataError, match=r"HR0694.*no records in epoch 1"):
        list(loader)


def test_an_iterator_works_for_one_epoch() -> None:
    loader = hr.Loader(hr.stream({"i": k} for k in range(6)), batch_size=4)
    assert ids(loader) == [[0, 1, 2, 3], [4, 5]]
    with pytest.raises(hr.ConfigError, match=r"(?s)HR0693.*once.*hr.stream\(function\)"):
        list(loader)
    broken_off = hr.Loader(hr.stream({"i": k} for k in range(6)), batch_size=4)
    next(iter(broken_off))
    with pytest.raises(hr.ConfigError, match="HR0693"):
        list(broken_off)


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"shuffle": True}, "shuffle_buffer="),
        ({"shuffle": "blocks"}, "shuffle_buffer="),
        ({"sampler": [1, 2]}, "sampler="),
        ({"on_error": "substitute"}, 'on_error="skip"'),
        ({"resident": True}, "resident=True"),
        ({"cache": 1000}, "cache=1000"),
        ({"index": "auto"}, "index='auto'"),
    ],
)
def test_options_that_need_record_numbers_are_refused(keywords: Any, words: str) -> None:
    with pytest.raises(hr.ConfigError, match="HR0696") as raised:
        hr.Loader(hr.stream(given_by(numbers(4))), batch_size=2, **keywords)
    assert words in str(raised.value)


def test_features_that_need_records_by_number_are_refused() -> None:
    stream = hr.stream(given_by(numbers(4)))
    loader = hr.Loader(stream, batch_size=2)
    calls: list[Callable[[], Any]] = [
        lambda: stream[0],
        lambda: len(stream),
        lambda: stream.column("i"),
        lambda: stream.filter("i > 1"),
        lambda: hr.concat(stream, hr.open(numbers(3))),
        lambda: hr.subset(stream, [0]),
        lambda: loader.batch(0, 0),
        lambda: loader.peek(),
        lambda: loader.seek(1),
        lambda: left_for_last_batch(loader),
    ]
    for call in calls:
        with pytest.raises(hr.ConfigError, match="HR0690"):
            call()
    assert bool(stream) and "unknown length" in repr(stream)


def test_transforms_that_take_other_records_are_refused() -> None:
    stream = hr.stream(
        given_by(photos(12)), kinds={"boxes": "boxes:xyxy"}, shapes={"boxes": (-1, 4)}
    )
    with pytest.raises(hr.ConfigError, match=r"HR0696.*Mosaic"):
        hr.Loader(stream, [T.Mosaic(16)], batch_size=2, ragged="list")


@pytest.mark.parametrize("given", [3, None, object()])
def test_objects_that_are_not_streams_are_refused(given: Any) -> None:
    with pytest.raises(hr.ConfigError, match=r"HR0154.*neither an iterable nor a function"):
        hr.stream(given)


def test_a_function_with_unknown_required_arguments_is_refused() -> None:
    with pytest.raises(hr.ConfigError, match=r"HR0154.*needs path"):
        hr.stream(lambda path: iter([path]))


# --- The end --------------------------------------------------------------------------------------


def test_closing_in_mid_epoch_ends_the_generator_and_leaves_no_thread() -> None:
    ended = []

    def function() -> Iterator[dict[str, int]]:
        try:
            yield from ({"i": k} for k in itertools.count())
        finally:
            ended.append(True)

    before = set(threading.enumerate())
    with hr.Loader(hr.stream(function), batch_size=4) as loader:
        next(iter(loader))
    assert ended == [True]
    assert {t for t in threading.enumerate() if t not in before} == set()


def test_a_generator_that_raises_when_it_is_closed_is_a_warning() -> None:
    def function() -> Iterator[dict[str, int]]:
        try:
            yield from ({"i": k} for k in itertools.count())
        finally:
            raise OSError("cannot disconnect")

    loader = hr.Loader(hr.stream(function), batch_size=4)
    next(iter(loader))
    with pytest.warns(hr.Warning, match=r"function was closed.*cannot disconnect"):
        loader.close()


def test_a_generator_that_hangs_when_closed_is_abandoned(monkeypatch: Any) -> None:
    monkeypatch.setattr("headrace.sources.stream_origin._PATIENCE", 0.2)
    let_go = threading.Event()

    def function() -> Iterator[dict[str, int]]:
        try:
            yield from ({"i": k} for k in itertools.count())
        finally:
            let_go.wait()

    loader = hr.Loader(hr.stream(function), batch_size=4)
    next(iter(loader))
    with pytest.warns(hr.Warning, match="still runs after 0.2 s"):
        loader.close()
    let_go.set()


def test_ctrl_c_ends_a_run_with_a_hanging_generator() -> None:
    script = """
import time, headrace as hr
def function():
    yield from ({"i": k} for k in range(64))
    print("hangs", flush=True)
    time.sleep(1000)
for batch in hr.Loader(hr.stream(function), batch_size=4):
    pass
"""
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout and process.stdout.readline() == "hangs\n"
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=300)
    assert process.returncode in (130, -signal.SIGINT) and "KeyboardInterrupt" in error


def hanging(let_go: threading.Event) -> Callable[[], Iterator[dict[str, int]]]:
    """A stream that hangs at record 70."""

    def function() -> Iterator[dict[str, int]]:
        for number in range(76):
            if number == 70:
                let_go.wait()
            yield {"i": number}

    return function


@pytest.mark.parametrize("buffer", [0, 2])
@pytest.mark.parametrize("on_device", [False, True])
def test_a_generator_that_hangs_is_an_error_after_record_timeout(
    buffer: int, on_device: bool
) -> None:
    let_go = threading.Event()
    source = hr.stream(hanging(let_go), shuffle_buffer=buffer)
    loader = hr.Loader(source, batch_size=2, record_timeout=0.5)
    view = loader.dlpack(_core.simulated_device(seed=1)) if on_device else loader
    got = []
    try:
        with pytest.raises(hr.DataError) as caught:
            for batch in view:
                got += [] if on_device else batch.i.tolist()
        for use in (lambda: list(view), lambda: loader.set_epoch(3)):  # nor do these wait for it
            with pytest.raises(hr.DataError, match="HR0698"):
                use()
        loader.close()
    finally:
        let_go.set()
    words = r"HR0698.*function has not returned record 70 for .*in function, .*line"
    assert re.search(words, str(caught.value)) and "record_timeout=" in str(caught.value.hint)
    assert set(got) <= set(range(70))
    assert buffer or got == list(range(len(got)))


def test_record_timeout_does_not_end_a_slow_stream_or_a_slow_loop() -> None:
    let_go = threading.Event()
    loader = hr.Loader(hr.stream(hanging(let_go)), batch_size=2, record_timeout=0.5)
    batches = iter(loader)
    first = next(batches).i.tolist()
    while "record 70 for 1 s" not in loader.assembly.stream.reader.awaited():
        threading.Event().wait(0.02)  # the loop is busy for longer than record_timeout=
    let_go.set()
    rest = [number for batch in batches for number in batch.i.tolist()]
    assert first + rest == list(range(76))


def test_a_program_ends_after_a_generator_hung() -> None:
    script = """
import time, headrace as hr
def function():
    yield from ({"i": k} for k in range(64))
    time.sleep(1000)
loader = hr.Loader(hr.stream(function), batch_size=4, record_timeout=0.2)
try:
    for batch in loader:
        pass
except hr.DataError as error:
    print(error.code, flush=True)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.returncode, done.stdout) == (0, "HR0698\n"), done.stderr


# --- Given without hr.stream ----------------------------------------------------------------------


def test_generator_functions_are_streams() -> None:
    assert ids(hr.Loader(given_by(numbers(3)), batch_size=2)) == [[0, 1], [2]]
    stream = hr.open(given_by(photos(3)), kinds={"image": "image"}, shuffle_buffer=2)
    assert "shuffle buffer of 2" in repr(stream)


def test_generators_and_other_functions_are_refused_with_a_hint_to_use_stream() -> None:
    for given in (iter(numbers(3)), lambda: iter(numbers(3))):
        with pytest.raises(hr.ConfigError, match=r"(?s)HR0154.*hr\.stream\("):
            hr.open(given)
