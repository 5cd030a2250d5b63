# SPDX-License-Identifier: Apache-2.0
"""Packed rows of a stream are the same as those of its documents packed as lists of one length."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from test_packed_images import IMAGE, STEPS, samples
from test_patches import picture

import headrace as hr
from headrace import transforms as T

SHAPES = {"tokens": (-1,)}
KINDS = {"one": "image", "two": "image"}
IMAGES: dict[str, Any] = {
    "length": 128,
    "images": ("one", "two"),
    "placeholder": IMAGE,
    "image_transforms": STEPS,
    "patches_per_token": 4,
}


def without_pictures(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{n: v for n, v in record.items() if n != "pictures"} for record in records]


def documents(count: int, seed: int = 0) -> list[dict[str, Any]]:
    random = np.random.default_rng(seed)
    return [{"tokens": random.integers(1, 90, n)} for n in random.integers(1, 40, count)]


class Stateful:
    """Like a streaming dataset."""

    at = begin = 0

    def __init__(self, records: list[Any]) -> None:
        self.records, self.read = records, 0

    def state_dict(self) -> dict[str, int]:
        return {"at": self.at}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.begin = state["at"]

    def __iter__(self) -> Iterator[Any]:
        for number in range(self.begin, len(self.records)):
            self.at = number + 1
            self.read += 1
            yield self.records[number]


def loader_of(rows: Any, **more: Any) -> hr.Loader:
    given = {"batch_size": 3, "ragged": "packed", **more}
    return hr.Loader(rows, **given)


def tokens_of(loader: hr.Loader) -> list[list[int]]:
    return [row.tolist() for batch in loader for row in batch.tokens]


@pytest.mark.parametrize("method", ["best-fit", "first-fit", "sequential", "split"])
def test_rows_equal_those_of_lists(method: str) -> None:
    records = documents(100)
    expected: list[list[int]] = []
    for begin in range(0, 100, 30):
        part = hr.open(records[begin : begin + 30], shapes=SHAPES)
        expected += [row["tokens"].tolist() for row in hr.packed(part, length=64, method=method)]
    rows = hr.packed(
        hr.stream(lambda: iter(records), shapes=SHAPES), length=64, method=method, buffer=30
    )
    loader = loader_of(rows)
    for _ in range(2):  # epochs
        assert tokens_of(loader) == expected
    batch = next(iter(loader_of(rows)))
    begin, end = batch.cu_seqlens_offsets[:2]
    assert batch.cu_seqlens[begin] == 0 and batch.cu_seqlens[end - 1] == 64


def test_it_reads_no_more_than_the_buffer() -> None:
    read = 0

    def endless() -> Iterator[Any]:
        nonlocal read
        while True:
            read += 1
            yield {"tokens": np.arange(8)}

    rows = hr.packed(hr.stream(endless, shapes=SHAPES), length=32, buffer=40, rows=1000)
    assert read == 40
    loader = loader_of(rows)
    assert len(loader) == 334
    next(iter(loader))
    loader.close()


@pytest.mark.parametrize("stateful", [True, False])
@pytest.mark.parametrize("shuffle_buffer", [0, 4])
def test_resume_at_every_step(stateful: bool, shuffle_buffer: int) -> None:
    records = documents(120)

    def loader(source: Any) -> hr.Loader:
        documents = hr.stream(source, shapes=SHAPES, shuffle_buffer=shuffle_buffer)
        return loader_of(hr.packed(documents, length=64, buffer=25))

    def fresh() -> Any:
        return Stateful(records) if stateful else lambda: iter(records)

    whole = [batch.tokens.tolist() for batch in loader(fresh())]
    for step in range(1, len(whole), 3):
        first = loader(fresh())
        for _ in zip(range(step), first, strict=False):
            pass
        source = fresh()
        resumed = loader(source)
        resumed.load_state_dict(first.state_dict())
        with warnings.catch_warnings():
            warnings.simplefilter("error" if stateful and not shuffle_buffer else "ignore")
            rest = [batch.tokens.tolist() for batch in resumed]
        assert rest == whole[step:]
        if stateful and step > len(whole) // 2 and not shuffle_buffer:
            assert source.read < len(records)


def test_inspected_documents_are_not_lost_by_a_resume() -> None:
    """Eight are inspected for their images, two buffers of them."""
    records = [{**document, "image": picture(8, 8)} for document in documents(24)]

    def loader() -> hr.Loader:
        source = hr.stream(Stateful(records), shapes=SHAPES)
        return loader_of(hr.packed(source, length=40, buffer=4), batch_size=1)

    whole = [batch.tokens.tolist() for batch in loader()]
    for step in range(1, len(whole)):
        first = loader()
        for _ in zip(range(step), first, strict=False):
            pass
        resumed = loader()
        resumed.load_state_dict(first.state_dict())
        assert [batch.tokens.tolist() for batch in resumed] == whole[step:]


def test_a_state_of_another_packing_is_refused() -> None:
    records = without_pictures(samples(20))
    for record in records:
        record["train"] = np.ones(len(record["tokens"]), int)

    def loader(**given: Any) -> hr.Loader:
        documents = hr.stream(lambda: iter(records), shapes=SHAPES | {"train": (-1,)}, kinds=KINDS)
        return loader_of(hr.packed(documents, "tokens", **{**IMAGES, **given}), batch_size=1)

    state = loader().state_dict()
    others: list[dict[str, Any]] = [
        {"length": 129},
        {"buffer": 999},
        {"method": "sequential"},
        {"seed": 1},
        {"mask": "train"},
        {"image_transforms": [T.SmartResize(28, 28 * 28, 84 * 84), *STEPS[1:]]},
    ]
    for given in others:
        with pytest.raises(hr.ConfigError, match="HR07"):
            loader(**given).load_state_dict(state)
    loader().load_state_dict(state)


def test_kinds_of_documents_apply_to_their_rows() -> None:
    records = without_pictures(samples(12))
    said = hr.stream(lambda: iter(records), shapes=SHAPES, kinds=KINDS)
    later = hr.stream(lambda: iter(records), shapes=SHAPES, kinds=dict.fromkeys(KINDS, "bytes"))
    later = later.with_kinds(KINDS)
    ours, theirs = (list(loader_of(hr.packed(s, "tokens", **IMAGES))) for s in (later, said))
    assert [batch.tokens.tolist() for batch in ours] == [batch.tokens.tolist() for batch in theirs]


@pytest.mark.parametrize("world", [2, 3])
def test_ranks_divide_one_stream(world: int) -> None:
    records = documents(90)

    def loader(rank: int, world: int) -> hr.Loader:
        rows = hr.packed(hr.stream(lambda: iter(records), shapes=SHAPES), length=64, buffer=20)
        return loader_of(rows, batch_size=6 // world, shard=(rank, world), last_batch="drop")

    whole = [row for batch in loader(0, 1) for row in batch.tokens.tolist()]
    parts = [[batch.tokens.tolist() for batch in loader(rank, world)] for rank in range(world)]
    joined = [row for batches in zip(*parts, strict=True) for part in batches for row in part]
    assert joined == whole


def test_per_rank_streams_need_the_number_of_rows() -> None:
    def own(epoch: int, rank: int, world_size: int) -> Iterator[Any]:
        yield from documents(200)[rank::world_size]

    stream = hr.stream(own, shapes=SHAPES)
    with pytest.raises(hr.ConfigError, match="HR0195"):
        hr.packed(stream, length=64)
    seen = []
    for rank in range(2):
        rows = hr.packed(hr.stream(own, shapes=SHAPES), length=64, rows=24, buffer=16)
        loader = loader_of(rows, batch_size=4, shard=(rank, 2))
        assert len(loader) == 3
        seen += tokens_of(loader)
    assert len(seen) == 24 and len({tuple(row) for row in seen}) == 24


def test_images_are_packed_too() -> None:
    records = without_pictures(samples(12))
    stream = hr.stream(lambda: iter(records), shapes=SHAPES, kinds=KINDS)
    rows = hr.packed(stream, "tokens", **IMAGES)
    listed = hr.packed(hr.open(records, shapes=SHAPES, kinds=KINDS), "tokens", **IMAGES)
    (ours,) = hr.Loader(rows, [T.EachImage(STEPS)], batch_size=len(listed), ragged="packed")
    (theirs,) = hr.Loader(listed, [T.EachImage(STEPS)], batch_size=len(listed), ragged="packed")
    for name in ("tokens", "targets", "images", "image_positions", "image_sizes"):
        np.testing.assert_array_equal(ours[name], theirs[name])
    np.testing.assert_array_equal(ours.image_positions_offsets, theirs.image_positions_offsets)


def test_skipped_documents_are_counted() -> None:
    records = [{"tokens": np.arange(n)} for n in (5, 50, 60, 70, 6)]
    stream = hr.stream(lambda: iter(records), shapes=SHAPES)
    with pytest.warns() as warned:
        rows = hr.packed(stream, length=10, too_long="drop", buffer=2)
        assert len(tokens_of(loader_of(rows))) == 2
    said = [str(each.message) for each in warned]
    assert ": 1 documents left out" in said[0] and "of 2 documents" in said[0]
    assert ": 3 documents left out" in said[-1] and "of 5 documents" in said[-1]
    assert len(said) == 2


@pytest.mark.parametrize("stateful", [True, False])
def test_skipped_documents_of_an_abandoned_epoch_are_counted(stateful: bool) -> None:
    records = [{"tokens": np.arange(n)} for n in (5, 6, 50, 7, 60, 8) * 50]
    stream = hr.stream(Stateful(records) if stateful else lambda: iter(records), shapes=SHAPES)
    rows = hr.packed(stream, length=10, too_long="truncate", buffer=2, rows=40)
    loader = loader_of(rows, batch_size=1)
    with pytest.warns() as warned:
        for _ in zip(range(20), loader, strict=False):
            pass
        loader.close()
    said = [str(each.message) for each in warned]
    assert "1 documents truncated" in said[0] and len(said) == 2
    assert "documents truncated" in said[1] and said[0] != said[1]


def test_an_endless_stream_that_gives_no_row_is_an_error() -> None:
    stream = hr.stream(lambda: itertools.repeat({"tokens": np.arange(30)}), shapes=SHAPES)
    with (
        pytest.warns(match="documents left out"),
        pytest.raises(hr.DataError, match=r"HR0691 .*HR0199"),
    ):
        hr.packed(stream, length=10, too_long="drop")


def test_impossible_arguments_are_refused() -> None:
    stream = hr.stream(lambda: iter(documents(9)), shapes=SHAPES, length=5)
    with pytest.raises(hr.ConfigError, match=r"(?s)HR0195 .*rows="):
        hr.packed(stream, length=64)
    rows = hr.packed(hr.stream(lambda: iter(documents(9)), shapes=SHAPES), length=64)
    with pytest.raises(hr.ConfigError, match="HR0690"):
        rows[0]
    with pytest.raises(hr.ConfigError, match=r"HR0114 .*cu_seqlens"):
        hr.Loader(rows, batch_size=2)
    bad = [*documents(3), {"tokens": np.array([-1])}]
    rows = hr.packed(
        hr.stream(lambda: iter(bad), shapes=SHAPES), length=64, vocab_size=90, buffer=2
    )
    with pytest.raises(hr.DataError, match=r"HR0691 .*HR1455"):
        tokens_of(loader_of(rows))
