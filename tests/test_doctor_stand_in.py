# SPDX-License-Identifier: Apache-2.0
"""A stand-in simulates steps and copies of given durations, which the doctor distinguishes. All on
a virtual clock, except the command."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from headrace.insight.stand_in import StandIn, is_stand_in, stand_in_from
from processes import run_command
from virtual_clock import VirtualClock

import headrace as hr

PICTURES = Path(__file__).parent.parent / "examples" / "images"
CLOSE = 2e-5  # reads the clock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> VirtualClock:
    return VirtualClock(monkeypatch)


def batch_of(size: int, records: int = 4) -> dict[str, Any]:
    """``size`` bytes in two arrays, and a value without bytes."""
    half = size // 2 // records
    shape = (records, half)
    return {"x": np.zeros(shape, np.uint8), "more": [np.ones(shape, np.uint8)], "name": "cat"}


def seconds_of(clock: VirtualClock, step: StandIn, batch: Any, times: int = 1) -> float:
    begin = clock.now
    for _ in range(times):
        step(batch)
    return (clock.now - begin) / times


def test_a_simulated_step_takes_its_time_after_the_copy(clock: VirtualClock) -> None:
    step = StandIn(0.002, copy_bytes_per_second=1e6)
    assert seconds_of(clock, step, batch_of(8000)) == pytest.approx(0.010, abs=CLOSE)
    there = step.on_device(batch_of(8000))
    assert seconds_of(clock, step, there) == pytest.approx(0.002, abs=CLOSE)
    assert seconds_of(clock, StandIn(), batch_of(8000)) == pytest.approx(0, abs=CLOSE)


def test_the_time_of_a_step_may_be_per_record(clock: VirtualClock) -> None:
    step = StandIn(0.001, record_seconds=0.002)
    assert seconds_of(clock, step, batch_of(80, records=4)) == pytest.approx(0.009, abs=CLOSE)
    there = step.on_device(batch_of(80, records=5))
    assert seconds_of(clock, step, there) == pytest.approx(0.011, abs=CLOSE)


@pytest.mark.parametrize(("size", "expected"), [(2000, 0.004), (8000, 0.008)])
def test_with_overlap_a_batch_takes_the_longer_of_copy_and_step(
    clock: VirtualClock, size: int, expected: float
) -> None:
    step = StandIn(0.004, copy_bytes_per_second=1e6, overlapped=True)
    step(batch_of(size))
    assert seconds_of(clock, step, batch_of(size), 10) == pytest.approx(expected, rel=0.02)


def test_pinned_tensors_are_copied_at_a_separate_rate(clock: VirtualClock) -> None:
    class Pinned:
        nbytes = 1000

        def is_pinned(self) -> bool:
            return True

    step = StandIn(copy_bytes_per_second=1e6, pinned_bytes_per_second=2e6)
    assert seconds_of(clock, step, [Pinned()]) == pytest.approx(0.0005, abs=CLOSE)
    assert seconds_of(clock, step, [np.zeros(1000, np.uint8)]) == pytest.approx(0.001, abs=CLOSE)
    assert step.copies() == {"pageable": 1e6, "pinned": 2e6}
    assert StandIn(0.001).copies() == {}


@pytest.mark.parametrize(
    ("text", "batch_seconds"),
    [
        ("2ms", 0.002),
        ("2 ms/batch", 0.002),
        ("40us/record", 0.00016),
        ("1.5S", 1.5),
        (".5ms", 5e-4),
    ],
)
def test_times_are_parsed_with_their_units(text: str, batch_seconds: float) -> None:
    assert is_stand_in(text)
    assert stand_in_from(text).step_seconds(batch_of(80, 4)) == pytest.approx(batch_seconds)


@pytest.mark.parametrize(("text", "rate"), [("12GB/s", 12e9), ("800 MB/s", 8e8), ("1GiB/s", 2**30)])
def test_rates_are_parsed_with_their_units(text: str, rate: float) -> None:
    assert stand_in_from("1ms", text).copies()["pageable"] == rate


@pytest.mark.parametrize("text", ["train.py:step", "2", "ms", "2ms:step", "-2ms", "2 minutes"])
def test_invalid_times_are_refused(text: str) -> None:
    assert not is_stand_in(text)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: StandIn(-1), "step_seconds=-1.0"),
        (lambda: StandIn(record_seconds=float("nan")), "record_seconds=nan"),
        (lambda: StandIn(copy_bytes_per_second=0), "copy_bytes_per_second=0.0"),
        (lambda: StandIn(pinned_bytes_per_second=-1), "pinned_bytes_per_second=-1.0"),
        (lambda: stand_in_from("2 minutes"), "'2 minutes' is not a duration"),
        (lambda: stand_in_from("2ms", "fast"), "'fast' is not a copy rate"),
    ],
)
def test_an_invalid_stand_in_is_refused(make: Any, words: str) -> None:
    with pytest.raises(hr.ConfigError, match=words) as caught:
        make()
    assert caught.value.code == "HR0930"


class Batches:
    """Batches that take a while to arrive."""

    def __init__(self, clock: VirtualClock, seconds: float) -> None:
        self.clock, self.seconds = clock, seconds

    def __iter__(self) -> Iterator[Any]:
        for _ in range(100):
            self.clock.sleep(self.seconds)
            yield batch_of(8000)


def examined(clock: VirtualClock, seconds: float, step: StandIn) -> Any:
    return hr.doctor(Batches(clock, seconds), step, seconds=0.2, skip=["storage", "remedies"])


def test_a_slow_copy_is_found_without_a_gpu(clock: VirtualClock) -> None:
    report = examined(clock, 0.0001, StandIn(0.002, copy_bytes_per_second=2e6))
    assert report.verdict == "copy", report
    assert not any("actually ran" in note for note in report.notes), (
        "nothing of a stand-in's changes"
    )
    assert report.rates["ceiling"] == pytest.approx(4 / 0.002, rel=0.05)
    assert report.rates["cached"] == pytest.approx(4 / 0.006, rel=0.05)
    assert report.case.copy_seconds == pytest.approx(0.001, rel=0.05)
    assert report.stall_share == pytest.approx(2 / 3, abs=0.05)
    assert report.copies["pageable"] == 2e6
    assert report.copy_hidden == pytest.approx(0, abs=0.1)


def generated(seed: int) -> tuple[float, StandIn, str]:
    """Seconds per batch, a stand-in, and the loop's main loss."""
    draw = random.Random(seed)
    step = 10 ** draw.uniform(-3, -2)
    most, least = step * draw.uniform(0.3, 3), step * draw.uniform(0, 0.02)
    if seed % 2:
        return least, StandIn(step, copy_bytes_per_second=8000 / most), "copy"
    return most, StandIn(step, copy_bytes_per_second=8000 / least), "workers"


@pytest.mark.parametrize("seed", range(24))
def test_generated_stand_ins_are_distinguished(clock: VirtualClock, seed: int) -> None:
    loader_seconds, step, cause = generated(seed)
    report = examined(clock, loader_seconds, step)
    assert report.verdict == cause, report


def test_with_a_fast_copy_the_step_is_the_limit(clock: VirtualClock) -> None:
    report = examined(clock, 0.0001, StandIn(0.002, copy_bytes_per_second=1e9))
    assert report.verdict == "consumer", report
    assert report.copy_hidden is None  # 8 µs of 2 ms


def test_a_copy_hidden_by_the_step_is_not_the_limit(clock: VirtualClock) -> None:
    step = StandIn(0.005, copy_bytes_per_second=2e6, overlapped=True)
    report = examined(clock, 0.0001, step)
    assert report.verdict == "consumer"
    assert report.copy_hidden == pytest.approx(1, abs=0.1)
    assert "overlapped with steps" in str(report)


def test_a_slow_loader_is_not_mistaken_for_a_slow_copy(clock: VirtualClock) -> None:
    report = examined(clock, 0.02, StandIn(0.002, copy_bytes_per_second=4e6))
    assert report.input_bound and report.verdict != "copy", report


def test_the_command_takes_a_time_for_a_step() -> None:
    pytest.importorskip("typer")
    words = ["doctor", PICTURES, "--seconds", "1", "--size", "32"]
    words += ["--skip", "remedies", "--batch-size", "2", "--json"]
    words += ["--step", "20ms", "--device-copy", "12GB/s"]
    done = run_command(*words)
    assert done.returncode in (0, 1), done.stderr
    value = json.loads(done.stdout)
    assert value["copies"]["pageable"] == 12e9 and value["rates"]["ceiling"] <= 2 / 0.020


def test_a_copy_rate_requires_a_stand_in() -> None:
    pytest.importorskip("typer")
    done = run_command("doctor", PICTURES, "--device-copy", "12GB/s")
    assert (done.returncode, "--step that is a duration" in done.stderr) == (2, True), done.stderr
