# SPDX-License-Identifier: Apache-2.0
"""What each field of a source becomes: a camera, a column of numbers or texts, or one of the
computed columns that every LeRobot dataset has.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from headrace import _core
from headrace.errors import did_you_mean
from headrace.sources import Source
from headrace.sources.lerobot.info import DEFAULTS
from headrace.write.lerobot.options import CAMERAS
from headrace.write.options import WRONG_OPTION

COMPUTED = tuple(DEFAULTS)
_MOST_AXES = 5  # of LeRobot's arrays
_LONGEST_NAME = 200  # file systems have 255 bytes


@dataclasses.dataclass(frozen=True)
class Camera:
    field: str
    feature: str
    is_video: bool  # whether the field has frames of videos, not images


@dataclasses.dataclass(frozen=True)
class Column:
    field: str
    feature: str
    dtype: str  # "string" for text
    shape: tuple[int, ...]  # () is (1,)


@dataclasses.dataclass(frozen=True)
class Features:
    cameras: list[Camera]
    columns: list[Column]
    episode_field: str
    task_field: str | None  # None: all frames have the same task


def features_of(source: Source, options: Mapping[str, Any]) -> Features:
    """Raises HR0414 if a field cannot be written."""
    fields = {field.name: field for field in source.schema}
    episode, task = options["episode_field"], options["task_field"]
    if episode not in fields:
        raise WRONG_OPTION.error(
            f"[lerobot] the source has no field {episode!r:.80}, which tells episodes apart",
            hint=f"episode_field=NAME; {did_you_mean(episode, fields)}",
        )
    _check_task(fields, task, options["task"])
    times = {f"{name}_times" for name, field in fields.items() if field.kind == "video"}
    hidden = {episode, *times, *COMPUTED, task}
    chosen = _chosen(options["fields"], fields, hidden)
    names = _renamed(options["rename"], chosen)
    cameras, columns = [], []
    for name in chosen:
        feature = names.get(name, name)
        if str(fields[name].kind) in CAMERAS:
            cameras.append(_camera(fields, name, feature))
        else:
            columns.append(_column(fields[name], feature))
    features = [each.feature for each in cameras] + [each.feature for each in columns]
    for feature in features:
        if feature in (*COMPUTED, "task") or features.count(feature) > 1:
            raise WRONG_OPTION.error(
                f"[lerobot] a feature cannot be named {feature!r:.80}: the name is taken",
                hint="rename=FIELD=FEATURE",
            )
        # Cameras are names of folders; and hr.lerobot reads no others.
        if not _core.is_field_name(feature) or len(feature) > _LONGEST_NAME:
            raise WRONG_OPTION.error(
                f"[lerobot] a feature cannot be named {feature!r:.80}",
                hint=f"words of letters, digits and _, joined by dots, {_LONGEST_NAME} characters "
                "at most",
            )
    has_task = task in fields and options["task"] is None
    return Features(cameras, columns, episode, task if has_task else None)


def _check_task(fields: Mapping[str, _core.Field], name: str, given: str | None) -> None:
    if given is not None:
        return
    if name not in fields:
        raise WRONG_OPTION.error(
            f"[lerobot] the source has no field {name!r:.80} with the task of each frame",
            hint='task="fold the towel" for all frames, or task_field=NAME',
        )
    if str(fields[name].kind) != "text":
        raise WRONG_OPTION.error(
            f"[lerobot] the field {name!r:.80} is {fields[name].kind}, but tasks are text",
            hint='task_field=NAME, or task="fold the towel"',
        )


def _chosen(given: Sequence[str] | None, fields: Mapping[str, Any], hidden: set[str]) -> list[str]:
    if given is None:
        return [name for name in fields if name not in hidden]
    for name in given:
        if name not in fields:
            raise WRONG_OPTION.error(
                f"[lerobot] fields= has {name!r:.80}, which is not in the source",
                hint=did_you_mean(name, fields),
            )
    return [name for name in fields if name in given and name not in hidden]


def _renamed(given: Sequence[str] | None, chosen: Sequence[str]) -> dict[str, str]:
    out: dict[str, str] = {}
    for pair in given or []:
        field, separator, feature = pair.partition("=")
        if not separator or not feature or field not in chosen or field in out:
            raise WRONG_OPTION.error(
                f"[lerobot] rename= has {pair!r:.80}",
                hint="FIELD=FEATURE, where FIELD is one of the fields that are written, once",
            )
        out[field] = feature
    return out


def _camera(fields: Mapping[str, _core.Field], name: str, feature: str) -> Camera:
    field = fields[name]
    if str(field.kind) == "video":
        times = fields.get(f"{name}_times")
        if times is None or tuple(times.shape) != ():
            raise WRONG_OPTION.error(
                f"[lerobot] {name!r:.80} is a video, without the time of one frame per record in "
                f"a field {name + '_times'!r:.80}",
                hint="hr.lerobot() without delta_timestamps of cameras has such records",
            )
        return Camera(name, feature, is_video=True)
    if not field.encoded and (str(field.dtype) != "uint8" or field.shape[0] != 3):
        raise WRONG_OPTION.error(
            f"[lerobot] {name!r:.80} has images of {field.dtype} {tuple(field.shape)}, but cameras "
            "are uint8 with 3 channels",
            hint="omit it with fields=[...], or write it as an array with kinds=",
        )
    return Camera(name, feature, is_video=False)


def _column(field: _core.Field, feature: str) -> Column:
    kind, shape = str(field.kind), tuple(field.shape)
    if kind == "text":
        return Column(field.name, feature, "string", ())
    if field.encoded or kind == "bytes" or any(size <= 0 for size in shape):
        raise WRONG_OPTION.error(
            f"[lerobot] {field.name!r:.80} is {kind} {shape}: features are numbers of a fixed "
            "shape, texts, and images",
            hint="fields=[...] without it",
        )
    if len(shape) > _MOST_AXES:
        raise WRONG_OPTION.error(f"[lerobot] {field.name!r:.80} has more than {_MOST_AXES} axes")
    return Column(field.name, feature, str(field.dtype), shape)
