# SPDX-License-Identifier: Apache-2.0
"""The episodes of a source: runs of records, whose times must be those of their frames."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from headrace.errors import declare
from headrace.sources import Source
from headrace.write.lerobot.features import Features
from headrace.write.options import WRONG_OPTION

NOT_FRAMES = declare(
    "HR0169",
    "data",
    "records are not frames of episodes",
    "A LeRobot dataset has episodes of consecutive frames at a constant rate, with one image size "
    "per camera, and finite numbers. The records of this source differ: sort them by episode and "
    "time, correct fps=, or leave out what does not fit with fields= or hr.subset().",
)
_TOLERANCE = 1e-4  # seconds; as for reading


class Episodes(NamedTuple):
    lengths: list[int]
    tasks: list[str]  # without duplicates, in the order of their first frame
    task_of: np.ndarray[Any, Any]  # by record
    fps: float


def episodes_of(source: Source, features: Features, options: Mapping[str, Any]) -> Episodes:
    """Raises DataError HR0169 if the records are not frames of episodes, ConfigError HR0414 if an
    option does not fit the source.
    """
    if not len(source):
        raise NOT_FRAMES.error("the source has no records")
    starts = _starts(source, features.episode_field)
    lengths = np.diff([*starts, len(source)])
    frames = np.arange(len(source)) - np.repeat(starts, lengths)
    _check_order(source, frames, options)
    times = _scalars(source, "timestamp", options)
    fps = options["fps"] or _rate_of(times, frames)
    if times is not None:
        _check_times(times, frames, fps, options["fps"] is not None)
    if features.task_field is None:
        return Episodes(lengths.tolist(), [options["task"]], np.zeros(len(source), np.int64), fps)
    tasks: dict[str, int] = {}
    texts = source.column(features.task_field)
    task_of = np.array([tasks.setdefault(text, len(tasks)) for text in texts], np.int64)
    return Episodes(lengths.tolist(), list(tasks), task_of, fps)


def _starts(source: Source, field: str) -> list[int]:
    """The first record of each episode."""
    column = source.column(field)
    values = column.tolist() if isinstance(column, np.ndarray) else column
    seen: dict[Any, int] = {}
    for number, value in enumerate(values):
        if isinstance(value, (list, np.ndarray)):
            raise WRONG_OPTION.error(
                f"[lerobot] {field!r:.80} does not have one value per record",
                hint="episode_field=NAME",
            )
        if value != value:
            raise NOT_FRAMES.error(f"record {number}: {field} is not a number (NaN)")
        if number and value == values[number - 1]:
            continue
        if value in seen:
            raise NOT_FRAMES.error(
                f"record {number} is of episode {value!r:.80}, which began at record {seen[value]} "
                "and ended before it",
                hint=f"src.sort_by({field!r}); or, if they are different episodes (of sources that "
                "all count from 0), src.with_columns(episode=[...]) and episode_field='episode'",
            )
        seen[value] = number
    return list(seen.values())


def _check_order(source: Source, frames: np.ndarray[Any, Any], options: Mapping[str, Any]) -> None:
    """Checks that the source's frame_index, if it has one, rises by the same step everywhere."""
    given = _scalars(source, "frame_index", options)
    if given is None:
        return
    steps = np.diff(given)
    inside = frames[1:] > 0
    step = steps[inside][0] if inside.any() else 1
    wrong = np.flatnonzero(inside & ((steps != step) | ~(steps > 0))) + 1
    if wrong.size:
        i = int(wrong[0])
        raise NOT_FRAMES.error(
            f"record {i} has frame_index {given[i]}, after {given[i - 1]}: frames are missing or "
            "not in order",
            hint="sort the records by episode and time, or omit frame_index with fields=[...] to "
            "number the records in their order",
        )


def _scalars(source: Source, name: str, options: Mapping[str, Any]) -> np.ndarray[Any, Any] | None:
    """The field, if it is in the source and in fields=."""
    field = next((each for each in source.schema if each.name == name), None)
    if field is None or not (options["fields"] is None or name in options["fields"]):
        return None
    wanted = ("float",) if name == "timestamp" else ("int", "uint")
    if tuple(field.shape) not in ((), (1,)) or not str(field.dtype).startswith(wanted):
        raise WRONG_OPTION.error(
            f"[lerobot] {name} is {field.dtype} {tuple(field.shape)}, not "
            + ("seconds as float" if name == "timestamp" else "an integer"),
            hint="omit it with fields=[...], and pass fps=",
        )
    values = np.asarray(source.column(name)).reshape(-1)
    return values.astype(np.float64 if name == "timestamp" else np.int64)


def _rate_of(times: np.ndarray[Any, Any] | None, frames: np.ndarray[Any, Any]) -> float:
    """Frames per second, by the longest episode: an integer, six digits, or n * 1000 / 1001 (as
    29.97), the first by which all times are right."""
    if times is None or not frames.any():
        raise WRONG_OPTION.error("[lerobot] fps is not known", hint="fps=30")
    last = int(frames.argmax())
    begin = last - int(frames[last])
    seconds = float(times[last] - times[begin])
    if not 0 < seconds < float("inf"):
        raise WRONG_OPTION.error(
            f"[lerobot] fps is not known: the timestamps of the episode at record {begin} span "
            f"{seconds:g} s",
            hint="fps=30",
        )
    rate = (last - begin) / seconds
    whole, digits = float(round(rate)), float(f"{rate:.6g}")
    rates = [whole] if abs(rate - whole) < 1e-3 * rate else []
    rates += [digits, round(rate * 1.001) / 1.001]
    fits = (each for each in rates if each > 0 and not _wrong_times(times, frames, each).size)
    return next(fits, rates[0])


def _wrong_times(
    times: np.ndarray[Any, Any], frames: np.ndarray[Any, Any], fps: float
) -> np.ndarray[Any, Any]:
    """The records whose times are not frame / fps, within the tolerance."""
    expected = frames / fps
    rounding = np.spacing(np.abs(expected).astype(np.float32)).astype(np.float64)
    return np.flatnonzero(~(np.abs(times - expected) <= _TOLERANCE + rounding))


def _check_times(
    times: np.ndarray[Any, Any], frames: np.ndarray[Any, Any], fps: float, is_given: bool
) -> None:
    wrong = _wrong_times(times, frames, fps)
    if wrong.size:
        i = int(wrong[0])
        raise NOT_FRAMES.error(
            f"record {i}, frame {frames[i]} of its episode, has the timestamp {times[i]:.6f}, but "
            f"at {fps:g} fps it is {frames[i] / fps:.6f}",
            hint="pass the right fps=, or omit timestamp with fields=[...] to write frame_index / "
            "fps"
            if is_given
            else "pass fps=, and omit timestamp with fields=[...] to write frame_index / fps",
        )
