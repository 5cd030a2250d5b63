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
    "A LeRobot dataset has episodes of consecutive frames at a constant rate, whose images have "
    "one size per camera, and finite numbers. The records of this source differ: sort them by "
    "episode and time, correct fps=, or leave out what does not fit with fields= or hr.subset().",
)
_TOLERANCE = 1e-4  # seconds; as for reading


class Episodes(NamedTuple):
    lengths: list[int]
    tasks: list[str]  # without duplicates, in the order of their first frame
    task_of: np.ndarray[Any, Any]  # by record
    fps: float


def episodes_of(source: Source, features: Features, options: Mapping[str, Any]) -> Episodes:
    """HR0169, HR0414."""
    if not len(source):
        raise NOT_FRAMES.error("the source has no records")
    starts = _starts(source, features.episode_field)
    lengths = np.diff([*starts, len(source)])
    frames = np.arange(len(source)) - np.repeat(starts, lengths)
    times = _times(source, options)
    fps = options["fps"] or _rate_of(times, lengths)
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
            raise WRONG_OPTION.error(f"[lerobot] {field!r:.80} does not have one value per record")
        if number and value == values[number - 1]:
            continue
        if value in seen:
            raise NOT_FRAMES.error(
                f"record {number} is of episode {value!r:.80}, which began at record {seen[value]} "
                "and ended before it",
                hint=f"src.sort_by({field!r})",
            )
        seen[value] = number
    return list(seen.values())


def _times(source: Source, options: Mapping[str, Any]) -> np.ndarray[Any, Any] | None:
    """The source's timestamps, if they are to be written."""
    field = next((each for each in source.schema if each.name == "timestamp"), None)
    chosen = options["fields"] is None or "timestamp" in options["fields"]
    if field is None or not chosen:
        return None
    if tuple(field.shape) not in ((), (1,)) or not str(field.dtype).startswith("float"):
        raise WRONG_OPTION.error(
            f"[lerobot] timestamp is {field.dtype} {tuple(field.shape)}, not seconds as float",
            hint="fields=[...] without it, and fps=",
        )
    values: np.ndarray[Any, Any] = np.asarray(source.column("timestamp"), np.float64).reshape(-1)
    return values


def _rate_of(times: np.ndarray[Any, Any] | None, lengths: np.ndarray[Any, Any]) -> float:
    """Frames per second, by the first episode with two frames."""
    longer = np.flatnonzero(lengths > 1)
    if times is None or not longer.size:
        raise WRONG_OPTION.error("[lerobot] fps is not known", hint="fps=30")
    begin = int(lengths[: longer[0]].sum())
    count = int(lengths[longer[0]]) - 1
    seconds = float(times[begin + count] - times[begin])
    if not 0 < seconds < float("inf"):
        raise WRONG_OPTION.error(
            f"[lerobot] fps is not known: the timestamps of the episode at record {begin} span "
            f"{seconds:g} s",
            hint="fps=30",
        )
    rate = count / seconds
    return float(round(rate)) if abs(rate - round(rate)) < 1e-3 * rate else float(f"{rate:.6g}")


def _check_times(
    times: np.ndarray[Any, Any], frames: np.ndarray[Any, Any], fps: float, is_given: bool
) -> None:
    expected = frames / fps
    rounding = np.spacing(np.abs(expected).astype(np.float32)).astype(np.float64)
    wrong = np.flatnonzero(~(np.abs(times - expected) <= _TOLERANCE + rounding))
    if wrong.size:
        i = int(wrong[0])
        raise NOT_FRAMES.error(
            f"record {i}, frame {frames[i]} of its episode, has the timestamp {times[i]:.6f}, and "
            f"at {fps:g} fps it is {expected[i]:.6f}",
            hint="the right fps=, or fields=[...] without timestamp to write frame_index / fps"
            if is_given
            else "fps=, and fields=[...] without timestamp to write frame_index / fps",
        )
