# SPDX-License-Identifier: Apache-2.0
"""Noise, and JPEG artifacts."""

from __future__ import annotations

import copy
from typing import Any

from headrace import transforms as T
from headrace.migrate.translations.registry import Form, Made, NoOperator, translation


@translation("GaussianNoise")
def gaussian_noise(transform: Any, form: Form) -> Made:
    if form.kind == "pil":
        raise NoOperator("torchvision does not add noise to Pillow images")
    if form.dtype not in ("uint8", "float32"):
        raise NoOperator("Headrace adds noise to uint8 and float32")
    ours = T.GaussianNoise(float(transform.mean), float(transform.sigma), bool(transform.clip))
    return [ours], [], lambda value: value  # without randomness, it does nothing


@translation("JPEG")
def jpeg(transform: Any, form: Form) -> Made:
    low, high = (int(quality) for quality in transform.quality)
    middle = (low + high) // 2
    fixed = copy.copy(transform)
    fixed.quality = [middle, middle]
    return [T.JPEG([low, high])], [T.JPEG(middle)], fixed
