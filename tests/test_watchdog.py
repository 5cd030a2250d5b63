# SPDX-License-Identifier: Apache-2.0
"""A long wait gives a warning that names its cause; times are counted."""

from __future__ import annotations

from typing import Any

import numpy as np
from awaited_warning import ended_by_warning
from gates import Gate, records

import headrace as hr


def test_the_watchdog_names_the_record_and_the_step() -> None:
    gate = Gate()

    def pass_slowly(x: Any) -> Any:
        return gate(x) if x == 2 else x

    loader = hr.Loader(records(4), [pass_slowly], batch_size=1, patience=0.2)
    with ended_by_warning("a Python transform, pass_slowly(x), to return record 2", gate.open.set):
        assert len(list(loader)) == 4


def test_the_watchdog_names_the_record_that_is_not_read() -> None:
    gate = Gate()

    class Source:
        def __len__(self) -> int:
            return 3

        def __getitem__(self, i: int) -> dict[str, int]:
            if i == 2:
                gate(i)
            return {"x": i}

    loader = hr.Loader(Source(), batch_size=3, patience=0.2)
    with ended_by_warning("to be read", gate.open.set):
        assert len(list(loader)) == 1


def test_the_watchdog_names_the_generator_that_hangs_and_its_line() -> None:
    gate = Gate()

    def lines() -> Any:
        for number in range(4):
            yield {"x": gate(number) if number == 2 else number}

    line = lines.__code__.co_firstlineno + 2
    words = f"(in lines, {__file__}, line {line})"
    seen = ""

    def end() -> None:
        nonlocal seen
        seen = loader.assembly.stream.reader.awaited()
        gate.open.set()

    loader = hr.Loader(hr.stream(lines), batch_size=2, patience=0.2)
    with ended_by_warning(f" s {words}", end):
        assert len(list(loader)) == 2
    assert seen.startswith("lines has not returned record 2 for ") and seen.endswith(words)
    assert loader.assembly.stream.reader.awaited() == ""


def test_loaders_and_generators_of_a_program_without_a_name() -> None:
    gate = Gate()
    names: dict[str, Any] = {"__name__": None, "gate": gate, "hr": hr}
    exec("def lines():\n    yield {'x': 0}\n    yield {'x': gate(1)}\n", names)
    exec("def new(source):\n    return hr.Loader(source, batch_size=1, patience=0.2)\n", names)
    loader = names["new"](hr.stream(names["lines"]))
    with ended_by_warning("(in lines, <string>, line 3)", gate.open.set):
        assert len(list(loader)) == 2


def test_the_operators_time_is_counted() -> None:
    source = [{"image": np.zeros((256, 256, 3), np.uint8)}] * 16
    steps = [hr.transforms.Resize((64, 64)), hr.transforms.RandomHorizontalFlip()]
    loader = hr.Loader(source, steps, batch_size=4)
    list(loader)
    assert loader.stats()["stages"]["transform"] > 0
