# SPDX-License-Identifier: Apache-2.0
"""``meta/episodes``: the records of each episode, and their time ranges in video files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from headrace import _core
from headrace.errors import Error, declare
from headrace.sources.lerobot.info import DAMAGED, Feature, Info, expanded
from headrace.sources.lerobot.tables import Table, files_below, numbers

OVERLAP = declare(
    "HR0167",
    "data",
    "inconsistent LeRobot episodes",
    "Episodes must follow each other without gaps in the table of frames, and must not share "
    "video frames. In this dataset they do not, so a window of one episode would show frames of "
    "another. The dataset was merged or edited incorrectly; rewrite it with LeRobot's own tools.",
)

_INTEGER, _SECONDS = Feature("int64", (1,)), Feature("float64", (1,))


class Part(NamedTuple):
    """The time ranges of all chosen episodes in video files."""

    files: list[str]  # without duplicates, relative to the root
    which: np.ndarray[Any, Any]  # the number of each episode's file
    begins: np.ndarray[Any, Any]  # seconds on the file's clock


class Episodes(NamedTuple):
    numbers: np.ndarray[Any, Any]  # numbers of the chosen episodes, ascending
    begins: np.ndarray[Any, Any]  # the numbers of their first records in the whole dataset
    lengths: np.ndarray[Any, Any]
    data_files: list[str]
    parts: dict[str, Part]  # by camera


def read_episodes(
    info: Info, cameras: Sequence[str], chosen: Sequence[int] | None, memory: int | None
) -> Episodes:
    """The chosen episodes; None: all. Errors in other episodes do not matter."""
    where = info.file("meta", "episodes")
    table = Table(_episode_files(info, where), memory)
    if table.rows != info.episodes:
        raise DAMAGED.error(
            f"{where} has {table.rows:,} episodes, but meta/info.json has {info.episodes:,}"
        )
    places = [f"{thing}/{part}" for thing in ("data",) for part in ("chunk_index", "file_index")]
    names = ["episode_index", "dataset_from_index", "dataset_to_index", *places]
    for camera in cameras:
        names += [f"videos/{camera}/{part}" for part in ("chunk_index", "file_index")]
        names += [f"videos/{camera}/{part}" for part in ("from_timestamp", "to_timestamp")]
    read = table.read(names)
    columns = {
        name: _seconds(read, name, where)
        if name.endswith("timestamp")
        else numbers(read, name, _INTEGER, where)
        for name in names
    }
    if not np.array_equal(columns["episode_index"], np.arange(table.rows)):
        raise OVERLAP.error(f"{where}: episode_index does not count from 0 to {table.rows - 1:,}")
    begins, ends = columns["dataset_from_index"], columns["dataset_to_index"]
    _check_rows(begins, ends, info, where)
    wanted = np.arange(table.rows) if chosen is None else np.array(chosen, np.int64)
    lengths = ends - begins
    pairs = list(zip(*(columns[place].tolist() for place in places), strict=True))
    paths = {
        (chunk, file): expanded(info.data_path, chunk_index=chunk, file_index=file)
        for chunk, file in sorted(set(pairs))
    }
    _refuse_one_for_two(info.data_path, paths.values())
    data_files = [paths[pair] for pair in sorted({pairs[i] for i in wanted.tolist()})]
    if cameras:
        first = [_video_path(info, camera, 0, 0) for camera in info.cameras]
        _refuse_one_for_two(info.video_path, first)
    parts = {camera: _part(info, camera, columns, wanted, lengths) for camera in cameras}
    return Episodes(wanted, begins[wanted], lengths[wanted], data_files, parts)


def _episode_files(info: Info, where: str) -> list[str]:
    """Files with the table of episodes. In other storages, which may have no listings, they are
    counted up from the first until all episodes are found."""
    if not _core.scheme_of(info.root):
        return files_below(where)
    paths: list[str] = []
    chunk = file = found = 0
    while found < info.episodes or not paths:
        parts = ("meta", "episodes", f"chunk-{chunk:03d}", f"file-{file:03d}.parquet")
        if paths and not info.has(*parts):
            if file == 0:
                break  # the number of episodes is reported as wrong
            chunk, file = chunk + 1, 0
            continue
        paths.append(info.file(*parts))
        found += Table(paths[-1:]).rows
        file += 1
    return paths


def _video_path(info: Info, camera: str, chunk: int, file: int) -> str:
    return expanded(info.video_path, video_key=camera, chunk_index=chunk, file_index=file)


def _refuse_one_for_two(template: str, paths: Iterable[str]) -> None:
    """Checks that paths of different files differ."""
    seen: set[str] = set()
    for path in map(os.path.normpath, paths):
        if path in seen:
            raise DAMAGED.error(
                f"meta/info.json has the path {template!r:.200}, which gives {path!r:.200} for "
                "two files of the dataset",
                hint="it needs {chunk_index} and {file_index}, and {video_key} for videos",
            )
        seen.add(path)


def _check_rows(
    begins: np.ndarray[Any, Any], ends: np.ndarray[Any, Any], info: Info, where: str
) -> None:
    expected = np.concatenate([[0], ends[:-1]])
    wrong = np.flatnonzero((begins != expected) | (ends <= begins))
    if wrong.size:
        i = int(wrong[0])
        raise OVERLAP.error(
            f"{where}: episode {i} has the records {begins[i]} to {ends[i]}, but the previous one "
            f"ends at {expected[i]}"
        )
    if ends.size and ends[-1] != info.frames:
        raise OVERLAP.error(
            f"{where}: the last episode ends at record {ends[-1]:,}, but meta/info.json has "
            f"total_frames {info.frames:,}"
        )


def _seconds(table: Any, name: str, where: str) -> np.ndarray[Any, Any]:
    """A column of seconds at full precision."""
    import pyarrow.compute as pc  # the table is a pyarrow table

    numbers(table, name, _SECONDS, where)  # checks it
    values: np.ndarray[Any, Any] = pc.cast(table.column(name), "float64").to_numpy()
    if not (np.isfinite(values) & (values >= 0)).all():
        raise DAMAGED.error(f"{where}: {name} has a time that is negative or not a number")
    return values


def _part(
    info: Info,
    camera: str,
    columns: dict[str, np.ndarray[Any, Any]],
    wanted: np.ndarray[Any, Any],
    lengths: np.ndarray[Any, Any],
) -> Part:
    """columns, lengths: for all episodes, since any of them may share frames with a chosen one."""
    column = {
        part: columns[f"videos/{camera}/{part}"]
        for part in ("chunk_index", "file_index", "from_timestamp", "to_timestamp")
    }
    pairs = np.stack([column["chunk_index"], column["file_index"]], axis=1)
    places, which = np.unique(pairs, axis=0, return_inverse=True)
    which = which.reshape(-1)
    begins, ends = column["from_timestamp"], column["to_timestamp"]

    def overlap(i: int, what: str) -> Error:
        return OVERLAP.error(
            f"{camera}: episode {i} has {lengths[i]} frames from {begins[i]:.4f} s to "
            f"{ends[i]:.4f} s of its video, {what}"
        )

    half = 0.5 / info.fps
    last = begins + (lengths - 1) / info.fps  # begins of the last frames
    is_wanted = np.zeros(len(lengths), bool)
    is_wanted[wanted] = True
    for i in np.flatnonzero(is_wanted & (last > ends - half)):
        raise overlap(int(i), f"which is too short for them at {info.fps:g} frames per second")
    longest = -1  # among the earlier episodes of the same file, the one that ends last
    for i in np.lexsort((begins, which)).tolist():
        if longest >= 0 and which[longest] == which[i]:
            if begins[i] < last[longest] + half and (is_wanted[i] or is_wanted[longest]):
                until = f"{last[longest]:.4f} s"
                raise overlap(i, f"but episode {longest} extends to {until} of it")
            if last[i] <= last[longest]:
                continue
        longest = i
    files = [_video_path(info, camera, chunk, file) for chunk, file in places.tolist()]
    _refuse_one_for_two(info.video_path, files)
    used, which = np.unique(which[wanted], return_inverse=True)
    return Part([files[i] for i in used.tolist()], which.reshape(-1), begins[wanted])
