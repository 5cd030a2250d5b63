# SPDX-License-Identifier: Apache-2.0
"""The doctor's trace follows Chrome's format, and can be merged with PyTorch's profiler's."""

from __future__ import annotations

import gzip
import itertools
import json
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from headrace.insight.measure.process_sampler import Vitals
from headrace.insight.measure.recording import (
    KEPT,
    SLOW,
    Event,
    Recorder,
    Recording,
    Span,
    Timeline,
)
from headrace.insight.report import trace
from headrace.insight.report.report import Report
from processes import run_command
from timing import with_attempts

import headrace as hr

PICTURES = Path(__file__).parent.parent / "examples" / "images"

Trace = dict[str, Any]


def examined(**changes: Any) -> Report:
    """Two experiments; the second has a loop of three batches, each with a wait of 2 ms out of 10
    ms."""
    events = tuple(Event(n, n - 1, 101.0 + 0.01 * n, 0.002, 0.008, 4, n == 0) for n in range(3))
    timeline = Timeline(
        zero_ns=1_700_000_000_000_000_000,
        experiments=[Span("host", 100.0, 0.5), Span("real", 100.5, 1.0)],
        loops={"real": Recording(events, 3)},
    )
    vitals = Vitals(memory=((0.0, 10**9), (0.01, 2 * 10**9)))
    return Report(**{"timeline": timeline, "vitals": vitals, **changes})


def assert_keeps_the_rules(value: Trace) -> None:
    """Required keys by phase, nonnegative microseconds, JSON without NaN."""
    assert json.loads(json.dumps(value, allow_nan=False)) == value
    named = set()
    for event in value["traceEvents"]:
        assert {"ph", "name", "pid", "tid"} <= set(event), event
        assert isinstance(event["name"], str) and event["name"]
        assert isinstance(event["args"], dict)
        if event["ph"] == "M":
            named.add((event["pid"], event["tid"]))
            continue
        assert event["ph"] in ("X", "C") and event["ts"] >= 0, event
        if event["ph"] == "X":
            assert event["dur"] >= 0 and (event["pid"], event["tid"]) in named, event
        else:
            assert all(isinstance(v, float) for v in event["args"].values())


def slices(value: Trace, kind: str) -> list[Trace]:
    return [event for event in value["traceEvents"] if event.get("cat") == kind]


def test_waits_and_steps_are_at_their_times() -> None:
    value = trace.trace_of(examined())
    assert_keeps_the_rules(value)
    base = value["baseTimeNanoseconds"]
    assert base == 1_700_000_100_000_000_000  # the start of the first experiment
    waits, steps = slices(value, "wait"), slices(value, "step")
    assert [event["ts"] for event in waits] == pytest.approx([1e6, 1.01e6, 1.02e6])
    assert [event["dur"] for event in waits] == pytest.approx([2000] * 3)
    assert [event["ts"] for event in steps] == pytest.approx([1.002e6, 1.012e6, 1.022e6])
    assert [event["args"]["records"] for event in steps] == [4] * 3
    assert [("first of an epoch" in event["args"]) for event in waits] == [True, False, False]
    assert [event["name"] for event in slices(value, "experiment")] == ["host", "real"]
    assert slices(value, "experiment")[1]["args"] == {"batches": 3, "batches recorded": 3}
    memory = slices(value, "memory")
    assert [event["args"]["resident"] for event in memory] == [1000.0, 2000.0]
    assert memory[0]["ts"] == pytest.approx(1.002e6)  # at the first batch


def test_slices_of_a_track_do_not_overlap() -> None:
    with hr.Loader([{"x": np.zeros(4)}] * 40, batch_size=2) as loader:
        report = hr.doctor(loader, lambda batch: time.sleep(0.001), seconds=0.5)
    value = trace.trace_of(report)
    assert_keeps_the_rules(value)
    for tid in {event["tid"] for event in value["traceEvents"]}:
        track = [e for e in value["traceEvents"] if e["ph"] == "X" and e["tid"] == tid]
        track.sort(key=lambda event: event["ts"])
        for before, after in itertools.pairwise(track):
            assert before["ts"] + before["dur"] <= after["ts"] + 0.01
    assert {"ceiling", "real"} <= {e["name"] for e in slices(value, "experiment")}
    assert {"ceiling", "loader", "real"} <= {e["args"]["experiment"] for e in slices(value, "wait")}


def test_an_empty_report_makes_an_empty_trace() -> None:
    value = trace.trace_of(Report())
    assert_keeps_the_rules(value)
    assert all(event["ph"] == "M" for event in value["traceEvents"])


def test_a_long_loop_is_recorded_within_bounds() -> None:
    recorder, count = Recorder(windows=3), 50_000
    took = [0.001] * count
    took[40_000] = 5.0  # the slowest one comes long after the log is full
    for number, wait in enumerate(took):
        recorder.add(min(2, number // 15_000), float(number), wait, 0.0, 1)
    recording = recorder.done(took, [])
    assert recording.batches == count and len(recording.events) <= KEPT + SLOW
    assert max(recording.events, key=lambda event: event.waited).number == 40_000
    numbers = [event.number for event in recording.events]
    assert numbers == sorted(set(numbers)) and numbers[:3] == [0, 1, 2]
    assert sum(one.number for one in recording.waits) == count
    slow = [one for one in recording.waits if one.low <= 5.0 < one.high]
    assert [one.number for one in slow] == [1]


def test_files_ending_in_gz_are_compressed(tmp_path: Path) -> None:
    report = examined()
    report.trace(tmp_path / "a.json")
    report.trace(tmp_path / "a.json.gz")
    plain = (tmp_path / "a.json").read_bytes()
    assert gzip.decompress((tmp_path / "a.json.gz").read_bytes()) == plain
    assert json.loads(plain) == trace.trace_of(report)


# Merging.


def other(base: int | None, *events: Trace) -> Trace:
    value: Trace = {"schemaVersion": 1, "traceEvents": list(events)}
    return value if base is None else {**value, "baseTimeNanoseconds": base}


def op(ts: float, pid: Any = 1) -> Trace:
    return {"ph": "X", "name": "op", "pid": pid, "tid": 7, "ts": ts, "dur": 5, "args": {}}


def merged(tmp_path: Path, theirs: Any) -> Trace:
    examined().trace(tmp_path / "ours.json.gz")
    (tmp_path / "theirs.json").write_text(json.dumps(theirs))
    trace.merge(tmp_path / "ours.json.gz", tmp_path / "theirs.json", tmp_path / "out.json")
    found: Trace = json.loads((tmp_path / "out.json").read_text())
    return found


@pytest.mark.parametrize("base", [1_700_000_000_000_000_000, 0, None])
def test_merged_traces_have_one_clock_and_their_own_processes(
    tmp_path: Path, base: int | None
) -> None:
    # half a second after the examination begins
    begin = (1_700_000_100_500_000_000 - (base or 0)) / 1000
    theirs = other(base, op(begin), op(begin, "Spans"), {**op(begin), "pid": 2})
    value = merged(tmp_path, theirs)
    assert value["traceEvents"][:3] == theirs["traceEvents"]
    assert value["schemaVersion"] == 1 and value.get("baseTimeNanoseconds") == base
    ours = value["traceEvents"][3:]
    assert {event["pid"] for event in ours} == {3}
    real = next(event for event in ours if event["name"] == "real")
    assert real["ts"] == pytest.approx(begin, abs=0.5)  # began at the same time
    assert len(ours) == len(trace.trace_of(examined())["traceEvents"])


def test_a_list_of_events_is_a_trace_too(tmp_path: Path) -> None:
    begin = 1_700_000_100_500_000_000 / 1000
    assert merged(tmp_path, [op(begin)])["traceEvents"][0] == op(begin)


def test_traces_of_different_hours_are_not_merged(tmp_path: Path) -> None:
    with pytest.raises(hr.ConfigError, match=r"ours\.json\.gz begins 3,600 s after the end of"):
        merged(tmp_path, other(1_700_000_100_000_000_000, op(-3_600e6 - 5)))
    assert not (tmp_path / "out.json").exists()


@pytest.mark.parametrize(
    ("theirs", "words"),
    [
        ({}, "has no list traceEvents"),
        (7, "has no list traceEvents"),
        ({"traceEvents": [3]}, "event 0 is not a trace event"),
        ({"traceEvents": [{"ts": "soon"}]}, "event 0 is not a trace event"),
        ({"traceEvents": [], "baseTimeNanoseconds": "now"}, "baseTimeNanoseconds is 'now'"),
    ],
)
def test_a_file_that_is_not_a_trace_is_refused(tmp_path: Path, theirs: Any, words: str) -> None:
    with pytest.raises(hr.ConfigError, match=words) as caught:
        merged(tmp_path, theirs)
    assert caught.value.code == "HR0920"


@pytest.mark.parametrize("data", [b"", b"{", b"\xff\xfe", b"\x1f\x8b broken"])
def test_a_file_that_is_not_json_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a").write_bytes(data)
    with pytest.raises(hr.ConfigError) as caught:
        trace.merge(tmp_path / "a", tmp_path / "a", tmp_path / "out")
    assert caught.value.code == "HR0920"


def test_a_trace_of_pytorchs_profiler_is_merged(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    model = torch.nn.Linear(4, 2)

    def step(batch: Any) -> None:
        with torch.profiler.record_function("my step"):
            model(torch.as_tensor(batch)).sum().backward()

    def check() -> None:
        batches = [np.ones((3, 4), np.float32)] * 4
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
            skipped = ["cold", "storage", "decode", "samples", "copy", "remedies", "regions"]
            report = hr.doctor(batches, step, seconds=0.2, model=model, skip=skipped)
        ours, theirs, out = (tmp_path / name for name in ("ours.json", "theirs.json", "out.json"))
        report.trace(ours)
        profiler.export_chrome_trace(str(theirs))
        trace.merge(ours, theirs, out)

        value, original = json.loads(out.read_text()), json.loads(theirs.read_text())
        count = len(original["traceEvents"])
        assert value["traceEvents"][:count] == original["traceEvents"]
        added = value["traceEvents"][count:]
        assert {e["pid"] for e in added}.isdisjoint({e["pid"] for e in original["traceEvents"]})
        # Both recorded the same calls: each of PyTorch's is inside one of ours, or began within a
        # millisecond.
        calls = [e["ts"] for e in original["traceEvents"] if e["name"] == "my step" and "dur" in e]
        steps = [(e["ts"], e["ts"] + e["dur"]) for e in added if e["name"] == "step"]
        near = sum(any(a - 1000 <= ts <= b + 1000 for a, b in steps) for ts in calls)
        assert calls and near > 0.9 * len(calls)

    with_attempts(check)


# The command.


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    pytest.importorskip("typer")
    return run_command("doctor", *arguments)


QUICK = (PICTURES, "--seconds", "0.5", "--size", "16", "--batch-size", "2", "--skip", "remedies")


def test_the_command_writes_a_page_and_a_trace(tmp_path: Path) -> None:
    done = command(*QUICK, "--html", tmp_path / "p.html", "--trace", tmp_path / "t.json.gz")
    assert done.returncode in (0, 1), done.stderr
    assert (tmp_path / "p.html").read_text().startswith("<!DOCTYPE html>")
    value = json.loads(gzip.decompress((tmp_path / "t.json.gz").read_bytes()))
    assert_keeps_the_rules(value)
    assert slices(value, "wait")


def test_the_command_says_why_it_could_not_merge(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text("not a trace")
    done = command(*QUICK, "--trace", tmp_path / "t.json", "--merge-trace", tmp_path / "other.json")
    assert "HR0920" in done.stderr and "This machine" in done.stdout
    assert done.returncode == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--html", "nowhere/p.html"], "--html nowhere/p.html: no such folder"),
        (["--trace", "."], "--trace . is a folder"),
        (["--merge-trace", "a.json"], "give the output file with --trace"),
    ],
)
def test_unwritable_output_is_refused_at_once(arguments: list[str], words: str) -> None:
    done = command(PICTURES, *arguments)
    assert done.returncode == 2 and words in done.stderr and done.stdout == ""
