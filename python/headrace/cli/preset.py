# SPDX-License-Identifier: Apache-2.0
"""Named pipelines, for commands that get a dataset but no code."""

from __future__ import annotations

from typing import Any

from headrace.cli import output

PRESETS = ("imagenet-train", "imagenet-eval", "log-mel", "decode")
ABOUT = (
    "imagenet-train: random resized crop and flip (videos: of 16-frame clips); imagenet-eval: "
    "resize and center crop (likewise); log-mel: log-mel spectrogram of a random audio segment; "
    "decode: whole images, audio clips, or frames of clips"
)
DEFAULT = "Default: log-mel for audio clips, imagenet-train for everything else."


def default_for(source: Any) -> str:
    """The usual preset for the fields of a source."""
    kinds = {field.kind for field in source.schema}
    return "log-mel" if "audio" in kinds and "image" not in kinds else PRESETS[0]


def loader_of(source: Any, preset: str, size: int, dtype: str = "float32", **options: Any) -> Any:
    """A loader with the transforms of one of PRESETS; training presets shuffle. Videos are read as
    clips of 16 frames, taking every fourth frame.
    """
    import headrace

    transforms: list[Any] = []
    presets = headrace.presets
    videos = any(field.kind == "video" for field in source.schema)
    if preset == "imagenet-train":
        recipe = presets.video_train if videos else presets.imagenet_train
        transforms = recipe(size, dtype=dtype)
        options["shuffle"] = True
    elif preset == "imagenet-eval":
        recipe = presets.video_eval if videos else presets.imagenet_eval
        transforms = recipe(size, dtype=dtype)
    elif preset == "log-mel":
        if dtype != "float32":
            output.fail(f"headrace: --preset log-mel gives float32, not {dtype}", output.USAGE)
        transforms = headrace.presets.log_mel()
        options["shuffle"] = True
    else:
        transforms = [headrace.transforms.CenterVideoClip(16, stride=4)] if videos else []
        options["ragged"] = "list"
    heard = preset == "log-mel"
    names = [
        field.name
        for field in source.schema
        if preset == "decode" or (heard and field.kind == "audio") or _goes_along(field)
    ]
    if len(names) < len(source.schema):
        options.setdefault("fields", names)
    return headrace.Loader(source, transforms, **options)


def _goes_along(field: Any) -> bool:
    """Whether this field can be batched after a resize: not boxes, and not of varying shape."""
    seen = field.is_picture or field.kind == "video"
    if field.is_spatial and not seen:
        return False
    return seen or -1 not in field.shape
