# SPDX-License-Identifier: Apache-2.0
"""A transform of torchvision as a step.

A transform of ``torchvision.transforms.v2`` gets the record as a dictionary by the fields' names:
images and masks as tv_tensors, clips as Video, (T, C, H, W), boxes as BoundingBoxes with their
format and the image as canvas, the x and y of keypoints as KeyPoints, and the rows that belong to
boxes (labels, areas) as plain tensors, which it leaves unchanged or, like SanitizeBoundingBoxes,
drops with the boxes.
"""

from __future__ import annotations

import sys
from typing import Any

from headrace import global_draws
from headrace.library_steps.adapter import (
    LYING_PIXELS,
    Adapted,
    Adapter,
    Kinds,
    Taken,
    Words,
    canvas_of,
    check_rows,
    check_sizes,
    mates,
    opened,
    refuse,
)

_FORMATS = {
    name: name.upper() for name in ("xyxy", "xywh", "cxcywh", "xywhr", "cxcywhr", "xyxyxyxy")
}
_TV_KINDS = ("image", "video", "mask", "masks", "boxes", "keypoints")
# Classes of torchvision.transforms (v1), where all classes are in one module.
_GEOMETRY_OF_V1 = {
    "CenterCrop",
    "ElasticTransform",
    "FiveCrop",
    "Pad",
    "RandomAffine",
    "RandomCrop",
    "RandomHorizontalFlip",
    "RandomPerspective",
    "RandomResizedCrop",
    "RandomRotation",
    "RandomVerticalFlip",
    "Resize",
    "TenCrop",
}


def _is_v2(transform: Any) -> bool:
    return any(
        base.__module__.startswith("torchvision.transforms.v2") for base in type(transform).__mro__
    )


def _moves(transform: Any) -> bool:
    return any(map(_moves_itself, opened(transform)))


def _moves_itself(transform: Any) -> bool:
    kind, place = type(transform), type(transform).__module__
    if not place.startswith("torchvision.transforms"):
        return False  # a user-defined class: unknown
    named = place.endswith(".transforms") and kind.__name__ in _GEOMETRY_OF_V1
    return named or place.endswith(("._geometry", "._auto_augment", ".autoaugment"))


def _is_joint(transform: Any) -> bool:
    """Whether it changes, or may change, more than colors."""
    if not _is_v2(transform):
        return False
    return _moves(transform) or any(
        type(each).__name__ == "Lambda"  # a user-defined function, called with each of them
        or type(each).__module__.endswith("._meta")
        or type(each).__name__.startswith("Sanitize")
        or not type(each).__module__.startswith("torchvision")
        for each in opened(transform)
    )


def _chosen(transform: Any, seen: Kinds) -> list[str]:
    lying = [f for f in seen if f.kind in _TV_KINDS and _can_follow(f)]
    shown = [f for f in lying if f.kind in ("image", "video")]
    if not _is_joint(transform) or not shown:
        clips = [f.name for f in shown if f.kind == "video"]
        return clips[:1] if clips and len(clips) == len(shown) else ["image"]
    rows = [f for f in lying if not f.is_picture]
    with_rows = {f.name for field in rows for f in mates(field, seen)}
    if any(f.row_group == 0 for f in rows):  # the related fields are unknown
        with_rows |= {f.name for f in seen if f.has_open_rows and f.row_group == 0}
    wanted = {f.name for f in lying} | {
        f.name for f in seen if f.name in with_rows and f.kind not in _TV_KINDS
    }
    return [f.name for f in seen if f.name in wanted]


def _can_follow(field: Taken) -> bool:
    return field.kind != "boxes" or field.box_format in _FORMATS


def _check(transform: Any, fields: Kinds) -> None:
    kinds = [f.kind for f in fields]
    if kinds in (["image"], ["video"], ["tensor"]):
        return
    if not _is_v2(transform):
        raise refuse(transform, fields, "it takes one image")
    for field in fields:
        if field.kind in ("text", "bytes"):
            raise refuse(transform, fields, f'"{field.name}" is not a number')
        if not _can_follow(field):
            raise refuse(
                transform,
                fields,
                f'the format of "{field.name}" is {field.box_format or "unknown"}',
                'hr.open(..., kinds={"boxes": "boxes:xyxy"}) declares it, in pixels',
            )
    if not {"image", "video", "mask", "masks"} & set(kinds):
        raise refuse(
            transform,
            fields,
            "boxes and points have no image to refer to",
            'fields=("image", "boxes")',
        )
    if not {"image", "video"} & set(kinds) and not set(kinds) <= set(_TV_KINDS):
        raise refuse(transform, fields, "without an image, it would treat the first tensor as one")
    _check_format(transform, fields)


def _check_format(transform: Any, fields: Kinds) -> None:
    """Checks that the list ends with the box format that it began with."""
    last = [t for t in opened(transform) if type(t).__name__ == "ConvertBoundingBoxFormat"][-1:]
    said = [str(getattr(t.format, "value", t.format)) for t in last]
    for field in fields:
        if field.kind == "boxes" and said not in ([], [_FORMATS[field.box_format]]):
            raise refuse(
                transform,
                fields,
                f'"{field.name}" is {field.box_format} and would be returned as {said[0].lower()}',
                "headrace.transforms.ConvertBoundingBoxFormat changes the field's format",
            )


def _with_rows(fields: Kinds) -> str:
    """A hint on dropping related rows together: torchvision finds masks, but labels only if
    named."""
    named = [f.name for f in fields if f.kind not in _TV_KINDS and f.has_open_rows]
    getter = ", ".join(f"record[{name!r}]" for name in named)
    return (
        f"SanitizeBoundingBoxes(labels_getter=lambda record: ({getter},)) drops rows of the fields "
        "that it returns; headrace.transforms.SanitizeBoundingBoxes those of the whole row group"
    )


def _adapted(transform: Any) -> Adapted:
    """torchvision draws from torch's global generator, which is seeded for the record, then
    restored."""

    def call(values: list[Any], fields: Kinds, words: Words) -> list[Any]:
        torch = sys.modules["torch"]
        check_sizes(fields, values)
        given = [torch.from_numpy(value) for value in values]
        if _is_v2(transform):
            canvas = canvas_of(fields, given)
            alone = len(given) == 1  # a single tensor counts as an image
            given = [
                _wrapped(f._replace(kind="image") if alone and f.kind == "tensor" else f, v, canvas)
                for f, v in zip(fields, given, strict=True)
            ]
        with global_draws.turn():
            state = torch.random.get_rng_state()
            torch.random.default_generator.manual_seed(words[0] | words[1] << 32)
            try:
                if len(given) == 1:
                    return [transform(given[0])]
                record = {f.name: value for f, value in zip(fields, given, strict=True)}
                returned = transform(record)
            finally:
                torch.random.set_rng_state(state)
        out = [returned[f.name] for f in fields]
        _check_together(fields, given, out)
        check_rows(fields, values, out, _with_rows(fields))
        parts = zip(fields, values, out, strict=True)
        return [_unwrapped(f, before, after) for f, before, after in parts]

    return call


def _wrapped(field: Taken, value: Any, canvas: tuple[int, int]) -> Any:
    tv_tensors = sys.modules["torchvision.tv_tensors"]
    if field.kind == "image":
        return tv_tensors.Image(value)
    if field.kind == "video":
        return tv_tensors.Video(value)
    if field.kind in ("mask", "masks"):
        return tv_tensors.Mask(value)
    if field.kind == "boxes":
        shaped = value if value.ndim > 1 else value[None]
        how = {"clamping_mode": None if field.clamping == "none" else field.clamping}
        return tv_tensors.BoundingBoxes(
            shaped, format=_FORMATS[field.box_format], canvas_size=canvas, **how
        )
    if field.kind == "keypoints":
        return tv_tensors.KeyPoints(value[..., :2].contiguous(), canvas_size=canvas)
    return value


def _check_together(fields: Kinds, given: list[Any], out: list[Any]) -> None:
    """Raises ValueError if the box format changed, or if fields now refer to images of different
    sizes. Fields without rows are not checked: torchvision rotates the image but not the canvas of
    empty boxes.
    """
    canvas, now = canvas_of(fields, given), canvas_of(fields, out)
    for field, before, after in zip(fields, given, out, strict=True):
        if field.kind == "boxes" and hasattr(after, "canvas_size"):
            if after.format != before.format:
                raise ValueError(
                    f'"{field.name}" was returned as {after.format.value}, but is '
                    f"{before.format.value}: end with "
                    f"v2.ConvertBoundingBoxFormat({before.format.value!r})"
                )
            lies, before_it = tuple(after.canvas_size), canvas
        elif field.kind in LYING_PIXELS and getattr(after, "ndim", 0) > 2:
            lies, before_it = tuple(after.shape[-2:]), tuple(before.shape[-2:])
        else:
            continue
        if before_it == canvas and lies != now and after.numel() > 0:
            raise ValueError(
                f'"{field.name}" was returned for an image of {lies}, but the image is {now}: '
                "only one of them was transformed"
            )


def _unwrapped(field: Taken, before: Any, after: Any) -> Any:
    torch = sys.modules["torch"]
    if field.kind == "boxes" and before.ndim == 1 and after.ndim == 2 and len(after) == 1:
        return after[0]
    if field.kind == "keypoints" and before.shape[-1] > 2:
        if after.shape[:-1] != before.shape[:-1]:
            raise ValueError(
                f'"{field.name}" was returned as {tuple(after.shape)}, so the values of points '
                f"other than x and y cannot be matched with {before.shape}: keep all points"
            )
        rest = torch.from_numpy(before[..., 2:]).to(after.dtype)
        return torch.cat([after.as_subclass(torch.Tensor), rest], -1)
    return after


ADAPTER = Adapter(_adapted, _moves, _chosen, _check)
