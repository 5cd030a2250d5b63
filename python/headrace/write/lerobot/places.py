# SPDX-License-Identifier: Apache-2.0
"""The paths in a LeRobot dataset.

>>> import tempfile
>>> root = Path(tempfile.mkdtemp())
>>> places = Places(root, 2, 100, 200)
>>> for _ in range(3):
...     print(places.next(DATA_PATH).relative_to(root))
data/chunk-000/file-000.parquet
data/chunk-000/file-001.parquet
data/chunk-001/file-000.parquet
>>> print(places.next(VIDEO_PATH, "wrist").relative_to(root))
videos/wrist/chunk-000/file-000.mp4
"""

from __future__ import annotations

import re
from pathlib import Path

DATA_PATH = "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
VIDEO_PATH = "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4"
EPISODES_PATH = "meta/episodes/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
SCRATCH = "encoding"
# Everything that a conversion writes.
OWN_FILES = re.compile(
    r"meta/(info|stats)\.json|meta/tasks\.parquet|encoding/[^/]+\.mp4"
    r"|(meta/episodes|data)/chunk-\d{3,}/file-\d{3,}\.parquet"
    r"|videos/[^/]+/chunk-\d{3,}/file-\d{3,}\.mp4"
)


class Places:
    """Numbers the files of the tables and of each camera, a fixed number per folder."""

    def __init__(self, root: Path, per_folder: int, data_mib: int, video_mib: int) -> None:
        self.root = root
        self.per_folder = per_folder
        self.data_bytes, self.video_bytes = data_mib << 20, video_mib << 20
        self._files: dict[tuple[str, str], int] = {}

    @property
    def scratch(self) -> Path:
        """The folder of unfinished files."""
        return self.root / SCRATCH

    def current(self, template: str, camera: str = "") -> tuple[int, int]:
        """Numbers of the folder and the file in it."""
        return divmod(self._files[template, camera], self.per_folder)

    def next(self, template: str, camera: str = "") -> Path:
        """The path of the next file, whose folder exists."""
        self._files[template, camera] = self._files.get((template, camera), -1) + 1
        chunk, file = self.current(template, camera)
        name = template.format(video_key=camera, chunk_index=chunk, file_index=file)
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path
