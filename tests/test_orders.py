# SPDX-License-Identifier: Apache-2.0
"""Every order is one global sequence: the same on any number of ranks, wherever a run resumes.

The orders come from the registry, with each switch and each choice; a new one is included.
"""

from __future__ import annotations

import functools
import itertools
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace import _core

WORLDS = (1, 2, 3, 4, 6, 8)
RECORDS, BATCH, EPOCHS = 102, 24, 2
DRAW = np.random.default_rng(5)
SOURCE = hr.records(
    number=np.arange(RECORDS),
    label=np.arange(RECORDS) % 2,
    length=DRAW.integers(5, 40, RECORDS),
)
GIVEN: dict[str, Any] = {
    "weights": np.arange(RECORDS) % 5 + 0.5,
    "labels": "label",
    "lengths": "length",
    "durations": "length",
    "indices": np.arange(RECORDS)[::-1],
    "order": None,
}
REQUIRED: dict[str, Any] = {"int": BATCH, "ints": BATCH, "float": 900.0, "floats": 900.0}


def calls() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Each order of the registry: with defaults, each switch set, and each other choice."""
    for name, record in _core.samplers().items():
        params = record["params"]
        per_record = record["per_record"]
        least = {} if per_record == "nothing" else {params[0]["name"]: GIVEN[per_record]}
        for param in params if per_record == "nothing" else params[1:]:
            if param["required"]:
                least[param["name"]] = REQUIRED[param["type"]]
            elif param["name"] == "num_samples":  # epochs that end
                least[param["name"]] = 80
        make = getattr(hr.sampling, name)
        yield name, functools.partial(make, **least)
        for param in params:
            others = [True, False] if param["type"] == "bool" else param["choices"]
            for value in others:
                if value != param["default"]:
                    call = functools.partial(make, **{**least, param["name"]: value})
                    yield f"{name}-{param['name']}={value}", call
    yield "budget-two", lambda: hr.sampling.budget(("length", "label"), total=(900, 40))
    yield "repeat-weighted", lambda: hr.sampling.repeat(least_weighted(), num_samples=70)
    yield "per_epoch", lambda: hr.sampling.per_epoch(subset_of)
    yield "per_epoch-weighted", lambda: hr.sampling.per_epoch(sharper)
    yield "per_step", lambda: hr.sampling.per_step(batch_of, num_samples=5 * BATCH)
    yield "per_step-weighted", lambda: hr.sampling.per_step(towards, num_samples=4 * BATCH)
    yield "per_step-subset", lambda: hr.sampling.per_step(half_of, num_samples=3 * BATCH)


def least_weighted() -> Any:
    return hr.sampling.weighted(GIVEN["weights"], replacement=False)


def subset_of(epoch: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(epoch).permutation(RECORDS)[:90]


def sharper(epoch: int) -> Any:
    return hr.sampling.weighted(GIVEN["weights"] ** (1 + epoch), num_samples=90)


CALLS = dict(calls())


def batch_of(step: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(step).integers(0, RECORDS, BATCH)


def towards(step: int) -> Any:
    weights = GIVEN["weights"] * (1 + step * (np.arange(RECORDS) < 30))
    return hr.sampling.weighted(weights, num_samples=50)


def half_of(step: int) -> Any:
    half = np.arange(step // 2 % 2, RECORDS, 2)
    return hr.sampling.weighted(np.isin(np.arange(RECORDS), half) + 0.0, 40, replacement=False)


def loader(name: str, rank: int = 0, world: int = 1, **given: Any) -> hr.Loader:
    order = CALLS[name]()
    options = {"seed": 11, "threads": 1, "fields": "number", "shard": (rank, world), **given}
    engine = order.engine(SOURCE, False, hr.sampling.Batches(BATCH))
    if not engine.batch_sizes:
        options = {"global_batch_size": BATCH, "last_batch": "pad", **options}
    return hr.Loader(SOURCE, sampler=order, **options)


def batches(of: hr.Loader) -> Iterator[list[int]]:
    return (batch.number.tolist() for batch in of)


def following(of: hr.Loader) -> list[int]:
    """The next batch; a state taken with an epoch's last batch is at that epoch's end."""
    taken = next(batches(of), None)
    return taken if taken is not None else next(batches(of))


@functools.cache
def whole(name: str) -> tuple[list[list[int]], list[str]]:
    """All batches of some epochs in one process, and the states before each and after the last."""
    with loader(name) as alone:
        taken, states = [], [json.dumps(alone.state_dict())]
        for _ in range(EPOCHS):
            for batch in batches(alone):
                taken.append(batch)
                states.append(json.dumps(alone.state_dict()))
    return taken, states


@pytest.mark.parametrize("world", WORLDS[1:])
@pytest.mark.parametrize("name", CALLS)
def test_ranks_together_get_the_batches_of_one_process(name: str, world: int) -> None:
    taken, states = whole(name)
    ranks = [loader(name, rank, world) for rank in range(world)]
    assert {len(each) for each in ranks} == {len(taken) // EPOCHS}
    parts, seen = [], []
    for _ in range(EPOCHS):
        for pieces in zip(*map(batches, ranks), strict=True):
            parts.append([number for piece in pieces for number in piece])
            states_of_ranks = {json.dumps(each.state_dict()) for each in ranks}
            assert len(states_of_ranks) == 1
            seen += states_of_ranks
    assert parts == taken
    assert seen[:-1] == states[1:-1]


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("name", CALLS)
def test_every_state_resumes_on_every_number_of_ranks(name: str, world: int) -> None:
    taken, states = whole(name)
    ranks = [loader(name, rank, world) for rank in range(world)]
    for step in range(len(taken)):
        got: list[int] = []
        for each in ranks:
            each.load_state_dict(json.loads(states[step]))
            got += following(each)
        assert got == taken[step], step


@pytest.mark.parametrize("world", [1, 2, 3])
@pytest.mark.parametrize("name", CALLS)
def test_a_resumed_run_has_the_rest_of_its_epoch_and_the_next_one(name: str, world: int) -> None:
    taken, states = whole(name)
    half = len(taken) // EPOCHS
    for step in {1, half // 2, half - 1}:
        parts = []
        for rank in range(world):
            with loader(name, rank, world) as each:
                each.load_state_dict(json.loads(states[step]))
                parts.append([batch for _ in range(EPOCHS) for batch in batches(each)])
        got = [[n for piece in pieces for n in piece] for pieces in zip(*parts, strict=True)]
        assert got == taken[step:], step


@pytest.mark.parametrize("name", CALLS)
def test_orders_differ_between_epochs_and_seeds(name: str) -> None:
    taken, _ = whole(name)
    half = len(taken) // EPOCHS
    if name not in ("indices", "repeat"):  # which are in order without shuffle=True
        assert taken[:half] != taken[half:]
        if not name.startswith("per_epoch") and name != "per_step":
            assert list(batches(loader(name, seed=12)))[:half] != taken[:half]


@pytest.mark.parametrize("name", CALLS)
def test_a_state_is_small_and_only_fits_these_records(name: str) -> None:
    _, states = whole(name)
    assert max(map(len, states)) < 500
    with loader(name) as other:
        state = json.loads(states[1])
        for change in ({"fingerprint": state["fingerprint"] ^ 1}, {"records": 1}):
            with pytest.raises(hr.ConfigError, match="HR0711"):
                other.load_state_dict({**state, **change})


def test_seek_jumps_to_any_step_of_any_order() -> None:
    for name in CALLS:
        taken, _ = whole(name)
        with loader(name) as alone:
            for step in (len(taken) - 1, 0, len(taken) // 2):
                alone.seek(step)
                assert next(batches(alone)) == taken[step], (name, step)


# Orders given by a user's function.


def order_by(function: Any, **given: Any) -> hr.Loader:
    options = {"batch_size": 10, "fields": "number", **given}
    return hr.Loader(SOURCE, sampler=hr.sampling.per_epoch(function), **options)


@pytest.mark.parametrize(
    ("function", "code", "text"),
    [
        (lambda epoch: np.arange(10) + RECORDS, "HR0150", "index 102 at position 0 is outside"),
        (lambda epoch: np.arange(10.0), "HR0150", "array of record indices"),
        (lambda epoch: np.arange(10) > 3, "HR0150", "array of record indices"),
        (lambda epoch: np.zeros((2, 5), int), "HR0150", "one-dimensional"),
        (lambda epoch: [], "HR0722", "empty"),
        (lambda epoch: None, "HR0150", "returned None for epoch 0"),
        (lambda epoch: 1 / epoch, "HR0143", "ZeroDivisionError for epoch 0"),
        (lambda epoch: np.random.permutation(RECORDS), "HR0143", "two different orders"),
        (lambda epoch: hr.sampling.weighted([1.0, 2.0]), "HR0150", "weights have shape"),
        (7, "HR0150", "takes a function of the epoch"),
    ],
)
def test_a_function_that_returns_no_order_is_refused(function: Any, code: str, text: str) -> None:
    with pytest.raises(hr.ConfigError, match=text) as caught:
        order_by(function)
    assert caught.value.code == code


def later(epoch: int, bad: Callable[[], Any]) -> Any:
    return np.arange(20) if epoch == 0 else bad()


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        (lambda: np.arange(21), "HR0726"),
        (lambda: np.arange(20) + RECORDS, "HR0150"),
        (lambda: 1 / 0, "HR0727"),
    ],
)
def test_a_later_epoch_that_fails_is_an_error_not_a_hang(bad: Any, code: str) -> None:
    run = order_by(functools.partial(later, bad=bad), shard=(0, 2), batch_size=5)
    assert len(list(run)) == 2
    for _ in range(2):  # and stays one
        with pytest.raises(hr.Error) as caught:
            list(run)
        assert caught.value.code == code


def test_a_changed_function_invalidates_a_state() -> None:
    state = order_by(lambda epoch: np.arange(20)).state_dict()
    with pytest.raises(hr.ConfigError, match="HR0711"):
        order_by(lambda epoch: np.arange(20)[::-1]).load_state_dict(state)


def test_shuffle_does_not_apply_to_the_order_of_a_function() -> None:
    with pytest.raises(hr.ConfigError):
        order_by(subset_of, shuffle=True)
    with pytest.raises(hr.ConfigError, match="shuffle=True does not apply"):
        hr.Loader(
            SOURCE, batch_size=3, shuffle=True, sampler=hr.sampling.repeat(least_weighted(), 9)
        )


def test_mixture_weights_may_change_by_epoch() -> None:
    sizes = [70, 32]

    def shares(epoch: int) -> Any:
        share = min(epoch, 4) / 4  # of the second part: none at first, then all
        weights = np.repeat([(1 - share) / sizes[0], share / sizes[1]], sizes)
        return hr.sampling.weighted(weights, num_samples=120)

    run = order_by(shares)
    drawn = [np.concatenate([batch.number for batch in run]) for _ in range(5)]
    parts = [float((numbers >= 70).mean()) for numbers in drawn]
    assert parts[0] == 0 and parts[4] == 1 and 0.3 < parts[2] < 0.7


def test_steps_per_epoch_do_not_depend_on_the_number_of_records() -> None:
    steps = 3
    order = hr.sampling.repeat(num_samples=steps * 64)
    run = hr.Loader(SOURCE, sampler=order, shuffle=True, batch_size=64, fields="number")
    assert len(run) == steps
    drawn = np.concatenate([batch.number for _ in range(17) for batch in run])
    counts = np.bincount(drawn, minlength=RECORDS)
    assert counts.max() - counts.min() <= 1  # 17 x 192 = 32 x 102


@pytest.mark.parametrize("world", [2, 3, 5, 7])
@pytest.mark.parametrize("size", [1, 3, 10])
def test_an_endless_epoch_suits_any_number_of_ranks(world: int, size: int) -> None:
    def run(shard: tuple[int, int], **sizes: int) -> hr.Loader:
        order = hr.sampling.repeat()
        return hr.Loader(SOURCE, sampler=order, shuffle=True, fields="number", shard=shard, **sizes)

    def first(of: hr.Loader) -> list[list[int]]:
        return list(itertools.islice(batches(of), 2 * RECORDS // (size * world) + 1))

    ranks = [first(run((rank, world), batch_size=size)) for rank in range(world)]
    got = [[n for piece in pieces for n in piece] for pieces in zip(*ranks, strict=True)]
    assert got == first(run((0, 1), global_batch_size=size * world))
    drawn = [number for batch in got for number in batch]
    assert sorted(drawn[:RECORDS]) == sorted(drawn[RECORDS : 2 * RECORDS]) == list(range(RECORDS))


def test_an_endless_epoch_resumes_beyond_any_pass() -> None:
    order = hr.sampling.repeat()
    make = lambda: hr.Loader(SOURCE, sampler=order, shuffle=True, batch_size=40, fields="number")  # noqa: E731
    with make() as run, make() as other:
        assert len(run) > 10**13
        run.seek(10**12)
        steps = batches(run)
        expected = next(steps)
        other.load_state_dict(json.loads(json.dumps(run.state_dict())))
        assert next(batches(other)) == next(steps)
        other.seek(10**12)
        assert next(batches(other)) == expected


# Batches with other sizes than N records.


def test_groups_have_one_key_of_any_type() -> None:
    names = np.array(["wide", "tall", "square"])[np.arange(RECORDS) % 3]
    order = hr.sampling.grouped(names, batch_size=16)
    for batch in hr.Loader(SOURCE, sampler=order, fields="number"):
        assert len(set(names[batch.number])) == 1


def test_each_group_may_have_its_own_remainder() -> None:
    keys = np.repeat([0, 1, 2], [10, 11, 9])
    src = hr.records(group=keys)
    order = hr.sampling.grouped(keys, batch_size=4, last=["drop", "pad", "keep"])
    sizes: dict[int, list[int]] = {0: [], 1: [], 2: []}
    for batch in hr.Loader(src, sampler=order):
        sizes[int(batch.group[0])].append(len(batch.group))
    assert {key: sorted(each) for key, each in sizes.items()} == {
        0: [4, 4],
        1: [4, 4, 4],
        2: [3, 3, 3],
    }
    assert "2 records dropped" in repr(hr.Loader(src, sampler=order))
    with pytest.raises(hr.ConfigError, match=r"HR0755.*last has 2 values, but there are 3 keys"):
        hr.Loader(src, sampler=hr.sampling.grouped("group", batch_size=4, last=["drop", "pad"]))
    with pytest.raises(hr.ConfigError, match='"wrap"'):
        hr.sampling.grouped(keys, batch_size=4, last=["drop", "wrap", "keep"])


def test_two_budgets_apply_at_once() -> None:
    tokens, images = DRAW.integers(10, 900, 2000), DRAW.integers(0, 9, 2000)
    src = hr.records(number=np.arange(2000), tokens=tokens, images=images)
    order = hr.sampling.budget(("tokens", "images"), total=(8192, 48), max_records=30)
    met = []
    for batch in hr.Loader(src, sampler=order, fields="number"):
        rows = batch.number
        assert tokens[rows].max() * len(rows) <= 8192
        assert images[rows].max() * len(rows) <= 48
        assert len(rows) <= 30
        met += rows.tolist()
    assert sorted(met) == list(range(2000))
    with pytest.raises(hr.ConfigError, match="1 numbers for 2 lengths"):
        hr.Loader(src, sampler=hr.sampling.budget(("tokens", "images"), total=8192))


def test_equal_slices_of_a_batch_cost_about_the_same() -> None:
    lengths = np.exp(DRAW.normal(6, 0.6, 4000)).astype(int)
    src = hr.records(number=np.arange(4000), length=lengths)
    order = hr.sampling.buckets("length", batch_size=64, pool=50)
    per_rank = [
        [
            lengths[b.number].sum()
            for b in hr.Loader(
                src, sampler=order, global_batch_size=64, shard=(rank, 4), fields="number"
            )
        ]
        for rank in range(4)
    ]
    cost = np.array(per_rank)
    assert np.median(cost.max(0) / cost.mean(0)) < 1.03


# Orders that change by step.


def steps_by(function: Any, num_samples: int | None = None, **given: Any) -> hr.Loader:
    options = {"global_batch_size": 12, "fields": "number", **given}
    order = hr.sampling.per_step(function, num_samples)
    return hr.Loader(SOURCE, sampler=order, **options)


def test_a_subset_that_does_not_change_is_passed_through_in_turn() -> None:
    subset = np.arange(30, 66)  # three batches of it
    with steps_by(lambda step: subset, 36, shuffle=True) as run:
        passes = [[number for batch in batches(run) for number in batch] for _ in range(3)]
    assert all(sorted(each) == subset.tolist() for each in passes)
    assert passes[0] != passes[1] != passes[2]
    repeated = hr.sampling.repeat(hr.sampling.indices(subset), num_samples=36)
    with hr.Loader(
        SOURCE, sampler=repeated, shuffle=True, global_batch_size=12, fields="number"
    ) as run:
        assert [[n for batch in batches(run) for n in batch] for _ in range(3)] == passes


def test_a_mixture_may_change_within_an_epoch() -> None:
    sizes = [70, 32]

    def mixture(step: int) -> Any:
        share = min(step, 10) / 10
        weights = np.repeat([(1 - share) / sizes[0], share / sizes[1]], sizes)
        return hr.sampling.weighted(weights, num_samples=12)

    with steps_by(mixture) as run:  # an endless epoch
        numbers = [np.array(batch) for batch, _ in zip(batches(run), range(40), strict=False)]
    drawn = [np.mean(each >= 70) for each in numbers]
    assert drawn[0] == 0 and 0 < np.mean(drawn[3:8]) < 1 and min(drawn[10:]) == 1


def test_the_step_counts_global_batches_from_the_start_of_epoch_0() -> None:
    asked: set[int] = set()

    def noted(step: int) -> Any:
        asked.add(step)
        return np.full(12, step)

    for world, size in ((1, 12), (2, 6), (3, 4)):
        for rank in range(world):
            given = {"global_batch_size": None, "batch_size": size, "shard": (rank, world)}
            with steps_by(noted, 48, **given) as run:
                rows = [batch for _ in range(3) for batch in batches(run)]
            assert rows == [[step] * size for step in range(12)]
    assert set(range(12)) <= asked


def test_an_object_that_is_returned_again_is_made_into_an_order_once() -> None:
    stages = [hr.sampling.weighted(GIVEN["weights"] ** power, 60) for power in (1, 2)]
    made = []
    for stage in stages:

        def engine(*given: Any, stage: Any = stage) -> Any:
            made.append(stage)
            return type(stage).engine(stage, *given)

        object.__setattr__(stage, "engine", engine)
    with steps_by(lambda step: stages[step >= 8], 240, threads=2) as run:
        assert len([*batches(run)]) == 20
    assert len(made) == 2


@pytest.mark.parametrize(
    ("function", "num_samples", "code", "text"),
    [
        (lambda step: np.arange(10) + RECORDS, None, "HR0150", "index 102 at position 0"),
        (lambda step: [], None, "HR0722", "empty"),
        (lambda step: None, None, "HR0150", "returned None for step 0"),
        (lambda step: 1 / step, None, "HR0143", "ZeroDivisionError for step 0"),
        (lambda step: np.random.permutation(RECORDS), None, "HR0143", "two different orders"),
        (lambda step: hr.sampling.budget("length", 99), None, "HR0729", "records per batch"),
        (lambda step: np.arange(12), 30, "HR0143", "num_samples=36"),
        (7, None, "HR0150", "takes a function of the step"),
    ],
)
def test_a_function_that_returns_no_order_for_a_step_is_refused(
    function: Any, num_samples: int | None, code: str, text: str
) -> None:
    with pytest.raises(hr.ConfigError, match=text) as caught:
        steps_by(function, num_samples)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("bad", "code"),
    [(lambda: np.arange(20) + RECORDS, "HR0150"), (lambda: 1 / 0, "HR0727")],
)
def test_a_later_step_that_fails_is_an_error_not_a_hang(bad: Any, code: str) -> None:
    run = steps_by(lambda step: np.arange(20) if step < 5 else bad(), 240)
    got = []
    for _ in range(2):  # and stays one
        with pytest.raises(hr.Error) as caught:
            for batch in run:
                got.append(batch.number.tolist())
        assert caught.value.code == code
    assert len(got) <= 10 and len(got[0]) == 12


def test_counters_can_be_read_while_a_function_of_the_step_runs() -> None:
    with steps_by(lambda step: np.roll(np.arange(RECORDS), step), 1200, threads=4) as run:
        for batch in run:
            assert len(batch.number) == 12
            run.stats(), run.state_dict(), repr(run)


LEAVING = """
import headrace as hr, numpy as np, time

def order(number):
    time.sleep(0.05 * (number > 1))  # so that read-ahead is in progress at the exit
    return np.arange(40)

source = hr.records(x=np.arange(100))
functions = [hr.sampling.per_step(order)] * 4 + [hr.sampling.per_epoch(order)] * 4
loaders = [hr.Loader(source, sampler=each, batch_size=20, threads=2) for each in functions]
iterators = [iter(each) for each in loaders]
print([len(next(each).x) for each in iterators])
"""


def test_a_program_ends_while_orders_are_computed() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LEAVING], text=True, timeout=600, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, f"{[20] * 8}\n"), done.stderr
