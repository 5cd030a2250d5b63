# SPDX-License-Identifier: Apache-2.0
"""Writes a source as a LeRobot dataset: episode by episode, in a working folder that takes its name
when everything is complete."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from headrace.jobs.folder import sha256
from headrace.sources import Source
from headrace.whole_file import sync, write_whole
from headrace.write.destination import Destination, write_sums
from headrace.write.durable import sync_all_below, written_to
from headrace.write.lerobot.episodes import NOT_FRAMES, Episodes, episodes_of
from headrace.write.lerobot.features import COMPUTED, Camera, Features, features_of
from headrace.write.lerobot.images import image_bytes
from headrace.write.lerobot.options import Encoding, encoding_of
from headrace.write.lerobot.places import DATA_PATH, SCRATCH, VIDEO_PATH, Places
from headrace.write.lerobot.stats import ImageStats, Stats, combined, stats_of_numbers
from headrace.write.lerobot.tables import EpisodeTable, FrameTable, write_tasks
from headrace.write.lerobot.videos import VideoFiles, check_encoding, rate_of

_BATCH = 16  # frames that are decoded at once
_TOO_LARGE = np.float64(1e150)  # its square is near the end of float64


def write_dataset(
    source: Source,
    target: str,
    threads: int | None,
    overwrite: bool,
    have_done: Callable[[int], None],
    options: Mapping[str, Any],
) -> dict[str, Any]:
    """Returns the report of the conversion. Raises DataError HR0169 if the records are not frames
    of episodes, StorageError HR0275 if writing fails, ConfigError HR0277 while another process
    writes there, HR0414 for options that do not fit the source, HR0415 if the destination exists.
    """
    features, encoding = features_of(source, options), encoding_of(options)
    has_videos = bool(features.cameras) and options["images"] == "video"
    if has_videos:
        check_encoding(encoding)
    destination = Destination(Path(target), overwrite)
    destination.check(source, of_files=True)
    episodes = episodes_of(source, features, options)
    if has_videos:
        rate_of(episodes.fps)  # refused before anything is written
    with written_to(destination.work, resumes=False), destination.working_folder():
        destination.clear_work()
        root = destination.work / "data"
        root.mkdir()
        writing = _Writing(source, root, features, episodes, encoding, threads, options)
        try:
            writing.run(have_done)
            files = _sums(root)
            sync_all_below(root)
            destination.check(source, of_files=True)
        except BaseException:
            writing.abandon()
            with contextlib.suppress(OSError):
                destination.clear_work()  # nothing that a later run could use
            raise
        destination.take_place(root)
    return {
        "records": len(source),
        "episodes": len(episodes.lengths),
        "bytes": sum(each["bytes"] for each in files),
        "files": files,
        "resumed_records": 0,
        "unusable": [],
        "unusable_count": 0,
    }


def frames(source: Source, threads: int | None) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Batches of decoded records, in order: the number of the first one, and values by field.
    Images and frames are (3, H, W) uint8."""
    from headrace.loader import Loader  # late
    from headrace.transforms import VideoFramesAt

    has_videos = any(field.kind == "video" for field in source.schema)
    steps = [VideoFramesAt()] if has_videos else []
    loader = Loader(source, steps, batch_size=_BATCH, shuffle=False, ragged="list", threads=threads)
    begin = 0
    for batch in loader:
        values = batch._asdict()
        yield begin, values
        begin += min(_BATCH, len(source) - begin)


class _Writing:
    """One conversion, after everything has been checked that can be checked in advance."""

    def __init__(
        self,
        source: Source,
        root: Path,
        features: Features,
        episodes: Episodes,
        encoding: Encoding,
        threads: int | None,
        options: Mapping[str, Any],
    ) -> None:
        self.source, self.root, self.features, self.episodes = source, root, features, episodes
        self.threads, self.options = threads, options
        mib = (options["data_files_size_in_mb"], options["video_files_size_in_mb"])
        self.places = Places(root, options["chunks_size"], *mib)
        as_videos = options["images"] == "video"
        self.videos = [
            VideoFiles(each.feature, self.places, encoding, episodes.fps, threads)
            for each in features.cameras
            if as_videos
        ]
        stored = [each.feature for each in features.cameras if not as_videos]
        self.table = FrameTable(self.places, features.columns, stored)
        self.index = EpisodeTable(self.places)
        self.fields = {field.name: field for field in source.schema}
        self.sizes: dict[str, tuple[int, ...]] = {}  # by camera
        self.stats: list[dict[str, Stats]] = []  # by episode and feature
        self.written = 0  # records of complete episodes

    def run(self, have_done: Callable[[int], None]) -> None:
        ends = np.cumsum(self.episodes.lengths).tolist()
        episode = self._begin(0)
        pool = ThreadPoolExecutor(max(1, len(self.features.cameras)), "headrace-encode")
        with pool:
            for begin, batch in frames(self.source, self.threads):
                count = min(_BATCH, len(self.source) - begin)
                at = 0
                while at < count:
                    part = slice(at, min(count, ends[episode.number] - begin))
                    episode.add(batch, part, begin, pool)
                    at = part.stop
                    if begin + at == ends[episode.number]:
                        self._finish(episode, pool)
                        if episode.number + 1 < len(ends):
                            episode = self._begin(episode.number + 1)
                have_done(begin + count)
        self._close()

    def _begin(self, number: int) -> _Episode:
        return _Episode(self, number, self.episodes.lengths[number])

    def _finish(self, episode: _Episode, pool: ThreadPoolExecutor) -> None:
        number, length = episode.number, episode.length
        begin = self.written
        values = episode.values(begin)
        stats = {
            name: stats_of_numbers(np.asarray(column))
            for name, column in values.items()
            if not isinstance(column, list)
        }
        stats |= {name: each.stats() for name, each in episode.images.items()}
        self.written = begin + length
        row = {
            "episode_index": number,
            "tasks": [self.episodes.tasks[i] for i in dict.fromkeys(values["task_index"].tolist())],
            "length": length,
            **self.table.write({**values, **episode.encoded}),
            "dataset_from_index": begin,
            "dataset_to_index": begin + length,
        }
        for columns in pool.map(VideoFiles.end_episode, self.videos):
            row |= columns
        for name, each in stats.items():
            row |= {f"stats/{name}/{key}": value.tolist() for key, value in each.items()}
        self.index.add(row)
        self.stats.append(stats)

    def _close(self) -> None:
        for video in self.videos:
            video.close()
        self.table.table.close()
        self.index.close()
        shutil.rmtree(self.root / SCRATCH, ignore_errors=True)
        write_tasks(self.root / "meta" / "tasks.parquet", self.episodes.tasks)
        stats = {name: combined([each[name] for each in self.stats]) for name in self.stats[0]}
        listed = {
            name: {key: value.tolist() for key, value in each.items()}
            for name, each in stats.items()
        }
        _write_json(self.root / "meta" / "stats.json", listed)
        _write_json(self.root / "meta" / "info.json", self._info())

    def _info(self) -> dict[str, Any]:
        fps, options = self.episodes.fps, self.options
        count = len(self.episodes.lengths)
        return {
            "codebase_version": "v3.0",
            "robot_type": options["robot_type"],
            "total_episodes": count,
            "total_frames": len(self.source),
            "total_tasks": len(self.episodes.tasks),
            "chunks_size": options["chunks_size"],
            "data_files_size_in_mb": options["data_files_size_in_mb"],
            "video_files_size_in_mb": options["video_files_size_in_mb"],
            "fps": int(fps) if fps == int(fps) else fps,
            "splits": {"train": f"0:{count}"},
            "data_path": DATA_PATH,
            "video_path": VIDEO_PATH if self.videos else None,
            "features": self._features(),
        }

    def _features(self) -> dict[str, Any]:
        out: dict[str, Any] = {}
        infos = {video.camera: video.info for video in self.videos}
        for camera in self.features.cameras:
            shape = [*self.sizes[camera.feature], 3]
            names = ["height", "width", "channels"]
            video = {"dtype": "video", "info": infos.get(camera.feature)}
            dtype = video if camera.feature in infos else {"dtype": "image"}
            out[camera.feature] = {"shape": shape, "names": names, **dtype}
        for column in self.table.columns:
            shape = list(column.shape) or [1]
            out[column.feature] = {"dtype": column.dtype, "shape": shape, "names": None}
        return out

    def abandon(self) -> None:
        """Closes what is still open after an error."""
        for video in self.videos:
            video.abandon()
        for table in (self.table.table, self.index.table):
            with contextlib.suppress(Exception):
                if table is not None:
                    table.close()


class _Episode:
    """The values of the episode that is being read."""

    def __init__(self, writing: _Writing, number: int, length: int) -> None:
        self.writing, self.number, self.length = writing, number, length
        self._parts: dict[str, list[Any]] = {each.feature: [] for each in writing.features.columns}
        self.images = {each.feature: ImageStats(length) for each in writing.features.cameras}
        self.encoded: dict[str, list[bytes]] = {
            each.feature: [] for each in writing.features.cameras if not writing.videos
        }
        self._frames = 0

    def add(
        self, batch: Mapping[str, Any], part: slice, begin: int, pool: ThreadPoolExecutor
    ) -> None:
        """part: the rows of the batch, whose first one is record ``begin``."""
        for column in self.writing.features.columns:
            values = batch[column.field][part]  # copied: views would hold the loader's memory
            self._parts[column.feature].append(
                list(values) if column.dtype == "string" else np.array(values)
            )
        cameras = self.writing.features.cameras

        def add_frames(which: int) -> None:
            rows = batch[cameras[which].field][part]
            for i, pixels in enumerate(rows):
                self._add_frame(which, begin + part.start + i, self._frames + i, np.asarray(pixels))

        list(pool.map(add_frames, range(len(cameras))))
        self._frames += part.stop - part.start

    def _add_frame(self, which: int, record: int, frame: int, pixels: np.ndarray[Any, Any]) -> None:
        writing, camera = self.writing, self.writing.features.cameras[which]
        self._check_size(camera, record, pixels)
        self.images[camera.feature].add(frame, pixels)
        if writing.videos:
            writing.videos[which].add(pixels)
        else:
            field = writing.fields[camera.field]
            self.encoded[camera.feature].append(image_bytes(writing.source, record, field, pixels))

    def _check_size(self, camera: Camera, record: int, pixels: np.ndarray[Any, Any]) -> None:
        if pixels.ndim != 3 or pixels.shape[0] != 3 or pixels.dtype != np.uint8:
            raise NOT_FRAMES.error(
                f"record {record} ({self.writing.source.key(record)}): {camera.field} is "
                f"{pixels.dtype} {pixels.shape}, not an RGB image"
            )
        expected = self.writing.sizes.setdefault(camera.feature, pixels.shape[1:])
        if pixels.shape[1:] != expected:
            raise NOT_FRAMES.error(
                f"record {record} ({self.writing.source.key(record)}): {camera.field} has "
                f"{pixels.shape[1]} x {pixels.shape[2]} pixels, but the first record "
                f"has {expected[0]} x {expected[1]}",
                hint="resize the images first, or leave the camera out with fields=[...]",
            )

    def values(self, begin: int) -> dict[str, Any]:
        """All columns: arrays, and lists of texts. begin: the episode's first record."""
        out: dict[str, Any] = {}
        for column in self.writing.features.columns:
            parts = self._parts[column.feature]
            if column.dtype == "string":
                out[column.feature] = [text for part in parts for text in part]
                continue
            out[column.feature] = np.concatenate([np.asarray(part) for part in parts])
            self._check_numbers(column.field, out[column.feature], begin)
        frame = np.arange(self.length)
        computed = (
            (frame / self.writing.episodes.fps).astype(np.float32),
            frame,
            np.full(self.length, self.number),
            begin + frame,
            self.writing.episodes.task_of[begin : begin + self.length],
        )
        return out | dict(zip(COMPUTED, computed, strict=True))

    def _check_numbers(self, field: str, values: np.ndarray[Any, Any], begin: int) -> None:
        """Checks that statistics (sums of squares) and LeRobot's tensors can hold the values."""
        if values.dtype.kind == "f":
            fits = np.abs(values) < _TOO_LARGE  # false for NaN, too
            what = "that is not finite or too large"
        elif values.dtype == np.uint64:
            fits = values <= np.iinfo(np.int64).max
            what = "beyond int64"
        else:
            return
        if not fits.all():
            i = int(np.flatnonzero(~fits.reshape(len(values), -1).all(axis=1))[0])
            raise NOT_FRAMES.error(
                f"record {begin + i}: {field} has a value {what}, for which LeRobot has no "
                "statistics or tensors",
                hint="src.with_columns() adds a corrected field; fields=[...] leaves the field out",
            )


def _write_json(path: Path, value: Any) -> None:
    write_whole(path, json.dumps(value, indent=4, ensure_ascii=False, allow_nan=False))


def _sums(root: Path) -> list[dict[str, Any]]:
    """Path, size and SHA-256 of all files; writes SHA256SUMS."""
    paths = sorted(path for path in root.rglob("*") if path.is_file())
    files = [
        {
            "file": str(path.relative_to(root)),
            "bytes": path.stat().st_size,
            "sha256": sha256(path),
        }
        for path in paths
    ]
    write_sums(root, files)
    sync(root)
    return files
