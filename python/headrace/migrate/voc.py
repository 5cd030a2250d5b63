# SPDX-License-Identifier: Apache-2.0
"""VOCSegmentation as a source of images and masks: with the user's joint transforms, and as wrapped
by torchvision for its own joint transforms.
"""

from __future__ import annotations

import copy
import os
from typing import Any

from headrace.migrate.known_dataset import Dataset, Told, joint_transforms
from headrace.migrate.translations.image_and_mask import Pair
from headrace.sources.column_list import ColumnList


def alone(dataset: Any, _: Told) -> Dataset:
    """``transforms(image, mask)`` on Pillow images."""
    return _pictures(dataset, Pair(dataset.transforms))


def wrapped(dataset: Any, _: Told) -> Dataset:
    return _pictures(dataset, joint_transforms(dataset))


def _pictures(dataset: Any, together: Any) -> Dataset:
    columns = ColumnList()
    columns.add_paths("image", [os.fspath(path) for path in dataset.images])
    columns.add_paths("mask", [os.fspath(path) for path in dataset.masks])
    plain = copy.copy(dataset)
    plain.transforms = None
    return Dataset(
        "",
        columns.source(evident_kinds=False).with_kinds({"mask": "mask"}),
        ("image", "mask"),
        lambda i: dict(zip(("image", "mask"), plain[i], strict=True)),
        transform=together,
        together=True,
    )
