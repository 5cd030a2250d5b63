# SPDX-License-Identifier: Apache-2.0
"""NumPy arrays that share a batch's memory and may be written to."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace import _core
from headrace.errors import declare

_NO_BFLOAT16 = declare(
    "HR0157",
    "unsupported",
    "NumPy has no bfloat16",
    "NumPy has no dtype for bfloat16, so a batch of it cannot be a NumPy array. torch has it: use "
    ".torch(). Or end the transforms with ToDtype('float32') or ToDtype('float16').",
)


def hand_over(array: _core.Array) -> np.ndarray[Any, Any]:
    """The array, without a copy."""
    if array.dtype == "bfloat16":
        raise _NO_BFLOAT16.error(
            "this field is bfloat16", hint="use .torch(), or ToDtype('float32')"
        )
    return np.asarray(array)
