# SPDX-License-Identifier: Apache-2.0
"""Samplers of plug-ins: classes of hr.sampling, checked, and resumed exactly on any world size."""

from __future__ import annotations

import itertools
import os
import pickle
import shutil
import subprocess
import sys
from math import gcd
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from built_plugins import EXAMPLES, compiled, needs_compiler

import headrace as hr

pytestmark = needs_compiler

CASES = Path(__file__).parent / "plugin_sampler_cases.c"
RECORDS = 10
_numbers = itertools.count()


def sampler(folder: Path, **definitions: object) -> Any:
    """The class of the sampler of plugin_sampler_cases.c."""
    name = f"order_{next(_numbers)}"
    given = {"SAMPLER": f'"{name}"', **definitions}
    flags = [f"-D{key}={value}" for key, value in given.items()]
    plugin = hr.load_plugin(compiled(CASES, folder / f"lib{name}.so", *flags))
    assert plugin.samplers == tuple(given["SAMPLER"].strip('"').split())
    return getattr(plugin, plugin.samplers[0])


def loader(order: Any, records: int = RECORDS, **options: Any) -> Any:
    source = hr.open({"label": np.arange(records)})
    return hr.Loader(source, [], **{"batch_size": 2, "sampler": order, **options})


def epoch(of: Any) -> list[int]:
    return [int(label) for batch in of for label in batch.label]


def rotated(seed: int, number: int, count: int = RECORDS) -> list[int]:
    return [(seed + number * 3 + i) % count for i in range(count)]


@pytest.mark.parametrize("flags", ["0", "HEADRACE_ANY_POSITION"])
@pytest.mark.parametrize("check", [False, True])
def test_epochs_have_the_samplers_order(tmp_path: Path, flags: str, check: bool) -> None:
    kind = sampler(tmp_path, FLAGS=flags)
    if check:
        hr.load_plugin(kind.record["plugin"]["path"], check=True)
    assert getattr(hr.sampling, kind.__name__) is kind
    assert repr(kind(step=2)) == f"{kind.__name__}(step=2)"
    assert "A number." in kind.__doc__ and "From the plug-in orders 1.0." in kind.__doc__
    for threads in (1, 3):
        epochs = loader(kind(), seed=5, threads=threads)
        for number in range(3):
            assert epoch(epochs) == rotated(5, number)
    with pytest.raises(hr.ConfigError, match="HR0104"):
        kind(step=10)


@pytest.mark.parametrize("flags", ["0", "HEADRACE_ANY_POSITION"])
def test_it_resumes_on_another_world_size(tmp_path: Path, flags: str) -> None:
    kind = sampler(tmp_path, FLAGS=flags)
    count = 24

    def ranks(world: int) -> list[Any]:
        return [
            loader(kind(), count, seed=1, shard=(rank, world), batch_size=12 // world)
            for rank in range(world)
        ]

    first = ranks(2)
    batches = [iter(each) for each in first]
    seen = {int(x) for each in batches for x in next(each).label}
    assert seen == set(rotated(1, 0, count)[:12])
    states = [each.state_dict() for each in first]
    again = ranks(3)
    for each in again:
        each.load_state_dict(states[0])
    rest = [int(x) for each in again for batch in each for x in batch.label]
    assert sorted(rest) == sorted(rotated(1, 0, count)[12:])


def test_a_state_of_other_arguments_is_refused(tmp_path: Path) -> None:
    kind = sampler(tmp_path)
    one = loader(kind(step=1))
    next(iter(one))
    state = one.state_dict()
    loader(kind(step=1)).load_state_dict(state)
    with pytest.raises(hr.ConfigError):
        loader(kind(step=2)).load_state_dict(state)


@pytest.mark.parametrize(
    ("per_record", "given", "expected"),
    [
        ("HEADRACE_WEIGHTS", [0.5, -1.0, 3.0, 0.25], [1, 3, 0, 2]),
        ("HEADRACE_LABELS", ["b", "a", "c", "a"], [1, 3, 0, 2]),
        ("HEADRACE_LABELS", "label", [0, 1, 2, 3]),
        ("HEADRACE_LENGTHS", [9, 2, 7, 1], [3, 1, 2, 0]),
        ("HEADRACE_LENGTHS", [0.9, 0.2, 0.7, 0.1], [3, 1, 2, 0]),
    ],
)
def test_the_sampler_gets_values_per_record(
    tmp_path: Path, per_record: str, given: Any, expected: list[int]
) -> None:
    kind = sampler(tmp_path, PER_RECORD=per_record, ORDER="sorted")
    assert epoch(loader(kind(given), 4)) == expected


def test_the_sampler_decides_the_batches(tmp_path: Path) -> None:
    kind = sampler(tmp_path, BATCHES="four")
    batches = [[int(x) for x in batch.label] for batch in loader(kind(), batch_size=None)]
    assert batches == [[0, 1, 2], [3], [4, 5, 6, 7], [8, 9]]


def test_epochs_may_be_shorter_or_longer_than_the_dataset(tmp_path: Path) -> None:
    assert epoch(loader(sampler(tmp_path, SIZE="half")())) == [0, 1, 2, 3, 4]
    twice = sampler(tmp_path, SIZE="twice", FLAGS="HEADRACE_REPLACEMENT")
    assert epoch(loader(twice())) == [*range(10), *range(10)]


@pytest.mark.parametrize(
    ("lie", "message"),
    [
        (
            {"ORDER": "outside"},
            "the record 10 at position 9 of epoch 0, but the number of records is 10",
        ),
        ({"ORDER": "negative"}, "the record -7 at position 0"),
        ({"ORDER": "repeated"}, "the record 0 twice, again at position 9 of epoch 0"),
        ({"ORDER": "leaves_one"}, "the record -1 at position 9"),
        ({"ORDER": "fails"}, "no order today"),
        ({"ORDER": "outside", "FLAGS": "HEADRACE_ANY_POSITION"}, "the record 10 at position"),
        ({"SIZE": "minus_one"}, r"size\(\) returned -1 positions"),
        ({"SIZE": "twice"}, "the record 0 twice, again at position 10"),
        ({"CREATE": "refuses"}, "10 records are too few"),
        ({"BATCHES": "too_many"}, "a batch of 3 of the 10 positions"),
        ({"BATCHES": "too_few"}, "batches of 8 records, but an epoch has 10"),
        ({"BATCHES": "empty"}, "a batch of 0"),
        ({"BATCHES": "none"}, "a list of 4"),
    ],
)
def test_contract_violations_are_errors_that_name_the_plugin(
    tmp_path: Path, lie: dict[str, str], message: str
) -> None:
    kind = sampler(tmp_path, **lie)
    options = {"batch_size": None} if "BATCHES" in lie else {}
    with pytest.raises(hr.ConfigError, match=f"HR057[35](.|\n)*{message}") as error:
        epoch(loader(kind(), seed=0, **options))
    assert "plug-in orders" in str(error.value)


@pytest.mark.parametrize(
    ("lie", "message"),
    [
        ({"ORDER": "differs"}, "gave two results for the same input"),
        ({"ORDER": "repeated", "FLAGS": "HEADRACE_ANY_POSITION"}, "twice, again at position"),
    ],
)
def test_a_check_finds_orders_that_are_not_deterministic(
    tmp_path: Path, lie: dict[str, str], message: str
) -> None:
    kind = sampler(tmp_path, **lie)
    hr.load_plugin(kind.record["plugin"]["path"], check=True)
    with pytest.raises(hr.ConfigError, match=message):
        epoch(loader(kind(), seed=0))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"SAMPLER": '"weighted"'}, 'there already is a sampler "weighted"'),
        ({"SAMPLER": '"per_epoch"'}, 'there already is a sampler "per_epoch"'),
        ({"SAMPLER": '"per_step"'}, 'there already is a sampler "per_step"'),
        ({"SAMPLER": '"Order"'}, "must be named like a function"),
        ({"ORDER": "NULL"}, "order is NULL"),
        ({"FLAGS": "64"}, "flags has unknown bits"),
        ({"PER_RECORD": "9"}, "per_record is 9"),
        ({"CREATE": "NULL"}, "it has arguments, but create is NULL"),
        ({"BATCHES": "four", "FLAGS": "HEADRACE_ANY_POSITION"}, "which exclude each other"),
        ({"PARAM": '"weights"', "PER_RECORD": "HEADRACE_WEIGHTS"}, "the name of its first"),
    ],
)
def test_invalid_samplers_are_refused(tmp_path: Path, change: dict[str, str], message: str) -> None:
    with pytest.raises(hr.ConfigError, match=f"HR0572(.|\n)*{message}"):
        sampler(tmp_path, **change)


def test_pickles_and_descriptions_name_the_plugin(tmp_path: Path) -> None:
    kind = sampler(tmp_path)
    made = loader(kind(step=3), seed=2)
    (plugin,) = made.description()["plugins"]
    assert plugin["name"] == "orders"
    assert epoch(hr.Loader.from_description(made.description())) == rotated(2, 0)
    code = (
        "import pickle, sys, headrace as hr\n"
        "order = pickle.loads(bytes.fromhex(sys.argv[1]))\n"
        "print(order, hr.load_plugin(order.record['plugin']['path']).samplers)"
    )
    data = pickle.dumps(kind(step=3)).hex()
    done = subprocess.run([sys.executable, "-c", code, data], capture_output=True, text=True)
    assert done.stdout == f"{kind.__name__}(step=3) ('{kind.__name__}',)\n", done.stderr


@pytest.mark.skipif(not shutil.which("rustc"), reason="there is no rustc")
def test_the_example_in_rust_works(tmp_path: Path) -> None:
    library = tmp_path / "libstrided.so"
    source = EXAMPLES / "strided.rs"
    command = ["rustc", "-O", "-D", "warnings", "--edition", "2021", "--crate-type", "cdylib"]
    done = subprocess.run(
        [*command, str(source), "-o", str(library)], capture_output=True, text=True, env=os.environ
    )
    assert done.returncode == 0, done.stderr
    strided = hr.load_plugin(library, check=True).strided
    count = 1000
    of_stride = loader(strided(stride=7), count, batch_size=100, seed=3)
    epochs = [np.array(epoch(of_stride)) for _ in range(3)]
    for order in epochs:
        assert np.array_equal(np.diff(order) % count, np.full(count - 1, 7))
    assert len({int(order[0]) for order in epochs}) > 1
    assert gcd(6, count) != 1
    with pytest.raises(hr.ConfigError, match="stride 6 and 1000 records have a common factor"):
        loader(strided(stride=6), count)
