# SPDX-License-Identifier: Apache-2.0
"""Headrace: a dataset on disk becomes training batches, on native threads.

import headrace as hr
train = hr.Loader("train/", hr.presets.imagenet_train(224), batch_size=256, shuffle=True)
for images, labels in train.torch("cuda"): ...
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace import formats, presets, sampling, transforms
from headrace._core import Array, Field, __version__
from headrace.convert import convert
from headrace.delivery.prefetch import prefetch
from headrace.delivery.resident import resident
from headrace.errors import (
    ConfigError,
    DataError,
    Error,
    ResourceLimitError,
    StorageError,
    UnsupportedError,
    Warning,
)
from headrace.formats import *  # noqa: F403  (one function for each format)
from headrace.index import index
from headrace.loader import Loader
from headrace.migrate import from_dataloader
from headrace.pack import pack, unpack
from headrace.presets import IMAGENET_MEAN, IMAGENET_STD
from headrace.sources import Source, open, records, split, subset
from headrace.sources.combined import concat, join, kfold, mix

if TYPE_CHECKING:
    from headrace.doctor.call import doctor
    from headrace.measure.regions import region
    from headrace.watch.call import watch

__all__ = [
    *formats.__all__,
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
    "concat",
    "convert",
    "doctor",
    "formats",
    "from_dataloader",
    "index",
    "join",
    "kfold",
    "mix",
    "open",
    "pack",
    "prefetch",
    "presets",
    "records",
    "region",
    "resident",
    "sampling",
    "split",
    "subset",
    "transforms",
    "unpack",
    "watch",
]


def __getattr__(name: str) -> Any:
    """The doctor and the watch are imported when somebody calls them."""
    if name in ("doctor", "watch"):
        import importlib

        return importlib.import_module(f"headrace.{name}")
    if name == "region":
        from headrace.measure.regions import region

        globals()["region"] = region
        return region
    raise AttributeError(f"module 'headrace' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names, also those that are imported on first use: prompts complete them."""
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
