# SPDX-License-Identifier: Apache-2.0
"""Translations of transforms: one file per topic; importing a file registers its translations."""

from headrace.migrate.translations import (
    choices,
    colors,
    detection,
    dtypes,
    geometry,
    image_and_mask,
    noise,
    own_classes,
    pillow_calls,
    policies,
    structure,
    timm,
    warps,
)

__all__ = [
    "choices",
    "colors",
    "detection",
    "dtypes",
    "geometry",
    "image_and_mask",
    "noise",
    "own_classes",
    "pillow_calls",
    "policies",
    "structure",
    "timm",
    "warps",
]
