# SPDX-License-Identifier: Apache-2.0
"""Records, devices and the bytes of a batch, for tests of batches that a device finishes."""

from __future__ import annotations

from typing import Any

import numpy as np

import headrace as hr
from headrace import _core
from headrace import transforms as T

RECORDS, BATCH, SIZE = 50, 8, 64
MEAN, STD = [0.48, 0.46, 0.41], [0.23, 0.22, 0.25]


def devices() -> list[Any]:
    return [
        _core.open_device("cpu"),
        _core.simulated_device(seed=1),
        _core.simulated_device(seed=2),
    ]


def records(channels: int = 3) -> list[Any]:
    rng = np.random.default_rng(0)
    return [
        (rng.integers(0, 256, (channels, 80, 90), dtype=np.uint8), number)
        for number in range(RECORDS)
    ]


def loader(transforms: list[Any], source: Any = None, **options: Any) -> Any:
    given = {"batch_size": BATCH, "shuffle": True, "seed": 3, **options}
    return hr.Loader(records() if source is None else source, transforms, **given)


def train(dtype: str = "float32", *more: Any) -> list[Any]:
    return [
        T.RandomResizedCrop(SIZE),
        T.RandomHorizontalFlip(),
        T.ToDtype(dtype, scale=True),
        T.Normalize(MEAN, STD),
        *more,
    ]


def fields_of(batch: Any) -> list[Any]:
    """Shape, dtype, NumPy strides and bytes of each field; for lists, their values."""
    out = []
    for value in batch:
        if isinstance(value, _core.Array):
            values = np.asarray(value.bits())
            axes = tuple(np.argsort([-stride for stride in values.strides], kind="stable"))
            out.append((value.dtype, values.shape, axes, values.tobytes()))
        else:
            out.append([np.asarray(v).tobytes() if hasattr(v, "shape") else v for v in value])
    return out


def epoch(view: Any) -> list[Any]:
    return [fields_of(batch) for batch in view]


def copied(view: Any) -> dict[str, Any]:
    [counted] = view.stats()["devices"].values()
    return counted
