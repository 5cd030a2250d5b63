# SPDX-License-Identifier: Apache-2.0
"""What a pixel's number is: dtypes, ranges, and classes that only say what a value is."""

from __future__ import annotations

from typing import Any

from headrace import transforms as T
from headrace.dtypes import dtype_name
from headrace.migrate.translations.arguments import numbers_of
from headrace.migrate.translations.registry import Form, Made, NoOperator, nothing, translation


@translation("Normalize")
def normalize(transform: Any, form: Form) -> Made:
    ours = T.Normalize(numbers_of(transform.mean), numbers_of(transform.std))
    return [ours], [ours], transform


@translation("ToTensor")
def to_tensor(transform: Any, form: Form) -> Made:
    ours = [T.ToDtype("float32", scale=True)] if form.dtype == "uint8" else []
    return ours, ours, transform


@translation("ToDtype", "ConvertImageDtype")
def to_dtype(transform: Any, form: Form) -> Made:
    dtype = transform.dtype
    if isinstance(dtype, dict):
        raise NoOperator("its dtype differs by type")
    scale = getattr(transform, "scale", True)  # ConvertImageDtype always scales
    ours = T.ToDtype(dtype_name(dtype), scale=scale)
    return [ours], [ours], transform


# Pictures are (C, H, W) arrays of uint8 from the start.
nothing("ToImage", "PILToTensor", "ToPureTensor", "Identity")
