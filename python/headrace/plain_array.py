# SPDX-License-Identifier: Apache-2.0
"""Converts arrays and tensors of any library to NumPy arrays, without loss.

>>> import numpy as np
>>> plain_array(np.arange(3, dtype=">i4")).dtype.isnative
True
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np


def plain_array(value: Any, **options: Any) -> np.ndarray[Any, Any]:
    """``value`` as an array in the machine's byte order; options: of ``numpy.asarray``.

    Raises TypeError or ValueError, with a suggestion, if NumPy has no such dtype (bfloat16), would
    drop the mask of a masked array, or cannot make an array of it.
    """
    if hasattr(value, "detach"):  # a tensor of torch
        if str(value.dtype) == "torch.bfloat16":
            raise TypeError("NumPy has no bfloat16: use the tensor's .float()")
        value = value.detach().cpu().numpy()
    if _is_of_masked_class(value):
        if is_masked(value):
            hidden = int(np.ma.getmaskarray(value).sum())
            raise ValueError(
                f"{hidden:,} of {value.size:,} values are masked, and would be delivered: "
                "replace them with .filled(value)"
            )
        value = value.data
    array = np.asarray(value, **options)
    if array.dtype.isnative:
        return array
    return array.astype(array.dtype.newbyteorder("="))


def is_masked(value: Any) -> bool:
    """Whether it is a NumPy masked array with a masked value."""
    return _is_of_masked_class(value) and bool(np.ma.is_masked(value))


def _is_of_masked_class(value: Any) -> bool:
    """Accessing np.ma would import it, in 15 ms; if it is not imported, there are no masked
    arrays."""
    return "numpy.ma" in sys.modules and isinstance(value, np.ma.MaskedArray)
