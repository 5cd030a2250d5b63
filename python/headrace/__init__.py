# SPDX-License-Identifier: Apache-2.0
"""Headrace: a dataset on disk becomes training batches, on native threads.

import headrace as hr
train = hr.Loader("train/", hr.presets.imagenet_train(224), batch_size=256, shuffle=True)
for images, labels in train.torch("cuda"): ...
"""

from headrace import presets, sampling, transforms
from headrace._core import Array, Field, __version__
from headrace.errors import (
    ConfigError,
    DataError,
    Error,
    ResourceLimitError,
    StorageError,
    UnsupportedError,
    Warning,
)
from headrace.index import index
from headrace.loader import Loader
from headrace.pack import pack, unpack
from headrace.presets import IMAGENET_MEAN, IMAGENET_STD
from headrace.sources import Source, folder, open, records, split, subset

__all__ = [
    "IMAGENET_MEAN",
    "IMAGENET_STD",
    "Array",
    "ConfigError",
    "DataError",
    "Error",
    "Field",
    "Loader",
    "ResourceLimitError",
    "Source",
    "StorageError",
    "UnsupportedError",
    "Warning",
    "__version__",
    "folder",
    "index",
    "open",
    "pack",
    "presets",
    "records",
    "sampling",
    "split",
    "subset",
    "transforms",
    "unpack",
]
