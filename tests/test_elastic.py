# SPDX-License-Identifier: Apache-2.0
"""Promise: the number of ranks may change at any batch, to any number; counting committed steps,
each record is delivered once per epoch, and the gradient is the global batch's."""

from __future__ import annotations

import itertools
import os
import random
from typing import Any

import numpy as np
import pytest

import headrace as hr

RECORDS, GLOBAL = 57, 10  # five batches, and seven records for the last
HISTORIES = int(os.environ.get("HISTORIES", "10"))
WORLDS = (4, 2, 3, 8, 1)
WORLDS_OF_SEVEN = (4, 2, 3, 1)  # the last batch has a record for each
VALUES = np.random.default_rng(3).normal(size=RECORDS).astype(np.float32)


def loader(**given: Any) -> hr.Loader:
    options = {"global_batch_size": GLOBAL, "shuffle": True, "seed": 7, "uneven": True, **given}
    if options["last_batch"] == "keep" and options.get("shard", (0, 1))[1] == 8:
        options["last_batch"] = "drop"
    return hr.Loader(hr.records(value=VALUES, number=np.arange(RECORDS)), **options)


def slice_of(rows: list[int], rank: int, world: int) -> list[int]:
    return rows[len(rows) * rank // world : len(rows) * (rank + 1) // world]


@pytest.fixture(scope="module", params=["keep", "drop"])
def last_batch(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def whole_epochs(last_batch: str, epochs: int = 3) -> list[list[list[int]]]:
    run = loader(last_batch=last_batch)
    return [[batch.number.tolist() for batch in run] for _ in range(epochs)]


@pytest.mark.parametrize("world", [3, 4, 7])
def test_uneven_slices_cover_the_batch_and_their_weights_give_its_gradient(world: int) -> None:
    def gradient(values: Any, slope: float = 0.3) -> float:  # of mean((slope * v - v**2)**2) / 2
        v = values.astype(np.float64)
        return float(np.mean((slope * v - v**2) * v))

    runs = [loader(last_batch="keep", shard=(rank, world)) for rank in range(world)]
    for together, *parts in zip(loader(last_batch="keep"), *runs, strict=True):
        rows = [part.number.tolist() for part in parts]
        assert list(itertools.chain.from_iterable(rows)) == together.number.tolist()
        assert max(map(len, rows)) - min(map(len, rows)) <= 1
        assert sum(part.weight for part in parts) == pytest.approx(world)
        assert together.weight == 1
        # The gradient averaging done by the ranks.
        average = sum(part.weight * gradient(part.value) for part in parts) / world
        assert average == pytest.approx(gradient(together.value))
        assert [run.weight for run in runs] == [part.weight for part in parts]
    assert runs[1].batch(0, 5).weight == parts[1].weight


def test_uneven_ranks_must_be_requested() -> None:
    with pytest.raises(hr.ConfigError, match=r"HR0720[^\0]*uneven=True"):
        loader(last_batch="keep", uneven=False, shard=(0, 3))
    with pytest.raises(hr.ConfigError, match=r"HR0720[^\0]*10 over 11 ranks"):
        loader(last_batch="drop", shard=(0, 11))


def test_padding_has_no_weight() -> None:
    fields = ("number", "valid")
    runs = [loader(last_batch="pad", fields=fields, shard=(rank, 4)) for rank in range(4)]
    *_, last = zip(*runs, strict=True)
    weights = [part.weight for part in last]
    assert weights == pytest.approx([part.valid.sum() * 4 / 7 for part in last])


@pytest.mark.parametrize("world", [3, 4, 7])
@pytest.mark.parametrize("kept", [False, True], ids=["streamed", "resident"])
def test_padded_slices_have_equal_sizes_and_their_valid_rows_are_the_batch(
    world: int, kept: bool, last_batch: str
) -> None:
    given: dict[str, Any] = {
        "last_batch": last_batch,
        "uneven": "pad",
        "fields": ("value", "number", "valid"),
        "resident": kept,
    }
    runs = [loader(**given, shard=(rank, world)) for rank in range(world)]
    whole = loader(last_batch=last_batch)
    for _ in range(2):  # epochs
        for together, *parts in zip(whole, *runs, strict=True):
            rows = len(together.number)
            assert [len(part.number) for part in parts] == [-(-rows // world)] * world
            valid = [part.number[part.valid].tolist() for part in parts]
            assert list(itertools.chain.from_iterable(valid)) == together.number.tolist()
            assert [len(numbers) for numbers in valid] == [
                rows * (rank + 1) // world - rows * rank // world for rank in range(world)
            ]
            for part in parts:  # invalid entries are records, too
                np.testing.assert_array_equal(part.value, VALUES[part.number])
            means = [part.weight * part.value[part.valid].mean() for part in parts]
            assert np.mean(means) == pytest.approx(together.value.mean(), rel=1e-5)
            sums = sum(float((part.value * part.valid).sum()) for part in parts)
            assert sums / rows == pytest.approx(together.value.mean(), rel=1e-5)
    assert all(run.state_dict() == whole.state_dict() for run in runs)


def test_a_state_continues_with_and_without_padding(last_batch: str) -> None:
    whole = whole_epochs(last_batch, 1)[0]
    saved: dict[str, int] | None = None
    for number, (rank, world, uneven) in enumerate([(1, 3, "pad"), (0, 2, True), (3, 4, "pad")]):
        run = loader(
            last_batch=last_batch, uneven=uneven, shard=(rank, world), fields=("number", "valid")
        )
        if saved:
            run.load_state_dict(saved)
        batch = next(iter(run))
        assert batch.number[batch.valid].tolist() == slice_of(whole[number], rank, world)
        saved = run.state_dict()
    run.set_shard(6, 7)
    batch = next(iter(run))
    assert len(batch.number) == 2 and batch.valid.tolist() == [True, True]
    assert run.batch(0, 0).valid.tolist() == [True, True]
    run.set_shard(0, 7)
    assert run.batch(0, 0).valid.tolist() == [True, False]


def test_a_bad_record_in_the_padding_only_counts_where_it_is_valid() -> None:
    bad = [b"no picture"] * 10

    def run(rank: int, world: int) -> hr.Loader:
        return hr.Loader(
            hr.records(image=[*bad, *_photos(20)], kinds={"image": "image"}),
            global_batch_size=10,
            uneven="pad",
            fields=("image", "valid"),
            on_error="substitute",
            shard=(rank, world),
            ragged="list",
        )

    counts = []
    for rank in range(4):
        one = run(rank, 4)
        for _ in one:
            pass
        counts.append(len(one.quarantine))
        assert one.stats()["bad_records"] == counts[-1]
    assert counts == [2, 3, 2, 3]  # in the first batch: each record once


def test_padding_must_be_requested() -> None:
    with pytest.raises(hr.ConfigError, match=r"HR0710[^\0]*valid"):
        loader(last_batch="drop", uneven="pad", shard=(0, 3))
    with pytest.raises(hr.ConfigError, match=r"uneven must be True or False or 'pad'"):
        loader(last_batch="drop", uneven="yes")
    with pytest.raises(hr.ConfigError, match="HR0723"):
        hr.Loader(
            hr.records(image=np.zeros((30, 3, 8, 8), np.uint8), label=np.arange(30)),
            [hr.transforms.MixUp(num_classes=30, uint8=True)],
            global_batch_size=10,
            uneven="pad",
            fields=("image", "label", "valid"),
            shard=(0, 3),
        )


def _photos(count: int) -> list[bytes]:
    import io

    image = pytest.importorskip("PIL.Image")
    out = io.BytesIO()
    image.fromarray(np.zeros((8, 8, 3), np.uint8)).save(out, "PNG")
    return [out.getvalue()] * count


def test_an_iterator_resumes_with_another_world_size(last_batch: str) -> None:
    whole = whole_epochs(last_batch)
    run = loader(last_batch=last_batch, shuffle="streams")
    streamed = [batch.number.tolist() for batch in run]
    for order, shuffle in ((whole[0], True), (streamed, "streams")):
        run = loader(last_batch=last_batch, shuffle=shuffle)
        got = []
        for number, batch in enumerate(run):
            rank, world = run.assembly.shard[:2]
            assert batch.number.tolist() == slice_of(order[number], rank, world)
            got.append(number)
            next_world = (3, 2, 4, 1)[number % 4]
            run.set_shard(next_world - 1, next_world)
        assert got == list(range(len(order))) and run.epoch == 1
    before = run.state_dict()
    with pytest.raises(hr.ConfigError, match="HR0720"):
        run.set_shard(0, 11)
    assert run.state_dict() == before and repr(run).count(" of 11") == 0
    by_rank = loader(global_batch_size=None, batch_size=5, last_batch=last_batch)
    with pytest.raises(hr.ConfigError, match=r"HR0711.*global batch"):
        by_rank.set_shard(0, 2)


def test_seek_jumps_to_a_step_by_number(last_batch: str) -> None:
    whole = [batch for epoch in whole_epochs(last_batch) for batch in epoch]
    run = loader(last_batch=last_batch)
    length = len(run)
    batches = iter(run)
    for step in (0, 1, 1, 2, length - 1, length, length + 1, 3, 2 * length + 1):
        run.seek(step)
        assert next(batches).number.tolist() == whole[step]
        assert (run.epoch, run.state_dict()["batch"]) == (step // length, step % length + 1)
    run.seek(length)
    assert [batch.number.tolist() for batch in run] == whole[length : 2 * length]
    with pytest.raises(hr.ConfigError):
        run.seek(-1)


@pytest.mark.parametrize("uneven", [True, "pad"])
@pytest.mark.parametrize("shuffle", [False, True, "blocks", "streams"])
def test_crashes_and_changes_of_world_size_deliver_each_record_once(
    shuffle: bool | str, uneven: bool | str, last_batch: str
) -> None:
    """Runs of three epochs on 4, 2, 3, 8 or 1 ranks, each of which dies some steps after its last
    checkpoint. What all ranks of the committed steps had is each epoch's order, row by row."""
    given: dict[str, Any] = {
        "global_batch_size": GLOBAL,
        "shuffle": shuffle,
        "shuffle_window": None if shuffle is True else 2,
        "seed": 7,
        "last_batch": last_batch,
        "uneven": uneven,
        "fields": ["number", "valid"],
        "threads": 1,
    }
    source = hr.simulated(RECORDS, record_bytes=1 << 20, shards=1, image=(1, 1, 1))  # 8 per block
    worlds = WORLDS if last_batch == "drop" else WORLDS_OF_SEVEN
    for seed in range(HISTORIES):
        draw = random.Random(seed)
        # Before the first step: there are as many streams as the first world's machines need.
        first = hr.Loader(source, **given, shard=(0, draw.choice(worlds)))
        saved = first.state_dict()
        whole = hr.Loader(source, **given)
        whole.load_state_dict(saved)
        every = [(n, b.number[b.valid].tolist()) for n in range(3) for b in whole]
        for epoch in range(3):
            rows = [number for at, batch in every if at == epoch for number in batch]
            assert len(set(rows)) == len(rows) == RECORDS - 7 * (last_batch == "drop")
        committed: list[tuple[int, list[int]]] = []  # by the trainer's checkpoints
        while len(committed) < len(every):
            world = draw.choice(worlds)
            ranks = [hr.Loader(source, **given, shard=(rank, world)) for rank in range(world)]
            for rank in ranks:
                rank.load_state_dict(saved)
            steps: list[tuple[int, list[int]]] = []
            lives = draw.randrange(1, 9)  # steps
            while ranks[0].epoch < 3 and lives:
                for together in zip(*ranks, strict=True):
                    rows = [batch.number[batch.valid].tolist() for batch in together]
                    steps.append((ranks[0].epoch, list(itertools.chain.from_iterable(rows))))
                    if draw.random() < 0.4:  # a checkpoint; later steps may be lost
                        saved = ranks[draw.randrange(world)].state_dict()
                        committed += steps
                        steps = []
                    lives -= 1
                    if not lives:
                        break
            if ranks[0].epoch == 3:
                committed += steps
            for rank in ranks:
                rank.close()
        assert committed == every


class Group:
    """Imitates torch.distributed's process groups and DeviceMesh."""

    def __init__(self, rank: int, size: int, ndim: int = 1) -> None:
        self._rank, self._size, self.ndim = rank, size, ndim

    def get_local_rank(self) -> int:
        return self._rank

    def size(self) -> int:
        return self._size


def test_shard_may_be_a_process_group() -> None:
    run = loader(last_batch="drop", shard=Group(1, 2))
    assert "rank 1 of 2 (of a Group" in repr(run)
    assert next(iter(run)).number.tolist() == slice_of(whole_epochs("drop", 1)[0][0], 1, 2)
    with pytest.raises(hr.ConfigError, match=r"2 dimensions[^\0]*mesh"):
        loader(last_batch="drop", shard=Group(0, 4, ndim=2))
    with pytest.raises(hr.ConfigError, match="not a rank"):
        loader(last_batch="drop", shard=Group(-1, 4))
