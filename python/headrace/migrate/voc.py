# SPDX-License-Identifier: Apache-2.0
"""VOCSegmentation as a source of images and masks, as torchvision wraps it for joint transforms."""

from __future__ import annotations

import copy
import os
from typing import Any

from headrace import _core
from headrace.migrate.known_dataset import Dataset, Told, joint_transforms
from headrace.sources import Source


def wrapped(dataset: Any, _: Told) -> Dataset:
    columns = _core.ColumnList()
    columns.add_paths("image", [os.fspath(path) for path in dataset.images])
    columns.add_paths("mask", [os.fspath(path) for path in dataset.masks])
    together = joint_transforms(dataset)
    plain = copy.copy(dataset)
    plain.transforms = None
    return Dataset(
        "",
        Source(columns.source()).with_kinds({"mask": "mask"}),
        ("image", "mask"),
        lambda i: dict(zip(("image", "mask"), plain[i], strict=True)),
        transform=together,
        together=True,
    )
