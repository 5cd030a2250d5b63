# SPDX-License-Identifier: Apache-2.0
"""Python transforms that actors find by this module's name."""

from __future__ import annotations

import time
from typing import Any

import numpy as np


def brighter(image: Any, rng: Any) -> Any:
    return image // 2 + np.uint8(rng.integers(0, 100))


def slowly(image: Any, rng: Any) -> Any:
    """Takes 4 ms without using a core, like work on other machines, which a test on one machine
    does not have."""
    time.sleep(0.004)
    return brighter(image, rng)
