# SPDX-License-Identifier: Apache-2.0
"""Common recipes, as lists of transforms that can be changed and extended.

>>> import headrace as hr
>>> [step.name for step in hr.presets.imagenet_eval(224)][:2]
['Resize', 'CenterCrop']
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from headrace import transforms as T
from headrace.dtypes import dtype_name

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


_Given = ParamSpec("_Given")
_Steps = TypeVar("_Steps")


def _said_by_name(preset: Callable[_Given, _Steps]) -> Callable[_Given, _Steps]:
    """Raises a TypeError that says what was probably meant if options are passed by position."""
    code = preset.__code__
    placed = code.co_argcount
    named = code.co_varnames[placed : placed + code.co_kwonlyargcount]

    @functools.wraps(preset)
    def checked(*given: _Given.args, **by_name: _Given.kwargs) -> _Steps:
        more = given[placed:]
        if more:
            first = ", ".join(map(repr, given[:placed]))
            meant = ", ".join(f"{n}={v!r}" for n, v in zip(named, more, strict=False))
            raise TypeError(
                f"{preset.__name__}({first}, {', '.join(map(repr, more))}): options must be passed "
                f"by name: {preset.__name__}({first}, {meant})"
            )
        return preset(*given, **by_name)

    return checked


@_said_by_name
def normalized(
    dtype: Any = "float32",
    mean: tuple[float, ...] = IMAGENET_MEAN,
    std: tuple[float, ...] = IMAGENET_STD,
) -> list[T.Transform]:
    """Converts uint8 pixels to normalized ones. "uint8" leaves them unchanged; other dtypes are
    rounded from float32.
    """
    name = dtype_name(dtype)
    if name == "uint8":
        return []
    steps = [T.ToDtype("float32", scale=True), T.Normalize(mean, std)]
    if name != "float32":
        steps.append(T.ToDtype(name))
    return steps


@_said_by_name
def imagenet_train(
    size: int = 224, *, dtype: Any = "float32", interpolation: Any = "bilinear"
) -> list[T.Transform]:
    """RandomResizedCrop, flip, normalize: the common training recipe."""
    return [
        T.RandomResizedCrop(size, interpolation=interpolation),
        T.RandomHorizontalFlip(),
        *normalized(dtype),
    ]


@_said_by_name
def imagenet_eval(
    size: int = 224,
    *,
    resize: int | None = None,
    dtype: Any = "float32",
    interpolation: Any = "bilinear",
) -> list[T.Transform]:
    """Resize the shorter side, crop the center, normalize. resize: default: size * 256 / 224."""
    return [
        T.Resize(resize or round(size * 256 / 224), interpolation=interpolation),
        T.CenterCrop(size),
        *normalized(dtype),
    ]


@_said_by_name
def imagenet_reference(
    size: int = 176, *, num_classes: int = 1000, dtype: Any = "float32", group: int = 8
) -> list[T.Transform]:
    """torchvision's recipe for ResNet-50: crop, flip, TrivialAugment, erasing, MixUp or CutMix.

    Labels become float32 rows of ``num_classes``. A rank's batch size must be a multiple of
    ``group``.
    """
    mixes = [
        T.MixUp(alpha=0.2, num_classes=num_classes, group=group),
        T.CutMix(alpha=1.0, num_classes=num_classes, group=group),
    ]
    return [
        T.RandomResizedCrop(size),
        T.RandomHorizontalFlip(),
        T.TrivialAugmentWide(),
        *normalized(dtype),
        T.RandomErasing(p=0.1),
        T.RandomChoice(mixes),
    ]


@_said_by_name
def simclr_view(size: int = 224, *, strength: float = 1.0, dtype: Any = "float32") -> list[Any]:
    """One view of SimCLR's: crop, flip, colors, gray, blur. ``strength``: strength of the color
    changes."""
    colors = T.ColorJitter(0.8 * strength, 0.8 * strength, 0.8 * strength, 0.2 * strength)
    return [
        T.RandomResizedCrop(size),
        T.RandomHorizontalFlip(),
        T.RandomApply([colors], p=0.8),
        T.RandomGrayscale(0.2),
        T.RandomApply([T.GaussianBlur(max(3, size // 20 * 2 + 1), (0.1, 2.0))], p=0.5),
        *normalized(dtype),
    ]


@_said_by_name
def simclr(size: int = 224, *, strength: float = 1.0, dtype: Any = "float32") -> list[T.Transform]:
    """Two independently drawn views of each ``image``: the fields ``view1`` and ``view2``."""
    view = simclr_view(size, strength=strength, dtype=dtype)
    return [T.Fork("image", view1=view, view2=view)]


@_said_by_name
def dino(
    size: int = 224,
    *,
    small: int = 96,
    locals: int = 8,
    global_scale: tuple[float, float] = (0.4, 1.0),
    local_scale: tuple[float, float] = (0.05, 0.4),
    dtype: Any = "float32",
) -> list[T.Transform]:
    """DINO's crops of each ``image``: the fields ``global1``, ``global2``, ``local1`` and so on."""

    def view(extent: int, scale: Any, blur: float, solarize: float = 0.0) -> list[Any]:
        return [
            T.RandomResizedCrop(extent, scale=scale, interpolation="bicubic"),
            T.RandomHorizontalFlip(),
            T.RandomApply([T.ColorJitter(0.4, 0.4, 0.2, 0.1)], p=0.8),
            T.RandomGrayscale(0.2),
            T.RandomApply([T.GaussianBlur(13, (0.1, 2.0))], p=blur),
            *([T.RandomSolarize(128, p=solarize)] if solarize else []),
            *normalized(dtype),
        ]

    views = {
        "global1": view(size, global_scale, blur=1.0),
        "global2": view(size, global_scale, blur=0.1, solarize=0.2),
    }
    views |= {f"local{i + 1}": view(small, local_scale, blur=0.5) for i in range(locals)}
    return [T.Fork("image", **views)]


@_said_by_name
def detection_ssd(
    size: int | tuple[int, int] = 300, *, fill: Any = (123, 117, 104), dtype: Any = "float32"
) -> list[T.Transform]:
    """torchvision's SSD recipe: colors, zoom out, IoU crop, flip; boxes and their labels follow.

    Boxes smaller than a pixel are dropped, with their labels. ``fill``: fill value around
    zoomed-out images. torchvision's detectors treat label 0 as the background: read COCO with
    ``category_ids="keep"``, and take ``images, targets = batch.detection()``.
    """
    return [
        T.RandomPhotometricDistort(),
        T.RandomZoomOut(fill=fill),
        T.RandomIoUCrop(),
        T.RandomHorizontalFlip(),
        T.Resize((size, size) if isinstance(size, int) else size),
        T.SanitizeBoundingBoxes(),
        *([] if dtype_name(dtype) == "uint8" else [T.ToDtype(dtype, scale=True)]),
    ]


@_said_by_name
def detection_mosaic(
    size: int = 640,
    *,
    scale: tuple[float, float] = (0.5, 1.5),
    min_visibility: float = 0.1,
    mix_within: int | None = None,
    dtype: Any = "float32",
) -> list[T.Transform]:
    """YOLO's recipe: mosaic of four records, affine transform, colors, flip.

    Boxes with a visible fraction below ``min_visibility`` are dropped, with their labels.
    ``mix_within``: draw the other three records from this many positions before it, so that
    each image is decoded once (:class:`~headrace.transforms.Mosaic`); None: from the whole epoch.
    """
    return [
        T.Mosaic(size, mix_within=mix_within),
        T.RandomAffine(0, translate=(0.05, 0.05), scale=scale, interpolation="bilinear", fill=114),
        T.CenterCrop(size),
        T.RandomHSV(0.015, 0.7, 0.4),
        T.RandomHorizontalFlip(),
        T.SanitizeBoundingBoxes(min_size=2, min_visibility=min_visibility),
        *([] if dtype_name(dtype) == "uint8" else [T.ToDtype(dtype, scale=True)]),
    ]


@_said_by_name
def segmentation_train(
    crop: int = 480, *, base: int = 520, dtype: Any = "float32", ignore: int = 255
) -> list[T.Transform]:
    """torchvision's recipe for segmentation: random size, flip, crop; masks follow.

    Images smaller than the crop are padded on the right and below: with black, masks with
    ``ignore``. ``images, masks = batch.segmentation()`` has masks (B, H, W) int64.
    """
    return [
        T.RandomResize(base // 2, base * 2),
        T.RandomHorizontalFlip(),
        T.PadIfSmaller(crop, mask_fill=ignore),
        T.RandomCrop(crop),
        *normalized(dtype),
    ]


@_said_by_name
def log_mel(
    seconds: float = 10.0, *, sample_rate: int = 16000, n_mels: int = 80
) -> list[T.Transform]:
    """Log-mel spectrograms of a random segment of each clip, (1, n_mels, frames), in decibels.

    Audio of any rate and any number of channels; 25 ms windows every 10 ms. Shorter clips are
    padded with silence.
    """
    return [
        T.Resample(new_freq=sample_rate),
        T.Mono(),
        T.RandomClip(round(seconds * sample_rate), pad_if_needed=True),
        T.MelSpectrogram(
            sample_rate, n_fft=sample_rate // 40, hop_length=sample_rate // 100, n_mels=n_mels
        ),
        T.AmplitudeToDB(top_db=80.0),
    ]


KINETICS_MEAN = (0.43216, 0.394666, 0.37645)
KINETICS_STD = (0.22803, 0.22145, 0.216989)


@_said_by_name
def video_train(
    size: int = 112, *, num_frames: int = 16, stride: int = 4, dtype: Any = "float32"
) -> list[T.Transform]:
    """A random clip, cropped, flipped and normalized as a whole: (C, T, H, W), as 3D networks
    expect.

    Mean and deviation are as for torchvision's video models.
    """
    return [
        T.RandomVideoClips(num_frames, stride=stride, layout="CTHW"),
        T.RandomResizedCrop(size),
        T.RandomHorizontalFlip(),
        *normalized(dtype, KINETICS_MEAN, KINETICS_STD),
    ]


@_said_by_name
def video_eval(
    size: int = 112,
    *,
    resize: int | None = None,
    num_frames: int = 16,
    stride: int = 4,
    dtype: Any = "float32",
) -> list[T.Transform]:
    """The clip from the middle, resized, center-cropped and normalized: (C, T, H, W)."""
    return [
        T.CenterVideoClip(num_frames, stride=stride, layout="CTHW"),
        T.Resize(resize or round(size * 8 / 7)),
        T.CenterCrop(size),
        *normalized(dtype, KINETICS_MEAN, KINETICS_STD),
    ]
