# SPDX-License-Identifier: Apache-2.0
"""Classes of torchvision and timm that have an operator here: each topic's file adds its own.

Classes are recognized by name and module, so nothing has to be imported.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from headrace.errors import Error
from headrace.loader.form import Cast
from headrace.migrate.modules import name_of
from headrace.migrate.originals import pixels_from_value, value_from_pixels


@dataclasses.dataclass
class Translated:
    """One step: our operator as it runs, ours without randomness, and the original without it."""

    names: list[str]
    step: list[Any]
    steady: list[Any]
    original: Callable[[Any], Any]
    native: bool
    note: str = ""
    casts: dict[str, Cast] = dataclasses.field(default_factory=dict)  # dtype of the delivered batch
    exact: Callable[[Any], Any] | None = (
        None  # the original with its own filter, if ``original`` uses ours
    )
    # For a Python step: the originals, the steps before them, and its cost.
    transforms: list[Any] = dataclasses.field(default_factory=list)
    before: Form | None = None
    timed: Any = None
    cost: str = ""


@dataclasses.dataclass
class Form:
    """The form of an image between two of the original's transforms."""

    # "pil", "image" (torchvision's), "tensor", "array" or "bgr" ((H, W, C) of NumPy), or "other":
    # no longer an image.
    kind: str
    dtype: str
    fixed: bool  # whether all records have the same size
    # Values of some records at this point: images, or dictionaries if transforms take whole
    # records.
    probes: list[Any]
    field: str = "image"  # the field whose list of transforms this is
    casts: dict[str, Cast] = dataclasses.field(default_factory=dict)  # made by the next step


class NoOperator(Exception):
    """Raised if no operator gives the same result; the message says why."""


class SeveralValues(Exception):
    """Raised for a transform that returns several images for one; the message names it."""


# Our steps, ours without randomness, and the original without randomness.
Made = tuple[list[Any], list[Any], Callable[[Any], Any]]
Maker = Callable[[Any, Form], Made]


@dataclasses.dataclass(frozen=True)
class Translation:
    """How the transforms of a class are translated."""

    make: Maker
    resamples: bool  # tensors: by torch's filters, where ours are Pillow's
    sizes: bool  # all records have the same size afterwards


_translations: dict[str, Translation] = {}
_own_classes: dict[str, Translation] = {}
_own_callables: list[Translation] = []
_nothing: set[str] = set()


def translation(
    *names: str, resamples: bool = False, sizes: bool = False
) -> Callable[[Maker], Maker]:
    """Translates torchvision's classes with these names, v1 and v2; timm's after "timm."."""

    def register(make: Maker) -> Maker:
        _translations.update({name: Translation(make, resamples, sizes) for name in names})
        return make

    return register


def own_class(name: str) -> Callable[[Maker], Maker]:
    """Translates user classes with this name. Raises NoOperator if one behaves differently."""

    def register(make: Maker) -> Maker:
        _own_classes[name] = Translation(make, False, False)
        return make

    return register


def own_callable(make: Maker) -> Maker:
    """Translates any other callable of the user. NoOperator if it is unknown."""
    _own_callables.append(Translation(make, False, False))
    return make


def nothing(*names: str) -> None:
    """For classes without any effect on the engine's values."""
    _nothing.update(names)


def native(transform: Any, form: Form) -> Translated | None:
    """The translation of a transform; None if nothing needs to be done for it. Raises
    NoOperator."""
    name = known_name(transform)
    if form.kind == "other":
        raise NoOperator("its result is no longer an image")
    if name == "headrace.Keyword":
        albumentations = _home(transform.transform) == "albumentations"
        raise NoOperator(_OTHER_PIXELS if albumentations else "a callable of your own")
    if form.kind in ("array", "bgr") and name not in _OF_ARRAYS[form.kind]:
        what = f"arrays of OpenCV's (H, W, {form.kind.upper()})" if form.kind == "bgr" else "arrays"
        raise NoOperator(f"it takes {what}, which Headrace supports only for images and tensors")
    if name in _nothing or (name == "ToPILImage" and form.kind == "array"):
        return None
    if form.dtype == "float64":
        raise NoOperator("its image is float64, but Headrace has at most float32")
    known = _translations.get(name)
    if not name and not _altered(transform):
        known = _own_classes.get(type(transform).__name__)
        known = known or next(iter(_own_callables), None)
    if known is None:
        raise NoOperator("Headrace has no operator for it" if name else "a callable of your own")
    resamples = known.resamples and form.kind != "pil"
    if resamples:
        _check_resampling(transform, form)
    through_pillow = resamples and not resampled_by_torch(transform)
    try:
        ours, steady, original = known.make(transform, form)
    except Error as refused:
        raise NoOperator(str(refused).splitlines()[0]) from None
    notes: list[str] = []
    own: Callable[[Any], Any] = original
    if through_pillow:
        notes.append("Pillow's filter instead of torch's on tensors: differences up to 1 of 255")
        original = _through_pillow(original)
    if known.resamples and any(map(is_mask, _parts(form.probes[0]))):
        notes.append("masks are resized as in Pillow; torchvision's are off by up to half a pixel")
        original = _masks_by_pillow(original)
    if known.sizes:
        form.fixed = True
    casts = dict(form.casts)
    form.casts.clear()
    note, exact = "; ".join(notes), own if notes else None
    return Translated([shown(transform)], ours, steady, original, True, note, casts, exact)


_OTHER_PIXELS = "Albumentations computes different pixels from torchvision"
# Transforms that make our images from (H, W, C) arrays.
_OF_ARRAYS = {"array": ("ToTensor", "ToImage", "ToPILImage"), "bgr": ()}


def _check_resampling(transform: Any, form: Form) -> None:
    """Raises NoOperator for tensors that torch resamples differently: its filters are close to
    Pillow's only if both antialias uint8."""
    if _filter_of(transform).startswith("nearest") and form.dtype in ("uint8", "float32"):
        return
    if form.dtype != "uint8":
        raise NoOperator("torch resamples floating-point values, Headrace uint8 values")
    if resampled_by_torch(transform) and _is_first(transform):
        raise NoOperator("torchvision's v1 transforms resize tensors as floats")
    if _filter_of(transform) not in ("bilinear", "bicubic"):
        raise NoOperator(f'torch has no "{_filter_of(transform)}" for tensors')


def resampled_by_torch(transform: Any) -> bool:
    """Whether torch itself resamples tensors, which matches ours with antialias=False."""
    nearest = _filter_of(transform).startswith("nearest")
    return nearest or getattr(transform, "antialias", True) is False


def _filter_of(transform: Any) -> str:
    return str(getattr(transform.interpolation, "value", transform.interpolation))


def _is_first(transform: Any) -> bool:
    return not type(transform).__module__.startswith("torchvision.transforms.v2")


def image_of(value: Any) -> Any:
    """The image of a probe."""
    return value["image"] if isinstance(value, dict) else value


def with_image(value: Any, image: Any) -> Any:
    """The probe with another image."""
    return {**value, "image": image} if isinstance(value, dict) else image


def _through_pillow(transform: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def call(value: Any) -> Any:
        image = image_of(value)
        if hasattr(image, "getbands"):
            return transform(value)
        form = "image" if type(image).__name__ == "Image" else "tensor"
        picture = value_from_pixels(pixels_from_value(image), "pil")
        done = transform(with_image(value, picture))
        return with_image(done, value_from_pixels(pixels_from_value(image_of(done)), form))

    return call


def _parts(probe: Any) -> list[Any]:
    return list(probe.values()) if isinstance(probe, dict) else []


def is_mask(value: Any) -> bool:
    """Whether it is torchvision's class for masks."""
    return type(value).__name__ == "Mask"


def _masks_by_pillow(resize: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """``resize`` of a whole image, with its masks resized like ours."""

    def call(value: Any) -> Any:
        done = resize(value)
        height, width = pixels_from_value(image_of(done)).shape[-2:]
        for name, each in value.items():
            if is_mask(each):
                resized = np.empty((*each.shape[:-2], height, width), np.uint8)
                for plane, out in zip(_planes(each.numpy()), _planes(resized), strict=True):
                    picture = value_from_pixels(plane[None], "pil")
                    out[:] = np.asarray(picture.resize((width, height), 0))  # NEAREST
                done = {**done, name: type(each)(resized)}
        return done

    return call


def _planes(masks: Any) -> Any:
    return masks.reshape(-1, *masks.shape[-2:])


def opened(transform: Any) -> list[Any]:
    """The entries of Compose and Sequential, flattened."""
    if transform is None:
        return []
    if isinstance(transform, (list, tuple)):
        return [each for entry in transform for each in opened(entry)]
    if known_name(transform) == "Compose":
        return opened(transform.transforms)
    if known_name(transform) == "ImageClassification":  # transforms of a model's weights
        return _of_weights(transform)
    if type(transform).__name__ == "Sequential" and _home(transform) == "torch":
        return opened(list(transform))
    return [transform]


def _of_weights(preset: Any) -> list[Any]:
    """The work of ``weights.transforms()``: it has no parts, but calls these functionals."""
    first = importlib.import_module("torchvision.transforms")
    torch = importlib.import_module("torch")
    how = {"interpolation": preset.interpolation, "antialias": preset.antialias}
    return [
        first.Resize(preset.resize_size, **how),
        first.CenterCrop(preset.crop_size),
        importlib.import_module("torchvision.transforms.v2").ToImage(),
        first.ConvertImageDtype(torch.float),
        first.Normalize(preset.mean, preset.std),
    ]


def known_name(value: Any) -> str:
    """The class's name if it is torchvision's own and unmodified, prefixed with "timm." for timm's;
    otherwise empty.
    """
    before = {"torchvision": "", "timm": "timm.", "headrace": "headrace."}.get(_home(value))
    return "" if before is None or _altered(value) else before + type(value).__name__


def _altered(value: Any) -> bool:
    """Whether it has user-defined methods or hooks: these may make different random draws, which
    the comparison without randomness would not detect."""
    own = getattr(value, "__dict__", {})
    hooks = own.get("_forward_hooks") or own.get("_forward_pre_hooks")
    return bool(hooks) or any(callable(getattr(type(value), name, None)) for name in own)


def shown(transform: Any) -> str:
    """Its repr if that is a single line."""
    text = repr(transform)
    return text if "\n" not in text and " at 0x" not in text else name_of(transform)


def _home(value: Any) -> str:
    return type(value).__module__.partition(".")[0]
