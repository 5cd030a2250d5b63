# SPDX-License-Identifier: Apache-2.0
"""An examination as a trace in Chrome's JSON, which ui.perfetto.dev and chrome://tracing open.

Tracks: the experiments, and the training loop with its waits and steps; a counter: memory. Values
that were only measured as sums (the engine's stages, for example) have no position in time and are
omitted. Format: "Trace Event Format", Google, 2016; ts and dur are microseconds since
baseTimeNanoseconds, which is Unix time, as PyTorch's profiler writes it.
"""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.errors import declare
from headrace.insight.measure.recording import Event
from headrace.whole_file import write_whole

if TYPE_CHECKING:
    from headrace.insight.report.results import Results

NOT_A_TRACE = declare(
    "HR0920",
    "config",
    "not a Chrome trace",
    "A trace is a JSON object with a list traceEvents, or that list alone; it may be compressed "
    "with gzip. PyTorch's profiler writes one with export_chrome_trace(path).",
)
OTHER_TIME = declare(
    "HR0921",
    "config",
    "traces do not overlap in time",
    "Merged traces share one time axis. Run the profiler around the examination, or around the "
    "examined script, and merge its output.",
)

Slice = dict[str, Any]
_PID = 1
_EXPERIMENTS, _LOOP = 1, 2  # tracks
_GZIP = b"\x1f\x8b"


def trace_of(report: Results) -> dict[str, Any]:
    """The whole trace as plain values, to be written as JSON."""
    timeline = report.timeline
    begins = [span.begin for span in timeline.experiments]
    begins += [event.begin for loop in timeline.loops.values() for event in loop.events]
    origin = min(begins, default=0.0)
    base = timeline.zero_ns + int(origin * 1e9)
    origin = (base - timeline.zero_ns) / 1e9

    def slice_of(
        name: str, kind: str, track: int, begin: float, seconds: float, **args: Any
    ) -> Any:
        return {
            "ph": "X",
            "name": name,
            "cat": kind,
            "pid": _PID,
            "tid": track,
            "ts": max(0.0, round((begin - origin) * 1e6, 3)),
            "dur": max(0.0, round(seconds * 1e6, 3)),
            "args": args,
        }

    events = _names()
    for span in timeline.experiments:
        loop = timeline.loops.get(span.name)
        told = {"batches": loop.batches, "batches recorded": len(loop.events)} if loop else {}
        events.append(
            slice_of(span.name, "experiment", _EXPERIMENTS, span.begin, span.seconds, **told)
        )
    for name, loop in timeline.loops.items():
        for event in loop.events:
            args = _args(name, event)
            events.append(slice_of("wait", "wait", _LOOP, event.begin, event.waited, **args))
            if event.stepped > 0:
                begin = event.begin + event.waited
                events.append(slice_of("step", "step", _LOOP, begin, event.stepped, **args))
    events += _memory(report, origin)
    return {
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": base,
        "otherData": {"made by": "headrace doctor", "verdict": report.verdict},
        "traceEvents": events,
    }


def _memory(report: Results, origin: float) -> list[Slice]:
    """A counter: resident memory since the loop's first batch."""
    loops = report.timeline.loops
    loop = loops.get("real") or loops.get("loader")
    if loop is None or not loop.events:
        return []
    begin = loop.events[0].begin + loop.events[0].waited - origin
    return [
        {
            "ph": "C",
            "name": "memory (MB)",
            "cat": "memory",
            "pid": _PID,
            "tid": _LOOP,
            "ts": max(0.0, round((begin + at) * 1e6, 3)),
            "args": {"resident": round(size / 1e6, 3)},
        }
        for at, size in report.vitals.memory
        if math.isfinite(at) and math.isfinite(size)
    ]


def _names() -> list[Slice]:
    """Names of the process and its tracks, which come first."""

    def named(what: str, tid: int, args: dict[str, Any]) -> Slice:
        return {"ph": "M", "name": what, "pid": _PID, "tid": tid, "ts": 0, "args": args}

    tracks = {_EXPERIMENTS: "experiments", _LOOP: "training loop"}
    return [
        named("process_name", 0, {"name": "headrace doctor"}),
        named("process_sort_index", 0, {"sort_index": -1}),
        *(named("thread_name", tid, {"name": name}) for tid, name in tracks.items()),
        *(named("thread_sort_index", tid, {"sort_index": tid}) for tid in tracks),
    ]


def _args(loop: str, event: Event) -> dict[str, Any]:
    args: dict[str, Any] = {"experiment": loop, "batch": event.number, "records": event.records}
    return {**args, "first of an epoch": True} if event.restarted else args


def write(value: dict[str, Any], path: str | Path) -> None:
    """Writes the trace to a file; compressed if its name ends in .gz."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False).encode()
    path = Path(path)
    write_whole(path, gzip.compress(text, 6, mtime=0) if path.suffix == ".gz" else text)


def merge(ours: str | Path, theirs: str | Path, out: str | Path) -> None:
    """Merges a trace of the doctor into one of another program, for example PyTorch's profiler.
    Both are aligned by the time of day at which they began; ours gets separate process ids. Events
    of ``theirs`` are unchanged. Files may be compressed with gzip.

    Raises ConfigError (HR0920) for a file that is not a trace, and (HR0921) for traces that do not
    overlap.
    """
    mine, other = _read(ours), _read(theirs)
    shift = (_base(mine, ours) - _base(other, theirs)) / 1000
    events, moved = other["traceEvents"], []
    pids = _fresh_pids(mine["traceEvents"], events)
    for event in mine["traceEvents"]:
        event = {**event, "pid": pids[event.get("pid")]}
        if event.get("ph") != "M" and "ts" in event:
            event["ts"] = round(event["ts"] + shift, 3)
        moved.append(event)
    _must_overlap(_extent(moved), _extent(events), ours, theirs)
    write({**other, "traceEvents": [*events, *moved]}, out)


def _read(path: str | Path) -> dict[str, Any]:
    """A trace as an object with a list of event objects."""
    data = Path(path).read_bytes()
    try:
        value = json.loads(gzip.decompress(data) if data.startswith(_GZIP) else data)
    except (ValueError, OSError, EOFError, RecursionError) as error:
        raise NOT_A_TRACE.error(f"{path}: {str(error).splitlines()[0]}") from None
    if isinstance(value, list):
        value = {"traceEvents": value}
    events = value.get("traceEvents") if isinstance(value, dict) else None
    if not isinstance(events, list):
        raise NOT_A_TRACE.error(f"{path} has no list traceEvents")
    for number, event in enumerate(events):
        if not isinstance(event, dict) or not _is_time(event.get("ts", 0)):
            raise NOT_A_TRACE.error(f"{path}: event {number} is not a trace event")
    found: dict[str, Any] = value
    return found


def _base(trace: dict[str, Any], path: str | Path) -> float:
    """The Unix time, in nanoseconds, that ts counts from; if it is missing, they count from
    1970."""
    base = trace.get("baseTimeNanoseconds", 0)
    if not _is_time(base):
        raise NOT_A_TRACE.error(f"{path}: baseTimeNanoseconds is {base!r}")
    return base  # type: ignore[no-any-return]


def _is_time(value: Any) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)


def _fresh_pids(mine: Iterable[Slice], others: Iterable[Slice]) -> dict[Any, int]:
    taken = {str(event.get("pid")) for event in others}
    found: dict[Any, int] = {}
    number = _PID
    for pid in dict.fromkeys(event.get("pid") for event in mine):
        while str(number) in taken:
            number += 1
        found[pid] = number
        number += 1
    return found


def _extent(events: Iterable[Slice]) -> tuple[float, float]:
    """From the start of the first slice to the end of the last; unlimited if there are none."""
    slices = [event for event in events if event.get("ph") == "X" and "ts" in event]
    return (
        min((event["ts"] for event in slices), default=-math.inf),
        max((event["ts"] + event.get("dur", 0) for event in slices), default=math.inf),
    )


def _must_overlap(
    mine: tuple[float, float], other: tuple[float, float], ours: str | Path, theirs: str | Path
) -> None:
    if mine[0] <= other[1] and other[0] <= mine[1]:
        return
    apart = max(mine[0] - other[1], other[0] - mine[1]) / 1e6
    late, early = (ours, theirs) if mine[0] > other[1] else (theirs, ours)
    raise OTHER_TIME.error(f"{late} begins {apart:,.0f} s after the end of {early}")
