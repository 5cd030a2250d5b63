# SPDX-License-Identifier: Apache-2.0
"""Reads a written dataset back, and compares it with its source."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from headrace import _core
from headrace.sources import Source
from headrace.sources.arrow_files.columns import pyarrow
from headrace.sources.lerobot import lerobot
from headrace.write.lerobot.dataset import frames
from headrace.write.lerobot.features import features_of
from headrace.write.lerobot.options import video_loss
from headrace.write.verification import DIFFERS

_ROWS_AT_ONCE = 16


def verify_dataset(
    source: Source, target: str, options: Mapping[str, Any], have_done: Callable[[int], None]
) -> None:
    """Raises HR0416 at the first value that differs. Pixels of lossy videos are not compared, only
    that each frame is there at its time, with its size.
    """
    features = features_of(source, options)
    is_lossy = bool(video_loss(source.schema, options))
    rows = _rows(Path(target))
    has_videos = bool(features.cameras) and options["images"] == "video"
    seen = frames(lerobot(target, features=[]), None) if has_videos else None
    for begin, expected in frames(source, None):
        videos = next(seen)[1] if seen else {}
        count = len(next(iter(expected.values())))
        for i in range(count):
            row = next(rows, None)
            if row is None:
                raise DIFFERS.error(
                    f"{target} has {begin + i} records, but the source has {len(source)}"
                )
            for column in features.columns:
                got = row[column.feature]
                _compare(target, begin + i, column.field, expected[column.field][i], got)
            for camera in features.cameras:
                got = videos[camera.feature][i] if has_videos else _decoded(row[camera.feature])
                want = expected[camera.field][i]
                _compare(target, begin + i, camera.field, want, got, is_lossy)
        have_done(begin + count)
    if next(rows, None) is not None:
        raise DIFFERS.error(f"{target} has more records than the source")


def _rows(target: Path) -> Iterator[dict[str, Any]]:
    parquet = pyarrow("pyarrow.parquet")
    for path in sorted(target.glob("data/*/*.parquet")):
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(_ROWS_AT_ONCE):
                yield from batch.to_pylist()


def _decoded(image: Mapping[str, Any]) -> Any:
    return np.asarray(_core.decode_field(image["bytes"], "image"))


def _compare(
    target: str, record: int, field: str, expected: Any, got: Any, only_shapes: bool = False
) -> None:
    left, right = np.asarray(expected), np.asarray(got)
    same = left.shape == right.shape or left.size == right.size == 1
    if same and not only_shapes:
        same = bool(np.array_equal(left.reshape(-1), right.reshape(-1)))
    if not same:
        raise DIFFERS.error(f"{target}: field {field!r} of record {record} differs")
