# SPDX-License-Identifier: Apache-2.0
"""``meta/info.json``: the features of the dataset, and the locations of its files.

>>> expanded("data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet", chunk_index=0,
...          file_index=12)
'data/chunk-000/file-012.parquet'
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from headrace import _core
from headrace.errors import Code, Error, declare

UNSUPPORTED = declare(
    "HR0163",
    "unsupported",
    "unsupported LeRobot dataset",
    "hr.lerobot reads datasets of LeRobot v3.0 (codebase_version in meta/info.json). Older "
    "versions have one file per episode; convert them once: "
    "`python -m lerobot.datasets.v30.convert_dataset_v21_to_v30 --repo-id=...`. Several timestamps "
    "per record are supported for cameras that are videos, not for images in the tables.",
)
DAMAGED = declare(
    "HR0164",
    "data",
    "invalid LeRobot dataset",
    "A file of the dataset is missing, or lacks what LeRobot v3.0 requires. The message "
    "names the file. Download or copy the dataset again; a recording that was interrupted has to "
    "be finalized by the LeRobot version that wrote it.",
)
_OUTSIDE = Code("HR0276", "config", "dataset refers to files outside its folder")
DEFAULTS = {  # features that LeRobot adds to each dataset
    "timestamp": "float32",
    "frame_index": "int64",
    "episode_index": "int64",
    "index": "int64",
    "task_index": "int64",
}
NOT_FOUND = ("HR0201", "HR0402")  # errors of a storage without the file
_MOST_BYTES = 64 << 20  # maximum size of info.json

_PLACEHOLDER = re.compile(r"\{(\w+)(?::0(\d)d)?\}")


class Feature(NamedTuple):
    dtype: str
    shape: tuple[int, ...]


class Info(NamedTuple):
    root: str
    fps: float
    frames: int
    episodes: int
    features: Mapping[str, Feature]
    data_path: str
    video_path: str

    def file(self, *parts: str) -> str:
        return os.path.join(self.root, *parts)

    @property
    def is_far(self) -> bool:
        """Whether it is not in the local file system: each look at a file is a request."""
        return bool(_core.scheme_of(self.root))

    def has(self, *parts: str) -> bool:
        """Whether the dataset has this file, in any storage."""
        path = self.file(*parts)
        if not self.is_far:
            return os.path.isfile(path)
        try:
            _core.StoredFiles([path])
        except Error as error:
            if error.code not in NOT_FOUND:
                raise
            return False
        return True

    @property
    def cameras(self) -> list[str]:
        """Videos, and images in the tables."""
        return [name for name, each in self.features.items() if each.dtype in ("video", "image")]


def read_info(root: str) -> Info:
    """The contents of ``meta/info.json``, checked."""
    path = os.path.join(root, "meta", "info.json")
    info = read_json(path)
    version = info.get("codebase_version")
    if not (isinstance(version, str) and re.fullmatch(r"v3\.\d+", version)):
        shown = repr(version) if version is None or isinstance(version, str) else "not a text"
        raise UNSUPPORTED.error(
            f"{path} has codebase_version {shown:.40}, but only v3.0 is supported",
            hint="`python -m lerobot.datasets.v30.convert_dataset_v21_to_v30` converts v2.1",
        )

    def number(name: str) -> int:
        value = info.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 40:
            raise DAMAGED.error(f"{path}: {name} is {value!r:.40}, not a count")
        return value

    fps: Any = info.get("fps")
    fine = isinstance(fps, (int, float)) and not isinstance(fps, bool)
    if not fine or not 0 < fps <= 1e6:  # also rejects NaN
        raise DAMAGED.error(f"{path}: fps is {fps!r:.40}, not a positive number")
    features = _features(info.get("features"), path)
    has_videos = any(feature.dtype == "video" for feature in features.values())
    templates = {"data_path": info.get("data_path"), "video_path": info.get("video_path")}
    for name, template in templates.items():
        if not isinstance(template, str) and (name == "data_path" or has_videos):
            raise DAMAGED.error(f"{path}: {name} is {template!r:.40}, not a path")
    return Info(
        root=root,
        fps=float(fps),
        frames=number("total_frames"),
        episodes=number("total_episodes"),
        features=features,
        data_path=str(templates["data_path"]),
        video_path=str(templates["video_path"] or ""),
    )


def read_json(path: str) -> dict[str, Any]:
    """The JSON object in a file of limited size, in any storage."""
    try:
        if _core.scheme_of(path):
            files = _core.StoredFiles([path])
            count = min(files.size(0), _MOST_BYTES + 1)
            data = np.asarray(files.read([(0, 0, count)])[0]).tobytes()
        else:
            with open(path, "rb") as file:
                data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        if isinstance(error, Error) and error.code not in NOT_FOUND:
            raise
        raise DAMAGED.error(
            f"{path} cannot be read: {error.strerror or error}",
            hint="root is the folder that has meta/, data/ and videos/",
        ) from None
    if len(data) > _MOST_BYTES:
        raise DAMAGED.error(f"{path} has more than {_MOST_BYTES:,} bytes")
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise DAMAGED.error(f"{path} is not JSON: {error!s:.200}") from None
    if not isinstance(value, dict):
        raise DAMAGED.error(f"{path} is not a JSON object")
    return value


def _features(given: Any, path: str) -> dict[str, Feature]:
    if not isinstance(given, dict) or not given:
        raise DAMAGED.error(f"{path}: features are missing")
    out = {}
    for name, feature in given.items():
        dtype = feature.get("dtype") if isinstance(feature, dict) else None
        shape = feature.get("shape") if isinstance(feature, dict) else None
        if not isinstance(dtype, str) or not isinstance(shape, list):
            raise DAMAGED.error(f"{path}: the feature {name!r:.80} has no dtype and shape")
        if not all(isinstance(n, int) and 0 < n < 1 << 31 for n in shape) or len(shape) > 5:
            raise DAMAGED.error(f"{path}: the feature {name!r:.80} has the shape {shape!r:.80}")
        is_number_of_record = name in DEFAULTS or name == "subtask_index"
        kinds = ("float",) if name == "timestamp" else ("int", "uint")
        if is_number_of_record and (shape != [1] or not dtype.startswith(kinds)):
            raise DAMAGED.error(
                f"{path}: the feature {name!r} is {dtype:.40} of shape {shape!r:.80}, but must be "
                f"{kinds[0]} of shape [1]"
            )
        out[name] = Feature(dtype, tuple(shape))
    return out


def expanded(template: str, **values: str | int) -> str:
    """A path from its template, in which ``{name}`` and ``{name:03d}`` are replaced; nothing else
    of Python's format syntax is supported. Raises HR0276 if it would leave the dataset's folder."""

    def value_of(found: re.Match[str]) -> str:
        name, width = found.groups()
        if name not in values or (width and not isinstance(values[name], int)):
            raise DAMAGED.error(f"the path {template!r:.200} has the unknown placeholder {name!r}")
        return str(values[name]).zfill(int(width or 0))

    path = _PLACEHOLDER.sub(value_of, template)
    if "{" in path or "}" in path:
        raise DAMAGED.error(f"the path {template!r:.200} has unsupported placeholders")
    if not _core.stays_inside(path):
        raise _OUTSIDE.error(
            f"meta/info.json has the path {template!r:.200}, which leads to {path!r:.200}",
            hint="paths in a LeRobot dataset are relative to its folder",
        )
    return path
