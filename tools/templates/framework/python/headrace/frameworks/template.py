# SPDX-License-Identifier: Apache-2.0
"""Batches as Python lists: a framework that needs no installation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from headrace import _core


def make_hand_over() -> Callable[[_core.Array], Any]:
    """``array -> list``; always a copy."""
    return lambda array: np.asarray(array).tolist()
