# SPDX-License-Identifier: Apache-2.0
"""A LeRobot dataset, version 3.0: Parquet tables, and MP4 files through the library ``av``."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

from headrace.sources import Source
from headrace.write import Schema, WriterRecord
from headrace.write.lerobot.options import OPTIONS, cameras, video_loss
from headrace.write.lerobot.places import OWN_FILES


def _check(schema: Schema) -> None:
    importlib.import_module("pyarrow")


def _written(
    src: Source,
    target: str,
    shards: int,
    threads: int | None,
    overwrite: bool,
    have_done: Callable[[int], None],
    options: Mapping[str, Any],
) -> dict[str, Any]:
    from headrace.write.lerobot.dataset import write_dataset

    return write_dataset(src, target, threads, overwrite, have_done, options)


def _verified(
    src: Source,
    target: str,
    options: Mapping[str, Any],
    have_done: Callable[[int], None],
) -> None:
    from headrace.write.lerobot.verification import verify_dataset

    verify_dataset(src, target, options, have_done)


def _loss(src: Source, options: Mapping[str, Any]) -> str:
    from headrace.write.lerobot.images import reduction

    schema = src.schema
    losses = [reduction(src, field) for field in cameras(schema, options)]
    return "; ".join(filter(None, [video_loss(schema, options), *losses]))


WRITER = WriterRecord(
    holds="a [LeRobot](../guide/data/lerobot.md#writing) dataset, version 3.0, through the "
    "packages `pyarrow` and `av`; episodes of frames",
    format="",
    opener="lerobot",
    check=_check,
    whole=_written,
    resumes=False,
    verify=_verified,
    options=OPTIONS,
    loss=_loss,
    own_files=OWN_FILES,
)
