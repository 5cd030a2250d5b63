# SPDX-License-Identifier: Apache-2.0
"""Short texts that are equal if two batches have the same shapes, dtypes and bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np


def digest(batch: Iterable[Any]) -> str:
    """The digest of a batch's fields, whose records may be lists."""
    made = hashlib.sha256()
    for value in batch:
        if isinstance(value, list):
            for item in value:
                made.update(item.encode() if isinstance(item, str) else bytes(item))
        else:
            values = np.asarray(value)
            made.update(repr((values.dtype, values.shape)).encode())
            made.update(np.ascontiguousarray(values).tobytes())
    return made.hexdigest()


def hashes(loader: Any, epochs: int = 3) -> list[str]:
    """A digest per batch of this many epochs; closes the loader."""
    with loader:
        return [digest(batch) for _ in range(epochs) for batch in loader]


def epoch_hash(loader: Iterable[Any]) -> str:
    """One digest for the batches of an epoch together."""
    return hashlib.sha256("".join(digest(batch) for batch in loader).encode()).hexdigest()
