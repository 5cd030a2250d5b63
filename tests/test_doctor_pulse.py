# SPDX-License-Identifier: Apache-2.0
"""The pulse of a process and the facts of its host, on planted cases."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from headrace.doctor.pulse import (
    Beat,
    Processes,
    Pulse,
    Thinned,
    at,
    growth,
    has_gil,
    vitals,
)

import headrace as hr
from headrace import _core

needs_gil = pytest.mark.skipif(not has_gil(), reason="this interpreter has no GIL")


# The share of the GIL, on a real interpreter.


@contextmanager
def running(work: Callable[[], object]) -> Iterator[None]:
    """``work`` again and again on a thread of its own."""
    done = threading.Event()

    def loop() -> None:
        while not done.is_set():
            work()

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def count() -> None:
    sum(range(200))


def spin() -> None:
    """Half of the time in Python, half away, by its own clock."""
    begin = time.perf_counter()
    while time.perf_counter() - begin < 0.01:
        pass
    time.sleep(time.perf_counter() - begin)


def share_beside(work: Callable[[], object], seconds: float = 2.0) -> float:
    with running(work):
        asked, held = _core.ask_for_gil(seconds, 0.005)
    assert asked > 20
    return held / asked


@needs_gil
def test_a_thread_in_python_holds_the_gil_nearly_always() -> None:
    assert share_beside(count) > 0.8


@needs_gil
def test_work_outside_python_does_not_hold_the_gil() -> None:
    data = bytes(1 << 25)
    assert share_beside(lambda: hashlib.sha256(data).digest()) < 0.2


@needs_gil
def test_half_of_the_time_is_about_half() -> None:
    assert 0.25 < share_beside(spin) < 0.75


@needs_gil
def test_an_idle_interpreter_is_free() -> None:
    asked, held = _core.ask_for_gil(1.0, 0.005)
    assert held < 0.3 * asked


@pytest.mark.parametrize("arguments", [(-1.0, 0.1), (1.0, 0.0), (1.0, -1.0), (float("nan"), 1.0)])
def test_nonsense_is_refused(arguments: tuple[float, float]) -> None:
    with pytest.raises(ValueError):
        _core.ask_for_gil(*arguments)


# The pulse.


def test_cpu_seconds_are_those_of_the_process() -> None:
    with Pulse(every=0.05) as pulse:
        begin, cpu = pulse.now(), time.process_time()
        while time.process_time() - cpu < 0.5:
            pass
        spent, end = time.process_time() - cpu, pulse.now()
    lived = pulse.between(begin, end)
    assert lived.cpu_seconds == pytest.approx(spent, rel=0.5)
    assert lived.seconds == pytest.approx(end - begin)
    assert not any(thread.name == "headrace-pulse" for thread in threading.enumerate())


BURN = "import time\nwhile time.process_time() < 0.6: pass\nprint('done', flush=True)\ninput()"


def test_processes_that_were_started_count_while_they_live_and_after() -> None:
    command = [sys.executable, "-c", BURN]
    before = Processes().children()[0]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout and child.stdin
        assert child.stdout.readline() == "done\n"
        if not Path(f"/proc/self/task/{threading.get_native_id()}/children").exists():
            pytest.skip("this kernel does not list a thread's children")
        seconds, memory = Processes().children()
        assert seconds - before >= 0.5 and memory > 1 << 20
        child.stdin.write("\n")
    seconds, memory = Processes().children()
    assert seconds - before >= 0.5


def test_memory_that_is_touched_shows() -> None:
    with Pulse(every=0.05) as pulse:
        begin = pulse.beats[0]
        held = np.ones(1 << 25)
    assert pulse.beats[-1].resident_bytes - begin.resident_bytes > held.nbytes // 2


def beat(moment: float, cpu: float = 0.0, asked: float = 0.0, held: float = 0.0) -> Beat:
    return Beat(moment, cpu, 0.0, 1000, 0, asked, held)


def test_between_two_beats_is_on_the_line_between_them() -> None:
    pulse = Pulse()
    for one in (beat(0), beat(10, 4.0, 100, 50), beat(20, 5.0, 200, 60)):
        pulse._beats.add(one)
    lived = pulse.between(5, 15)
    assert lived.cpu_seconds == pytest.approx(2.5)
    assert lived.gil_share == pytest.approx((55 - 25) / 100)
    assert at(pulse.beats, -1) == beat(0) and at(pulse.beats, 99) == beat(20, 5.0, 200, 60)
    assert pulse.between(0, 0).gil_share is None


def test_the_list_stays_short_and_even_however_long_it_runs() -> None:
    kept: Thinned[int] = Thinned(100)
    for number in range(100_000):
        kept.add(number)
        assert kept.all()[-1] == number
    values = kept.all()
    assert 50 <= len(values) <= 101 and values[0] == 0 and values[-1] == 99_999
    assert len(set(np.diff(values[:-1]))) == 1


def test_growth_is_that_of_a_line_and_not_of_the_start() -> None:
    steps = np.arange(400)
    filled = 1e9 * np.minimum(steps, 40) / 40  # slots that are filled once
    noise = np.random.default_rng(0).normal(0, 2e4, 400)
    assert growth(steps, filled + noise) == pytest.approx(0, abs=200)
    assert growth(steps, filled + noise + 5000 * steps) == pytest.approx(5000, abs=200)
    spike = np.where(steps == 390, 5e9, 0)
    assert growth(steps, filled + spike) == pytest.approx(0)
    assert growth([1, 2, 3], [1, 2, 3]) is None and growth([0] * 20, range(20)) is None


def test_vitals_of_a_loop_leave_its_start_out() -> None:
    pulse = Pulse()
    now = pulse.now()
    for number in range(41):
        moment = now - 4 + number / 10
        start = 30.0 if number >= 10 else 3.0 * number  # CPU of the start-up, in the first second
        cpu, asked = start + (moment - now + 4), float(number)
        pulse._beats.add(Beat(moment, cpu, 0.0, 1000 + 100 * number, 500, asked, asked / 4))
    loop = SimpleNamespace(first=1.0, batches=300, records=3000)
    seen = vitals(pulse, now - 4, loop)
    assert seen.cpu_seconds_per_1000 == pytest.approx(1.0, rel=0.05)
    assert seen.gil_share == pytest.approx(0.25)
    assert seen.memory[0][1] == pytest.approx(2500, abs=150)
    assert seen.memory_growth == pytest.approx(10.0, rel=0.05)  # 1,000 bytes a second, 100 steps


def test_the_doctors_report_has_the_pulse() -> None:
    def step(batch: object) -> None:
        stop = time.thread_time() + 0.005
        while time.thread_time() < stop:
            pass

    skip = ["remedies", "cold", "storage", "decode", "copy", "cached"]
    report = hr.doctor([np.zeros((4, 2))] * 50, step, seconds=3, skip=skip)
    value = report.json()
    assert value["cpu_seconds_per_1000"] == pytest.approx(1.25, rel=0.5)
    assert (value["gil_share"] or 0) > 0.5 or not has_gil()
    assert value["memory"] and all(size > 0 for _, size in value["memory"])
    assert "CPU " in str(report) and "for 1,000 records" in str(report)


# Files that are missing or not as expected.


def test_a_system_that_tells_nothing_is_no_error(tmp_path: Path) -> None:
    there = Processes(tmp_path)
    assert there.memory() == 0
    times = os.times()
    assert there.children() == (
        pytest.approx(times.children_user + times.children_system, abs=1.0),
        0,
    )


def test_processes_of_processes_are_found_in_a_planted_tree(tmp_path: Path) -> None:
    ticks = os.sysconf("SC_CLK_TCK")
    page = os.sysconf("SC_PAGE_SIZE")

    def plant(process: str, children: str, name: str = "x", cpu: int = 0, pages: int = 0) -> None:
        task = tmp_path / "proc" / process / "task" / process
        task.mkdir(parents=True)
        (task / "children").write_text(children)
        rest = " ".join(["0"] * 10)
        stat = f"{process} ({name}) S {rest} {cpu} {cpu} 0 0 20 0"
        (tmp_path / "proc" / process / "stat").write_text(stat)
        (tmp_path / "proc" / process / "statm").write_text(f"{9 * pages} {pages} 1 1 0 1 0")

    plant("self", "11 12 ")
    plant("11", "13", "a) S 9 (b", cpu=ticks, pages=3)
    plant("12", "")
    plant("13", "11", cpu=2 * ticks, pages=4)  # a cycle, which no system has
    times = os.times()
    ended = times.children_user + times.children_system
    seconds, memory = Processes(tmp_path).children()
    assert (seconds - ended, memory) == (pytest.approx(6.0, abs=0.5), 7 * page)
