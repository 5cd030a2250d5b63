# SPDX-License-Identifier: Apache-2.0
"""The selection of a dataset's features: the chosen ones, or all that can be read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from headrace import _core
from headrace.errors import declare, did_you_mean, warn
from headrace.sources.lerobot.info import DEFAULTS, UNSUPPORTED, Feature, Info

BAD_ARGUMENT = declare(
    "HR0165",
    "config",
    "invalid argument of hr.lerobot",
    "delta_timestamps= gives, per feature, a list of offsets in seconds from the record's time; "
    "negative ones are earlier. They must be multiples of 1 / fps within tolerance_s, which must "
    "be less than half of 1 / fps. cameras=, features= and episodes= must exist in the dataset.",
)

_NUMBERS = (
    *("bool", "float16", "float32", "float64"),
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
)
_MEDIA = ("video", "image")
SUBTASKS = ("meta", "subtasks.parquet")


class Selection(NamedTuple):
    cameras: list[str]  # videos
    images: list[str]  # cameras that are images in the tables
    numbers: list[str]  # except those that every dataset has
    texts: list[str]


def select(
    info: Info,
    cameras: Iterable[str] | None,
    features: Iterable[str] | None,
    windows: Iterable[str],
) -> Selection:
    """windows: the features in delta_timestamps, which also have a field ``<feature>_is_pad``."""
    chosen_cameras = _chosen("cameras", cameras, info.cameras)
    images = [name for name in chosen_cameras if info.features[name].dtype == "image"]
    columns = [n for n, each in info.features.items() if each.dtype not in _MEDIA]
    chosen = _chosen("features", features, [name for name in columns if name not in DEFAULTS])
    made = {"task", *(f"{name}_is_pad" for name in windows)}
    made |= {f"{camera}_times" for camera in chosen_cameras if camera not in images}
    if "subtask_index" in chosen and info.has(*SUBTASKS):
        made.add("subtask")
    problems = {
        name: problem
        for name in (*chosen_cameras, *chosen)
        if (problem := _problem(name, info.features[name], made))
    }
    for name in problems:
        given = cameras if name in chosen_cameras else features
        if given is not None:
            argument = "cameras" if name in chosen_cameras else "features"
            raise UNSUPPORTED.error(
                f"{name!r:.200} cannot be read: {problems[name]}",
                hint=f"{argument}=[...] without it",
            )
    if problems:
        each = "; ".join(f"{name!r:.200} ({problems[name]})" for name in problems)
        warn(
            f"{info.root}: omitted, since they cannot be read: {each:.2000}. Select the others "
            "with features=[...] and cameras=[...] to avoid this warning"
        )
    chosen = [name for name in chosen if name not in problems]
    texts = [name for name in chosen if info.features[name].dtype == "string"]
    return Selection(
        [name for name in chosen_cameras if name not in problems and name not in images],
        [name for name in images if name not in problems],
        [name for name in chosen if name not in texts],
        texts,
    )


def _problem(name: str, feature: Feature, made: set[str]) -> str:
    """Why a feature cannot be a field; empty if it can."""
    if name in made:
        return "hr.lerobot adds a field of this name"
    if feature.dtype not in (*_NUMBERS, *_MEDIA, "string"):
        return f"its dtype is {feature.dtype!r:.40}"
    if feature.dtype == "string" and feature.shape not in ((), (1,)):
        return f"it has {feature.shape} texts per record"
    if not _core.is_field_name(name):
        return "a field is a word of letters, digits and _, or words joined by dots"
    return ""


def _chosen(argument: str, given: Iterable[str] | None, known: Sequence[str]) -> list[str]:
    if given is None:
        return list(known)
    chosen = [given] if isinstance(given, str) else list(given)
    for name in chosen:
        if name not in known:
            raise BAD_ARGUMENT.error(
                f"{argument} has {name!r:.200}, which is not in the dataset",
                hint=did_you_mean(str(name), known),
            )
        if chosen.count(name) > 1:
            raise BAD_ARGUMENT.error(f"{argument} has {name!r} twice")
    return chosen
