# SPDX-License-Identifier: Apache-2.0
"""A sample record."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

Pixels = np.ndarray[Any, Any]


@dataclasses.dataclass(frozen=True)
class Sample:
    """A record. ``pixels``: uint8 (1|3, H, W), at most 144 on a side; None without an image."""

    key: str
    ms: float  # time to make the record on one thread
    slow: bool  # one of the slowest
    pixels: Pixels | None = dataclasses.field(default=None, compare=False)
