# SPDX-License-Identifier: Apache-2.0
"""Headrace: turns a dataset on disk into training batches, on native threads.

import headrace as hr
train = hr.Loader("train/", hr.presets.imagenet_train(224), batch_size=256, shuffle=True)
for images, labels in train.torch("cuda"): ...
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

try:
    from headrace._core import Array, Field, __version__
except ImportError as error:
    if "cannot open shared object file" not in str(error):
        raise
    raise ImportError(
        f"{error}. This build of Headrace uses the codec libraries of the machine that made it. "
        "Install them (docs/start/installing.md lists Debian's packages), or install a wheel that "
        "./dev wheels made, which contains them"
    ) from error

from headrace import formats, presets, remote, sampling, transforms
from headrace.convert import convert
from headrace.decode import decode, imread
from headrace.environment import warn_of_unread
from headrace.errors import (
    ConfigError,
    DataError,
    Error,
    ResourceLimitError,
    StorageError,
    UnsupportedError,
    Warning,
)
from headrace.fail_together import fail_together
from headrace.formats import *  # noqa: F403  (one function for each format)
from headrace.index import index
from headrace.loader import Loader
from headrace.pack import pack, unpack
from headrace.presets import IMAGENET_MEAN, IMAGENET_STD
from headrace.sources import Source, open, records, split, subset
from headrace.sources.combined import concat, join, kfold, mix
from headrace.sources.packed import packed
from headrace.sources.simulated import simulated

if TYPE_CHECKING:
    from headrace import jobs
    from headrace.annotations import coco_from_voc, coco_from_yolo
    from headrace.compose import Compose
    from headrace.delivery.prefetch import prefetch
    from headrace.delivery.resident import resident
    from headrace.insight import doctor, region, watch
    from headrace.migrate import from_dataloader
    from headrace.plugins import include_dir, load_plugin
    from headrace.sources.lerobot import lerobot, lerobot_stats
    from headrace.sources.stream import stream
    from headrace.token_writer import write_tokens
    from headrace.trainers.grain import from_grain as from_grain
    from headrace.trainers.grain import grain as grain

__all__ = [
    *formats.__all__,
    "IMAGENET_MEAN",
    "IMAGENET_STD",
    "Array",
    "Compose",
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
    "coco_from_voc",
    "coco_from_yolo",
    "concat",
    "convert",
    "decode",
    "doctor",
    "fail_together",
    "formats",
    "from_dataloader",
    "imread",
    "include_dir",
    "index",
    "jobs",
    "join",
    "kfold",
    "lerobot",
    "lerobot_stats",
    "load_plugin",
    "mix",
    "open",
    "pack",
    "packed",
    "prefetch",
    "presets",
    "records",
    "region",
    "remote",
    "resident",
    "sampling",
    "simulated",
    "split",
    "stream",
    "subset",
    "transforms",
    "unpack",
    "watch",
    "write_tokens",
]


warn_of_unread()
del warn_of_unread


_LATE = {
    "Compose": "headrace.compose",
    "coco_from_voc": "headrace.annotations",
    "coco_from_yolo": "headrace.annotations",
    "doctor": "headrace.insight",
    "from_dataloader": "headrace.migrate",
    "from_grain": "headrace.trainers.grain",
    "grain": "headrace.trainers.grain",
    "include_dir": "headrace.plugins",
    "load_plugin": "headrace.plugins",
    "lerobot": "headrace.sources.lerobot",
    "lerobot_stats": "headrace.sources.lerobot",
    "prefetch": "headrace.delivery.prefetch",
    "region": "headrace.insight",
    "resident": "headrace.delivery.resident",
    "stream": "headrace.sources.stream",
    "watch": "headrace.insight",
    "write_tokens": "headrace.token_writer",
}
_LATE_MODULES = ("jobs", "ray", "trainers")  # module attributes once imported


def __getattr__(name: str) -> Any:
    """Imports an attribute at its first use if it needs many modules."""
    from importlib import import_module

    if name in _LATE_MODULES:
        return import_module(f"headrace.{name}")
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value = getattr(import_module(_LATE[name]), name)
    return value


def __dir__() -> list[str]:
    """The public names, without modules: what an interactive prompt completes."""
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
