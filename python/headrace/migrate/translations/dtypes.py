# SPDX-License-Identifier: Apache-2.0
"""Pixel types: dtypes, value ranges, and classes that only mark a value's type."""

from __future__ import annotations

import sys
from typing import Any

from headrace import transforms as T
from headrace.dtypes import dtype_name
from headrace.loader.form import Cast
from headrace.migrate.translations.arguments import numbers_of
from headrace.migrate.translations.registry import (
    Form,
    Made,
    NoOperator,
    is_mask,
    nothing,
    translation,
)


@translation("Normalize")
def normalize(transform: Any, form: Form) -> Made:
    ours = T.Normalize(numbers_of(transform.mean), numbers_of(transform.std))
    return [ours], [ours], transform


@translation("ToTensor")
def to_tensor(transform: Any, form: Form) -> Made:
    ours = [to_float()] if form.dtype == "uint8" else []
    return ours, ours, transform


def to_float() -> Any:
    """Divides by 255, in torch's default dtype, which is global to the process."""
    default = sys.modules["torch"].get_default_dtype()
    if dtype_name(default) != "float32":
        raise NoOperator(f"torch.get_default_dtype() is {default}")
    return T.ToDtype("float32", scale=True)


@translation("ToDtype", "ConvertImageDtype")
def to_dtype(transform: Any, form: Form) -> Made:
    dtype = transform.dtype
    if isinstance(dtype, dict):
        return _by_type(transform, form)
    scale = getattr(transform, "scale", True)  # ConvertImageDtype always scales
    ours = T.ToDtype(dtype_name(dtype), scale=scale)
    return [ours], [ours], transform


def _by_type(transform: Any, form: Form) -> Made:
    """One dtype for images and another for masks, as in torchvision's segmentation reference;
    "others" applies to all types that are not listed."""
    probe = form.probes[0] if isinstance(form.probes[0], dict) else {"image": form.probes[0]}
    ours = []
    for name, value in probe.items():
        if not hasattr(value, "detach"):
            continue
        if not {type(value), "others"} & set(transform.dtype):
            raise NoOperator(f"its dtype does not cover {type(value).__name__}")
        wanted = transform.dtype.get(type(value), transform.dtype.get("others"))
        if wanted is None or wanted == value.dtype:
            continue
        if name == "image":
            ours.append(T.ToDtype(dtype_name(wanted), scale=transform.scale))
        elif is_mask(value):
            form.casts[name] = Cast(dtype_name(wanted))
        else:
            raise NoOperator(f"it changes the dtype of {name}")
    return ours, ours, transform


# Images are uint8 (C, H, W) arrays from the start.
nothing("ToImage", "PILToTensor", "ToPureTensor", "Identity")
