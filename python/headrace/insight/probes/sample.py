# SPDX-License-Identifier: Apache-2.0
"""A record to look at."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

Pixels = np.ndarray[Any, Any]


@dataclasses.dataclass(frozen=True)
class Sample:
    """A record. ``pixels``: uint8 (1|3, H, W), at most 144 a side; None where it has none."""

    key: str
    ms: float  # that it took to make on one thread
    slow: bool  # one of those that took longest
    pixels: Pixels | None = dataclasses.field(default=None, compare=False)
