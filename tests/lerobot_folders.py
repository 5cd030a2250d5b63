# SPDX-License-Identifier: Apache-2.0
"""LeRobot v3 datasets that tests make: three episodes, two cameras, several episodes in a video."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import videos

import headrace as hr
from headrace import transforms as T

LENGTHS = [25, 18, 31]
TOP, WRIST = "observation.images.top", "observation.images.1"
FILES = {TOP: [0, 0, 1], WRIST: [0, 1, 1]}  # of each episode, by camera
TASKS = ["fold the towel", "open the drawer"]
TASK_OF_EPISODE = [0, 1, 0]
OFFSETS = [-3, -1, 0, 2]
ACTIONS = [0, 1, 2, 5]
EPISODES = "meta/episodes/chunk-000/file-000.parquet"
SCALAR = {"dtype": "int64", "shape": [1], "names": None}
VIDEO = {"dtype": "video", "shape": [48, 64, 3], "names": ["height", "width", "channels"]}


class Folder(NamedTuple):
    """A dataset and its contents."""

    root: Path
    fps: int
    columns: dict[str, np.ndarray[Any, Any]]
    frames: dict[str, list[np.ndarray[Any, Any]]]  # by camera and episode, by a sequential decode

    def window(self, name: str, record: int, offsets: list[int]) -> tuple[Any, list[bool]]:
        """The rows of a column at these distances, and which are beyond the episode."""
        episode = int(self.columns["episode_index"][record])
        begin = sum(LENGTHS[:episode])
        wanted = [record + offset for offset in offsets]
        end = begin + LENGTHS[episode]
        rows = [min(max(row, begin), end - 1) for row in wanted]
        pad = [row != want for row, want in zip(rows, wanted, strict=True)]
        if name in self.frames:
            return self.frames[name][episode][[row - begin for row in rows]], pad
        return self.columns[name][rows], pad


def write_table(path: Path, columns: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)


def make_folder(root: Path, fps: int = 30, **codec: Any) -> Folder:
    """Writes a dataset. codec: as in ``videos.encoded``."""
    total = sum(LENGTHS)
    random = np.random.default_rng(fps)
    episode = np.repeat(np.arange(3), LENGTHS)
    frame = np.concatenate([np.arange(length) for length in LENGTHS])
    columns = {
        "observation.state": random.normal(size=(total, 6)).astype(np.float32),
        "action": random.normal(size=(total, 4)).astype(np.float32),
        "next.done": np.isin(np.arange(total), np.cumsum(LENGTHS) - 1),
        "timestamp": (frame / fps).astype(np.float32),
        "frame_index": frame,
        "episode_index": episode,
        "index": np.arange(total),
        "task_index": np.array(TASK_OF_EPISODE)[episode],
    }
    frames: dict[str, list[Any]] = {}
    places: dict[str, Any] = {}
    for camera, files in FILES.items():
        frames[camera] = []
        for name, values in _videos_of(root, camera, files, fps, frames[camera], codec).items():
            places[f"videos/{camera}/{name}"] = values
    ends = np.cumsum(LENGTHS)
    for number, chosen in enumerate([episode < 2, episode == 2]):
        write_table(
            root / f"data/chunk-000/file-{number:03d}.parquet",
            {name: _arrow(values[chosen]) for name, values in columns.items()},
        )
    write_table(
        root / "meta/episodes/chunk-000/file-000.parquet",
        {
            "episode_index": np.arange(3),
            "length": LENGTHS,
            "dataset_from_index": ends - LENGTHS,
            "dataset_to_index": ends,
            "data/chunk_index": [0, 0, 0],
            "data/file_index": [0, 0, 1],
            **places,
        },
    )
    write_table(root / "meta/tasks.parquet", {"task_index": [0, 1], "task": TASKS})
    vector = {"dtype": "float32", "names": None}
    info = {
        "codebase_version": "v3.0",
        "fps": fps,
        "total_frames": total,
        "total_episodes": 3,
        "data_path": "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet",
        "video_path": "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4",
        "features": {
            TOP: VIDEO,
            WRIST: VIDEO,
            "observation.state": {**vector, "shape": [6]},
            "action": {**vector, "shape": [4]},
            "next.done": {**SCALAR, "dtype": "bool"},
            "timestamp": {**SCALAR, "dtype": "float32"},
            **{name: SCALAR for name in ("frame_index", "episode_index", "index", "task_index")},
        },
    }
    (root / "meta/info.json").write_text(json.dumps(info))
    stats = {"action": {"mean": columns["action"].mean(axis=0).tolist(), "count": [total]}}
    (root / "meta/stats.json").write_text(json.dumps(stats))
    return Folder(root, fps, columns, frames)


def _arrow(values: np.ndarray[Any, Any]) -> Any:
    if values.ndim == 1:
        return pa.array(values)
    return pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), values.shape[1])


def _videos_of(
    root: Path, camera: str, files: list[int], fps: int, frames: list[Any], codec: dict[str, Any]
) -> dict[str, Any]:
    """Writes a camera's videos; returns the position of each episode in them."""
    begins = []
    for file in sorted(set(files)):
        lengths = [LENGTHS[i] for i in range(3) if files[i] == file]
        pictures = videos.moving(sum(lengths), seed=7 * file + len(camera))
        data = videos.encoded(pictures, fps=fps, **{"g": 2, **codec})
        path = root / f"videos/{camera}/chunk-000/file-{file:03d}.mp4"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        decoded, _ = videos.decoded(data)
        at = 0
        for length in lengths:
            begins.append(at / fps)
            frames.append(decoded[at : at + length])
            at += length
    return {
        "chunk_index": [0, 0, 0],
        "file_index": files,
        "from_timestamp": np.array(begins),
        "to_timestamp": np.array(begins) + np.array(LENGTHS) / fps,
    }


# For tests of them


def opened(folder: Folder, url: str = "", **how: Any) -> hr.Source:
    """url: of a copy of it."""
    deltas = {
        TOP: [n / folder.fps for n in OFFSETS],
        WRIST: [n / folder.fps for n in OFFSETS],
        "observation.state": [n / folder.fps for n in OFFSETS],
        "action": [n / folder.fps for n in ACTIONS],
    }
    return hr.lerobot(url or folder.root, **{"delta_timestamps": deltas, **how})


def loader(source: hr.Source, *steps: Any, **how: Any) -> hr.Loader:
    frames = [T.VideoFramesAt(), T.CenterCrop((48, 64)), *steps]
    return hr.Loader(source, frames, **{"batch_size": 8, "shuffle": False, **how})


def check(folder: Folder, batch: Any) -> None:
    """Each value of the batch belongs to its record."""
    for row, record in enumerate(batch["index"].tolist()):
        for name in (TOP, WRIST, "observation.state", "action"):
            offsets = ACTIONS if name == "action" else OFFSETS
            values, pad = folder.window(name, record, offsets)
            np.testing.assert_array_equal(batch[name][row], values, err_msg=f"{name} of {record}")
            assert batch[f"{name}_is_pad"][row].tolist() == pad
        episode = int(folder.columns["episode_index"][record])
        assert batch["task"][row] == TASKS[TASK_OF_EPISODE[episode]]
        for name in ("timestamp", "frame_index", "episode_index", "task_index", "next.done"):
            assert batch[name][row] == folder.columns[name][record], name


def refused(code: str, word: str, root: Path, **how: Any) -> None:
    with pytest.raises(hr.Error) as error:
        hr.lerobot(root, **how)
    assert error.value.code == code, error.value
    assert word in str(error.value)


def edit_info(root: Path, **changes: Any) -> None:
    path = root / "meta/info.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def edit_table(path: Path, change: Callable[[dict[str, list[Any]]], None]) -> None:
    """Other values of the same types."""
    table = pq.ParquetFile(path).read()
    columns = table.to_pydict()
    change(columns)
    pq.write_table(pa.table(columns, table.schema), path)
