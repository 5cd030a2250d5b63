# SPDX-License-Identifier: Apache-2.0
"""``meta/stats.json``: minimum, maximum, mean, standard deviation of each feature."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from headrace.sources.lerobot.info import DAMAGED, read_info, read_json


def lerobot_stats(
    root: str | os.PathLike[str],
) -> dict[str, dict[str, np.ndarray[Any, Any]]]:
    """The statistics of a LeRobot dataset from its ``meta/stats.json``, by feature and name
    ("mean", "std", "min", "max", "count", "q01", ...), float64 arrays, or int64 for counts.

    root: the folder of the dataset. Those of cameras have the shape (3, 1, 1), for images from 0 to
    1. Raises DataError HR0164 if the file is missing or invalid.
    """
    info = read_info(os.fspath(root))
    path = info.file("meta", "stats.json")
    out: dict[str, dict[str, np.ndarray[Any, Any]]] = {}
    for feature, stats in read_json(path).items():
        if not isinstance(stats, dict):
            raise DAMAGED.error(f"{path}: {feature!r:.80} has no statistics")
        out[feature] = {
            name: _array(value, f"{path}: {name} of {feature}") for name, value in stats.items()
        }
    return out


def _array(value: Any, where: str) -> np.ndarray[Any, Any]:
    try:
        array = np.asarray(value)
    except ValueError:
        array = np.empty(0, object)
    if array.dtype.kind not in "iufb":
        raise DAMAGED.error(f"{where:.200} is not an array of numbers")
    return array
