# SPDX-License-Identifier: Apache-2.0
"""Transforms that contain other transforms."""

from __future__ import annotations

from typing import Any

from headrace import transforms as T
from headrace.migrate.translations.registry import (
    Form,
    Made,
    NoOperator,
    native,
    opened,
    translation,
)


@translation("RandomApply")
def random_apply(transform: Any, form: Form) -> Made:
    inner = [native(each, form) for each in opened(list(transform.transforms))]
    parts = [part for part in inner if part]
    ours = [step for part in parts for step in part.step]
    if form.kind != "pil" and any(part.note for part in parts):
        raise NoOperator("it resamples tensors")
    originals = [part.original for part in parts]

    def steadily(value: Any) -> Any:
        for original in originals:
            value = original(value)
        return value

    steady = [step for part in parts for step in part.steady]
    return [T.RandomApply(ours, p=float(transform.p))], steady, steadily
