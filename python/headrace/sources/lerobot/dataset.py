# SPDX-License-Identifier: Apache-2.0
"""A LeRobot dataset as a source: one record per frame, with the frames around it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from headrace import _core, arguments
from headrace.errors import Error, declare, did_you_mean
from headrace.sources.arrow_files.tables import open_files
from headrace.sources.lerobot.episodes import OVERLAP, Episodes, read_episodes
from headrace.sources.lerobot.info import (
    DAMAGED,
    DEFAULTS,
    UNSUPPORTED,
    Feature,
    Info,
    read_info,
)
from headrace.sources.lerobot.selection import BAD_ARGUMENT, SUBTASKS, Selection, select
from headrace.sources.lerobot.tables import Table, numbers, texts
from headrace.sources.opening import absolute
from headrace.sources.recipe import Recipe, makes_sources
from headrace.sources.source import Source

_LIE = declare(
    "HR0166",
    "data",
    "timestamps do not match the frame rate",
    "The timestamp of a frame must be frame_index / fps, within tolerance_s, because video frames "
    "are found by it. If a timestamp differs, fps in meta/info.json is wrong, or frames were "
    "dropped while recording. tolerance_s must be less than half a frame, so that each record "
    "still gets the frame of its frame_index. If the videos' timestamps deviate as well, "
    "T.VideoFramesAt needs the same tolerance_s.",
)


@makes_sources
def lerobot(
    root: str | os.PathLike[str],
    *,
    delta_timestamps: Mapping[str, Sequence[float]] | None = None,
    cameras: Iterable[str] | None = None,
    features: Iterable[str] | None = None,
    episodes: Iterable[int] | None = None,
    tolerance_s: float = 1e-4,
    memory: int | str | None = None,
) -> Source:
    """A LeRobot v3 dataset: one record per frame, with LeRobot's field names.

    root: its folder, with meta/, data/ and videos/, on disk or at a URL, of whose videos only the
    bytes of the requested frames are transferred.
    delta_timestamps: by feature, seconds relative to the record's time: ``{"action": [0, 0.1],
    "observation.images.top": [-0.1, 0]}``. The feature is then (T, ...), and ``<feature>_is_pad``
    (T,) bool marks times beyond the episode's ends, for which its first or last frame is repeated.
    cameras: names of features; default: all. features: names of the other features, in addition to
    those that every dataset has (``timestamp``, ``index``, ...); default: all. The defaults omit
    features that cannot be read, with one warning. episodes: their numbers, default: all; records
    are in the dataset's order. tolerance_s: how far timestamps may be from frame_index / fps, and
    delta_timestamps from multiples of 1 / fps; less than half of 1 / fps.
    memory: limit for each of the tables, which are held in memory; default: 1 GiB.

    A camera is a field of the kind video, with the times of its frames next to it: begin the list
    of transforms with ``T.VideoFramesAt()``, which takes exactly these frames, uint8 (T, C, H, W),
    or (C, H, W) for one time. A camera that is stored as images in the tables is a field of the
    kind image, with one time. Floats are float32 and integers int64, as LeRobot delivers them;
    ``task`` is text.

    Raises UnsupportedError HR0163 for v2.x; DataError HR0164, HR0166, HR0167 for a damaged dataset;
    ConfigError HR0165 for an invalid argument, HR0276 if the dataset refers to files outside its
    folder.
    """
    place = absolute(os.fspath(root))
    tolerance = arguments.seconds("tolerance_s", tolerance_s)
    limit = None if memory is None else arguments.size_in_bytes("memory", memory)
    info = read_info(place)
    if not tolerance < 0.5 / info.fps:  # a neighboring frame would match
        raise BAD_ARGUMENT.error(
            f"tolerance_s is {tolerance:g}, but half a frame is {0.5 / info.fps:.6g} s at "
            f"{info.fps:g} frames per second",
            hint="a smaller tolerance_s",
        )
    deltas = delta_timestamps or {}
    if not isinstance(deltas, Mapping):
        raise BAD_ARGUMENT.error(
            f"delta_timestamps is a {type(deltas).__name__}", hint='{"action": [0.0, 0.1]}'
        )
    selected = select(info, cameras, features, deltas)
    all_cameras = [*selected.cameras, *selected.images]
    offsets = _offsets(info, deltas, selected, tolerance)
    if not info.episodes:
        raise DAMAGED.error(f"{place} has no episodes")
    chosen = None if episodes is None else _chosen_episodes(info, episodes)
    found = read_episodes(info, selected.cameras, chosen, limit)
    columns = _Columns(info, found, selected, offsets, limit)
    columns.add_features()
    columns.check_timestamps(tolerance)
    for camera in selected.cameras:
        columns.add_camera(camera)
    columns.add_tasks()
    for camera in selected.images:
        columns.add_padding_of(camera)
    shown = ", ".join(all_cameras) or "no camera"
    title = f"lerobot {place} ({len(found.numbers):,} episodes, {info.fps:g} fps, {shown})"
    recipe = Recipe(
        lerobot,
        {
            "root": place,
            "delta_timestamps": {name: list(map(float, each)) for name, each in deltas.items()},
            "cameras": all_cameras,
            "features": [*selected.numbers, *selected.texts],
            "episodes": chosen,
            "tolerance_s": tolerance,
            "memory": limit,
        },
    )
    source = Source(columns.with_images(columns.source(title)), recipe=recipe)
    source.paths = (place,)  # nothing may be written there while it is read
    return source


def _offsets(
    info: Info,
    deltas: Mapping[str, Sequence[float]],
    selected: Selection,
    tolerance: float,
) -> dict[str, list[int]]:
    """delta_timestamps as numbers of frames, by feature."""
    known = [*selected.numbers, *DEFAULTS, *selected.cameras, *selected.images]
    out = {}
    for name, seconds in deltas.items():
        if name not in known:
            raise BAD_ARGUMENT.error(
                f"delta_timestamps has {name!r}, which is neither a numeric feature nor a camera",
                hint=did_you_mean(str(name), known),
            )
        given = arguments.numbers(f"delta_timestamps of {name!r}", seconds)
        if not given:
            raise BAD_ARGUMENT.error(f"delta_timestamps of {name!r} is empty")
        if name in selected.images and len(given) > 1:
            raise UNSUPPORTED.error(
                f"{name!r:.200} is stored as images in the tables, and delta_timestamps has "
                f"{len(given)} times for it",
                hint=f"one time, or cameras=[...] without {name!r:.200}",
            )
        frames = np.array(given) * info.fps
        if not (np.abs(frames) < 1 << 31).all():  # also rejects NaN
            raise BAD_ARGUMENT.error(f"delta_timestamps of {name!r} has {given!r:.200}")
        wrong = np.flatnonzero(np.abs(frames - np.round(frames)) / info.fps > tolerance)
        if wrong.size:
            raise BAD_ARGUMENT.error(
                f"delta_timestamps of {name!r} has {given[wrong[0]]!r}, which is not a multiple of "
                f"1 / {info.fps:g} s",
                hint=f"{np.round(frames[wrong[0]]) / info.fps:.6g}, or a larger tolerance_s",
            )
        out[name] = np.round(frames).astype(np.int64).tolist()
    return out


def _chosen_episodes(info: Info, episodes: Iterable[int]) -> list[int]:
    chosen = sorted(arguments.integer("episodes", each) for each in episodes)
    if not chosen:
        raise BAD_ARGUMENT.error("episodes is empty")
    if chosen[-1] >= info.episodes:
        raise BAD_ARGUMENT.error(
            f"episode {chosen[-1]:,} does not exist: the last is {info.episodes - 1:,}"
        )
    if len(set(chosen)) < len(chosen):
        raise BAD_ARGUMENT.error("episodes has an episode twice")
    return chosen


class _Columns:
    """The columns of the chosen episodes' records."""

    def __init__(
        self,
        info: Info,
        episodes: Episodes,
        selected: Selection,
        offsets: dict[str, list[int]],
        memory: int | None,
    ) -> None:
        self._info = info
        self._episodes = episodes
        self._selected = selected
        self._offsets = offsets
        self._memory = memory
        self._list = _core.ColumnList()
        self._ends = np.cumsum(
            episodes.lengths
        )  # first records of the episodes, among the chosen records
        self._where = info.file("data")
        self._table = self._rows()
        self._numbers: dict[str, np.ndarray[Any, Any]] = {}
        for name, dtype in DEFAULTS.items():
            feature = info.features.get(name, Feature(dtype, (1,)))
            self._numbers[name] = numbers(self._table, name, feature, self._where)
        self._check_rows()
        # Cameras use these times, so that no tolerance can lead to a frame outside the episode.
        self._exact_times = self._numbers["frame_index"] / info.fps

    def source(self, title: str) -> _core.Source:
        try:
            return self._list.source(title)
        except Error as error:
            if error.code != "HR0420":  # more fields than a source can have
                raise
            raise BAD_ARGUMENT.error(
                str(error), hint="features=[...] and cameras=[...] select fewer"
            ) from None

    def _rows(self) -> Any:
        """The rows of the chosen episodes among those of their files."""
        paths = [self._info.file(path) for path in self._episodes.data_files]
        table = Table(paths, self._memory)
        table.check(self._selected.images)
        rows = table.read([*DEFAULTS, *self._selected.numbers, *self._selected.texts])
        where = self._where
        owner = numbers(rows, "episode_index", Feature("int64", (1,)), where)
        chosen = np.isin(owner, self._episodes.numbers)
        self._paths, self._chosen = paths, np.flatnonzero(chosen)
        return rows if chosen.all() else rows.filter(chosen)

    def _check_rows(self) -> None:
        """Checks that the rows are as meta/episodes says, in the same order."""
        lengths, begins = self._episodes.lengths, self._episodes.begins
        declared, rows = int(self._ends[-1]) if lengths.size else 0, self._table.num_rows
        if rows != declared:  # before arrays of the declared size are made
            raise OVERLAP.error(
                f"{self._where} has {rows:,} rows for the episodes, but meta/episodes has "
                f"{declared:,}"
            )
        first = np.repeat(self._ends - lengths, lengths)
        inside = np.arange(declared) - first
        expected = {
            "index": inside + np.repeat(begins, lengths),
            "episode_index": np.repeat(self._episodes.numbers, lengths),
            "frame_index": inside,
        }
        for name, wanted in expected.items():
            found = self._numbers[name]
            wrong = np.flatnonzero(found != wanted)
            if wrong.size:
                i = int(wrong[0])
                raise OVERLAP.error(
                    f"{self._where}: record {i} has {name} {found[i]}, but "
                    f"{wanted[i]} in meta/episodes"
                )

    def check_timestamps(self, tolerance: float) -> None:
        stored, exact = self._numbers["timestamp"], self._exact_times
        rounding = np.spacing(np.abs(exact).astype(np.float32)).astype(np.float64)
        away = np.abs(stored.astype(np.float64) - exact)
        wrong = np.flatnonzero(~(away <= tolerance + rounding))
        if wrong.size:
            i = int(wrong[0])
            frame, episode = (int(self._numbers[n][i]) for n in ("frame_index", "episode_index"))
            raise _LIE.error(
                f"record {i}, frame {frame} of episode {episode}, has the timestamp "
                f"{stored[i]:.6f}, but at {self._info.fps:g} fps it is {exact[i]:.6f}",
                hint=self._way_out(float(np.max(away))),
            )

    def _way_out(self, away: float) -> str:
        """away: the largest distance of a timestamp from its frame's; may be NaN."""
        enough = float(f"{1.1 * away:.2g}")
        if not enough < 0.5 / self._info.fps:
            return "correct fps in meta/info.json, or exclude such episodes with episodes=[...]"
        return (
            f"correct fps in meta/info.json, or hr.lerobot(..., tolerance_s={enough:g}); if the "
            f"videos have such times as well, also T.VideoFramesAt(tolerance_s={enough:g})"
        )

    def add_features(self) -> None:
        for name, feature in self._info.features.items():
            if name in self._selected.texts:
                values, which = texts(self._table, name, self._where)
                self._list.add_texts(name, values, "text", which)
            elif name in self._selected.numbers:
                self._add_numbers(name, numbers(self._table, name, feature, self._where))
        for name, column in self._numbers.items():
            self._add_numbers(name, column)

    def _add_numbers(self, name: str, values: np.ndarray[Any, Any]) -> None:
        if name in self._offsets:
            self._list.add_window(name, values, self._offsets[name], self._ends.tolist())
            self._add_padding(name)
        else:
            self._list.add_array(name, values, values, [], "tensor")

    def _add_padding(self, name: str) -> None:
        count = np.empty((int(self._ends[-1]), 0), np.bool_)
        self._list.add_window(
            f"{name}_is_pad", count, self._offsets[name], self._ends.tolist(), padding=True
        )

    def add_camera(self, camera: str) -> None:
        part = self._episodes.parts[camera]
        for path in part.files:
            if not self._info.is_far and not self._info.has(path):  # else at their first records
                raise DAMAGED.error(
                    f"{self._info.file(path)} does not exist",
                    hint="download the videos, or exclude the camera with cameras=[...]",
                )
        lengths = self._episodes.lengths
        which = np.repeat(part.which, lengths)
        times = self._exact_times + np.repeat(part.begins, lengths)
        self._list.add_paths(
            camera,
            part.files,
            root=self._info.root,
            kind="video",
            which=which,
            times=f"{camera}_times",
        )
        offsets = self._offsets.get(camera, [0])
        if len(offsets) > 1:
            self._list.add_window(f"{camera}_times", times, offsets, self._ends.tolist())
        else:
            shown = times[self._shifted(offsets[0])]
            self._list.add_array(f"{camera}_times", shown, shown, [], "tensor")
        self.add_padding_of(camera)

    def add_padding_of(self, camera: str) -> None:
        if camera in self._offsets:
            self._add_padding(camera)

    def _shifted(self, offset: int) -> np.ndarray[Any, Any]:
        """For each record, the record at this distance, inside its episode."""
        lengths = self._episodes.lengths
        first = np.repeat(self._ends - lengths, lengths)
        last = np.repeat(self._ends, lengths) - 1
        return np.clip(np.arange(len(first)) + offset, first, last)

    def with_images(self, source: _core.Source) -> _core.Source:
        """The records with the cameras that are images in the tables. Those at the same time are
        read together."""
        by_offset: dict[int, list[str]] = {}
        for camera in self._selected.images:
            by_offset.setdefault(self._offsets.get(camera, [0])[0], []).append(camera)
        for offset, cameras in by_offset.items():
            fields = [f"{camera}={camera}" for camera in cameras]
            given = {"fields": fields, "memory": self._memory, "allow_outside": False}
            images = open_files("parquet", self._paths, given)
            for field in images.schema:
                if field.kind != "image":
                    raise DAMAGED.error(
                        f"{self._where}: the column {field.name!r} does not have images, as "
                        "meta/info.json says"
                    )
            rows = self._chosen[self._shifted(offset)]
            if not np.array_equal(rows, np.arange(len(images))):
                images = _core.subset(images, rows)
            source = _core.join(source, images, "position", {}, [])
        return source

    def add_tasks(self) -> None:
        """task, and subtask if the dataset has it, as text."""
        self._add_names("task", "task_index", "tasks.parquet", self._numbers["task_index"])
        if "subtask_index" in self._selected.numbers and self._info.has(*SUBTASKS):
            feature = self._info.features["subtask_index"]
            found = numbers(self._table, "subtask_index", feature, self._where)
            self._add_names("subtask", "subtask_index", "subtasks.parquet", found)

    def _add_names(self, name: str, index: str, file: str, which: np.ndarray[Any, Any]) -> None:
        path = self._info.file("meta", file)
        table = Table([path], self._memory)
        column = next((each for each in (name, "__index_level_0__") if each in table.names), name)
        rows = table.read([column, index])
        values, order = texts(rows, column, path)
        names = [values[i] for i in order.tolist()]
        found = numbers(rows, index, Feature("int64", (1,)), path)
        if not np.array_equal(found, np.arange(len(names))):
            raise DAMAGED.error(f"{path}: {index} does not count from 0 to {len(names) - 1}")
        wrong = np.flatnonzero((which < 0) | (which >= len(names)))
        if wrong.size:
            raise DAMAGED.error(
                f"record {wrong[0]} has {index} {which[wrong[0]]}, but {path} has {len(names):,} "
                "rows"
            )
        self._list.add_texts(name, names, "text", which)
