# SPDX-License-Identifier: Apache-2.0
"""Names of element types."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from headrace import _core


def dtype_name(dtype: Any) -> str:
    """ "float32" from "float32", "torch.float32", numpy.float32, torch.float32, ..."""
    if isinstance(dtype, str):
        return dtype.removeprefix("torch.")
    if isinstance(dtype, (np.dtype, type)):
        return str(np.dtype(dtype).name)
    return str(dtype).rpartition(".")[2]  # torch prints "torch.float32"


@functools.cache
def is_known(dtype: np.dtype[Any]) -> bool:
    """Whether the engine has this NumPy dtype."""
    return dtype.name in _core.DType.__members__
