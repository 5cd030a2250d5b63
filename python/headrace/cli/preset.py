# SPDX-License-Identifier: Apache-2.0
"""Pipelines by name, for commands that are given a dataset but no code."""

from __future__ import annotations

from typing import Any

PRESETS = ("imagenet-train", "imagenet-eval", "decode")


def loader_of(source: Any, preset: str, size: int, dtype: str = "float32", **options: Any) -> Any:
    """A loader that does to each record what one of PRESETS says; one for training shuffles."""
    import headrace

    transforms: list[Any] = []
    if preset == "imagenet-train":
        transforms = headrace.presets.imagenet_train(size, dtype=dtype)
        options["shuffle"] = True
    elif preset == "imagenet-eval":
        transforms = headrace.presets.imagenet_eval(size, dtype=dtype)
    else:
        options["ragged"] = "list"
    names = [field.name for field in source.schema if preset == "decode" or _goes_along(field)]
    if len(names) < len(source.schema):
        options.setdefault("fields", names)
    return headrace.Loader(source, transforms, **options)


def _goes_along(field: Any) -> bool:
    """Whether batches of resized pictures can have it: no boxes, nothing of differing shape."""
    if field.is_spatial and not field.is_picture:
        return False
    return field.is_picture or -1 not in field.shape
