# SPDX-License-Identifier: Apache-2.0
"""Pipelines by name, for commands that are given a dataset but no code."""

from __future__ import annotations

from typing import Any

PRESETS = ("imagenet-train", "imagenet-eval", "decode")
ON_ERROR = ("raise", "skip", "substitute")
ON_ERROR_HELP = (
    "What a bad record does: ends it, is left out of its batch, or is replaced by another one, and "
    "counted."
)


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
    return headrace.Loader(source, transforms, **options)
