# SPDX-License-Identifier: Apache-2.0
"""Names of element types."""

from __future__ import annotations

from typing import Any

import numpy as np


def dtype_name(dtype: Any) -> str:
    """ "float32" from "float32", "torch.float32", numpy.float32, torch.float32, ..."""
    if isinstance(dtype, str):
        return dtype.removeprefix("torch.")
    if isinstance(dtype, (np.dtype, type)):
        return str(np.dtype(dtype).name)
    return str(dtype).rpartition(".")[2]  # torch prints "torch.float32"
