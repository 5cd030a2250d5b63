# SPDX-License-Identifier: Apache-2.0
"""torchvision's transforms, v1 and v2, as Headrace's; what has none stays as a step in Python.

Classes are recognized by name and module, so nothing is imported that is not there already. Each
translation also has a steady form, in which nothing is random, on both sides: these are compared.
"""

from __future__ import annotations

import copy
import dataclasses
import sys
from collections.abc import Callable, Iterable
from typing import Any

from headrace import _core, library_steps
from headrace import transforms as T
from headrace.dtypes import dtype_name
from headrace.errors import Error
from headrace.migrate.originals import (
    Originals,
    Pixels,
    name_of,
    pixels_from_value,
    seeded,
    value_from_pixels,
)


@dataclasses.dataclass
class Translated:
    """One step: ours as it runs, ours without randomness, and the original without it."""

    names: list[str]
    step: list[Any]
    steady: list[Any]
    original: Callable[[Any], Any]
    native: bool
    note: str = ""
    # Of a step in Python: the originals, and what stood before them.
    transforms: list[Any] = dataclasses.field(default_factory=list)
    before: Form | None = None


@dataclasses.dataclass
class Form:
    """What an image is between two of the original's transforms."""

    kind: str  # "pil", "image" (torchvision's), "tensor", or "other": no longer a picture
    dtype: str
    fixed: bool  # whether all records have one size
    probes: list[Any]  # values of some records there


class NoOperator(Exception):
    """There is none that gives the same; the message says why."""


def translate(transform: Any, form: Form) -> list[Translated]:
    """The steps of a dataset's ``transform``; ``form`` is changed to what comes out."""
    out: list[Translated] = []
    for each in opened(transform):
        try:
            step = _native(each, form)
        except NoOperator as reason:
            step = Translated([shown(each)], [], [], each, False, str(reason))
        if step is None:  # it changes nothing that the engine knows of
            step = Translated([shown(each)], [], [], each, True)
        _advance(form, step, each)
        if not step.native and out and not out[-1].native:
            _join(out[-1], step, form)
        else:
            out.append(step)
    return out


def opened(transform: Any) -> list[Any]:
    """The entries of Compose and Sequential, nested ones opened."""
    if transform is None:
        return []
    if isinstance(transform, (list, tuple)):
        return [each for entry in transform for each in opened(entry)]
    if known_name(transform) == "Compose":
        return opened(transform.transforms)
    if type(transform).__name__ == "Sequential" and _home(transform) == "torch":
        return opened(list(transform))
    return [transform]


def known_name(value: Any) -> str:
    """The class's name where it is torchvision's own, else nothing."""
    return type(value).__name__ if _home(value) == "torchvision" else ""


def shown(transform: Any) -> str:
    """Its repr where that is one line."""
    text = repr(transform)
    return text if "\n" not in text and " at 0x" not in text else name_of(transform)


def _home(value: Any) -> str:
    return type(value).__module__.partition(".")[0]


def _advance(form: Form, step: Translated, transform: Any) -> None:
    """Passes the probes on through the original, and makes the step where it is in Python."""
    before = copy.copy(form)
    with seeded(0):
        form.probes = [transform(value) for value in before.probes]
    value = form.probes[0]
    pixels = pixels_from_value(value)
    if hasattr(value, "getbands"):
        form.kind = "pil"
    elif pixels.ndim == 3 and hasattr(value, "detach"):
        form.kind = "image" if type(value).__name__ == "Image" else "tensor"
    else:
        form.kind = "other"
    form.dtype = str(pixels.dtype)
    if not step.native:
        _make_python(step, [transform], before, form)


def _make_python(step: Translated, transforms: list[Any], before: Form, after: Form) -> None:
    arrays = [pixels_from_value(value) for value in before.probes]
    results = [pixels_from_value(value) for value in after.probes]
    returns = None
    if [(a.shape, a.dtype) for a in arrays] != [(r.shape, r.dtype) for r in results]:
        returns = {"image": _declared(arrays, results, before.fixed)}
        after.fixed = -1 not in returns["image"][1]
    steady = Originals(transforms, before.kind, steady=True)
    ours = T.Python(Originals(transforms, before.kind), returns, fields="image")
    # fields= is how the argument is found here, and no word of the user about other fields.
    moves = any(map(library_steps.moves, transforms))
    ours.geometry = _core.PythonGeometry.moves if moves else _core.PythonGeometry.unknown
    step.step = [ours]
    step.steady = [T.Python(steady, returns, fields="image")]
    step.original = _steadily(steady)
    step.names = [shown(transform) for transform in transforms]
    step.transforms, step.before = transforms, before


def _declared(before: list[Pixels], after: list[Pixels], fixed: bool) -> tuple[Any, ...]:
    """(dtype, shape, kind): -1 where records differ, or may, because what goes in does."""
    first = after[0].shape
    shape = []
    for axis, extent in enumerate(first):
        alike = all(len(r.shape) == len(first) and r.shape[axis] == extent for r in after)
        follows = all(
            axis < a.ndim and r.shape[axis] == a.shape[axis]
            for a, r in zip(before, after, strict=True)
        )
        channel = axis == 0 and len(first) == 3
        shape.append(extent if alike and (fixed or channel or not follows) else -1)
    return str(after[0].dtype), tuple(shape), "image" if len(first) == 3 else "tensor"


def _steadily(originals: Originals) -> Callable[[Any], Any]:
    def call(value: Any) -> Any:
        with seeded(0):
            return originals.apply(value)

    return call


def _join(last: Translated, step: Translated, form: Form) -> None:
    """Two neighbours in Python are one step: each record crosses once."""
    assert last.before is not None
    last.note = "; ".join(filter(None, dict.fromkeys([last.note, step.note])))
    _make_python(last, [*last.transforms, *step.transforms], last.before, form)


# The operators.

Made = tuple[list[Any], list[Any], Callable[[Any], Any]]  # ours, ours steady, the original steady


def _native(transform: Any, form: Form) -> Translated | None:
    """None: nothing is left to do for it. Raises NoOperator."""
    name = known_name(transform)
    if form.kind == "other":
        raise NoOperator("after it the image is no picture any more")
    if name in _NOTHING:
        return None
    maker = _MAKERS.get(name)
    if maker is None:
        raise NoOperator("Headrace has no operator for it" if name else "a callable of your own")
    if name in _RESAMPLING and form.kind != "pil":
        _check_resampling(transform, form)
    try:
        ours, steady, original = maker(transform, form)
    except Error as refused:
        raise NoOperator(str(refused).splitlines()[0]) from None
    note = ""
    if name in _RESAMPLING and form.kind != "pil":
        note = "Pillow's filter in place of torch's on tensors: up to 1 of 255 apart"
        original = _through_pillow(original)
    if name in _SIZING and not (name == "Resize" and _is_short_edge(transform.size)):
        form.fixed = True
    elif name == "Resize":
        form.fixed = False
    return Translated([shown(transform)], ours, steady, original, True, note)


def _check_resampling(transform: Any, form: Form) -> None:
    """Of tensors: torch's filters are near Pillow's only where both antialias bytes."""
    if form.dtype != "uint8":
        raise NoOperator("torch resamples numbers of floating point, Headrace those of pictures")
    how = str(getattr(transform.interpolation, "value", transform.interpolation))
    if how not in ("bilinear", "bicubic"):
        raise NoOperator(f"torch's \"{how}\" on tensors takes other pixels than Pillow's")


def _through_pillow(transform: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def call(value: Any) -> Any:
        if hasattr(value, "getbands"):
            return transform(value)
        picture = value_from_pixels(pixels_from_value(value), "pil")
        form = "image" if type(value).__name__ == "Image" else "tensor"
        return value_from_pixels(pixels_from_value(transform(picture)), form)

    return call


def _sibling(transform: Any, name: str) -> Any:
    """Another class of the module that the transform's class comes from."""
    return getattr(sys.modules[type(transform).__module__], name)


def _is_short_edge(size: Any) -> bool:
    return size is None or isinstance(size, int) or len(size) == 1


def _size(size: Any) -> Any:
    return size if size is None or isinstance(size, int) else [int(extent) for extent in size]


def _fill(fill: Any) -> Any:
    """A colour of torchvision's as numbers."""
    if fill is None:
        return 0
    if isinstance(fill, dict) or callable(fill):
        raise NoOperator("its fill differs by type")
    return fill


def _antialias(transform: Any, form: Form) -> bool:
    """Pillow always widens its filter, whatever torchvision was told."""
    return True if form.kind == "pil" else bool(getattr(transform, "antialias", True))


def _resize(transform: Any, form: Form) -> Made:
    ours = T.Resize(
        _size(transform.size),
        interpolation=transform.interpolation,
        max_size=transform.max_size,
        antialias=_antialias(transform, form),
    )
    return [ours], [ours], transform


def _random_resized_crop(transform: Any, form: Form) -> Made:
    how = {"interpolation": transform.interpolation, "antialias": _antialias(transform, form)}
    size = _size(transform.size)
    ours = T.RandomResizedCrop(size, scale=transform.scale, ratio=transform.ratio, **how)
    whole = [size, size] if isinstance(size, int) else size
    resize = _sibling(transform, "Resize")(whole, interpolation=transform.interpolation)
    return [ours], [T.Resize(whole, **how)], resize


def _center_crop(transform: Any, form: Form) -> Made:
    ours = T.CenterCrop(_size(transform.size))
    return [ours], [ours], transform


def _pad(transform: Any, form: Form) -> Made:
    padding = transform.padding if isinstance(transform.padding, int) else list(transform.padding)
    ours = T.Pad(padding, fill=_fill(transform.fill), padding_mode=transform.padding_mode)
    return [ours], [ours], transform


def _random_crop(transform: Any, form: Form) -> Made:
    size, fill, mode = _size(transform.size), _fill(transform.fill), transform.padding_mode
    padding = transform.padding
    padding = padding if padding is None or isinstance(padding, int) else list(padding)
    ours = T.RandomCrop(
        size,
        padding=padding,
        pad_if_needed=transform.pad_if_needed,
        fill=fill,
        padding_mode=mode,
    )
    crop = _sibling(transform, "CenterCrop")(transform.size)
    if not padding:
        return [ours], [T.CenterCrop(size)], crop
    pad = _sibling(transform, "Pad")(padding, fill=transform.fill, padding_mode=mode)
    steady = [T.Pad(padding, fill=fill, padding_mode=mode), T.CenterCrop(size)]
    return [ours], steady, lambda value: crop(pad(value))


def _flip(transform: Any, form: Form) -> Made:
    kind = T.__dict__[type(transform).__name__]
    always = copy.copy(transform)
    always.p = 1.0
    return [kind(p=float(transform.p))], [kind(p=1.0)], always


def _random_erasing(transform: Any, form: Form) -> Made:
    if form.kind == "pil":
        raise NoOperator("torchvision does not erase in pictures of Pillow")
    value = transform.value
    if value is None or isinstance(value, str):
        raise NoOperator('value="random": Headrace\'s RandomErasing sets numbers that are given')
    ours = T.RandomErasing(
        p=float(transform.p),
        scale=_numbers(transform.scale),
        ratio=_numbers(transform.ratio),
        value=_numbers(value),
    )
    return [ours], [], lambda value: value  # nothing that is not random is left


def _arithmetic(transform: Any, form: Form) -> str:
    """Whose colours the original computes."""
    if form.kind == "pil":
        return "pillow"
    if type(transform).__module__.startswith("torchvision.transforms.v2"):
        return "torch"
    raise NoOperator("torchvision's first transforms compute colours of tensors in another way")


def _grayscale(transform: Any, form: Form) -> Made:
    arithmetic = _arithmetic(transform, form)
    ours = T.Grayscale(int(transform.num_output_channels), arithmetic=arithmetic)
    return [ours], [ours], transform


def _random_grayscale(transform: Any, form: Form) -> Made:
    arithmetic = _arithmetic(transform, form)
    return _with_chance(transform, lambda p: T.RandomGrayscale(p, arithmetic=arithmetic), form)


def _color_jitter(transform: Any, form: Form) -> Made:
    _refuse_floats(form)
    arithmetic = _arithmetic(transform, form)
    factors: dict[str, Any] = {}
    for name in ("brightness", "contrast", "saturation", "hue"):
        value = getattr(transform, name)
        if value is not None:
            factors[name] = _numbers(value)
    ours = T.ColorJitter(**factors, arithmetic=arithmetic)
    return [ours], [], lambda value: value  # nothing that is not random is left


def _photometric_distort(transform: Any, form: Form) -> Made:
    _refuse_floats(form)
    arithmetic = _arithmetic(transform, form)
    ours = T.RandomPhotometricDistort(
        brightness=_numbers(transform.brightness),
        contrast=_numbers(transform.contrast),
        saturation=_numbers(transform.saturation),
        hue=_numbers(transform.hue),
        p=float(transform.p),
        arithmetic=arithmetic,
    )
    return [ours], [], lambda value: value


def _channel_permutation(transform: Any, form: Form) -> Made:
    return [T.RandomChannelPermutation()], [], lambda value: value


def _posterize(transform: Any, form: Form) -> Made:
    return _with_chance(transform, lambda p: T.RandomPosterize(int(transform.bits), p=p), form)


def _solarize(transform: Any, form: Form) -> Made:
    threshold = float(transform.threshold)
    return _with_chance(transform, lambda p: T.RandomSolarize(threshold, p=p), form)


def _invert(transform: Any, form: Form) -> Made:
    return _with_chance(transform, T.RandomInvert, form)


def _blur(transform: Any, form: Form) -> Made:
    _refuse_floats(form)
    size = [int(extent) for extent in transform.kernel_size]
    sigma = _numbers(transform.sigma)
    ours = T.GaussianBlur(size, sigma)
    if sigma[0] == sigma[-1]:
        return [ours], [ours], transform
    middle = (sigma[0] + sigma[-1]) / 2
    fixed = copy.copy(transform)
    fixed.sigma = (middle, middle)
    return [ours], [T.GaussianBlur(size, middle)], fixed


def _sharpness(transform: Any, form: Form) -> Made:
    arithmetic = _arithmetic(transform, form)
    factor = float(transform.sharpness_factor)
    return _with_chance(
        transform, lambda p: T.RandomAdjustSharpness(factor, p, arithmetic=arithmetic), form
    )


def _equalize(transform: Any, form: Form) -> Made:
    return _with_chance(transform, T.RandomEqualize, form)


def _autocontrast(transform: Any, form: Form) -> Made:
    arithmetic = _arithmetic(transform, form)
    return _with_chance(transform, lambda p: T.RandomAutocontrast(p, arithmetic=arithmetic), form)


def _with_chance(transform: Any, kind: Callable[[float], Any], form: Form) -> Made:
    """A step that a picture takes with probability ``p``; to compare, both always take it."""
    _refuse_floats(form)
    always = copy.copy(transform)
    always.p = 1.0
    return [kind(float(transform.p))], [kind(1.0)], always


def _refuse_floats(form: Form) -> None:
    if form.kind != "pil" and form.dtype != "uint8":
        raise NoOperator("Headrace computes these colours on uint8, and here come floats")


def _normalize(transform: Any, form: Form) -> Made:
    ours = T.Normalize(_numbers(transform.mean), _numbers(transform.std))
    return [ours], [ours], transform


def _numbers(values: Any) -> list[float]:
    values = values.tolist() if hasattr(values, "tolist") else values
    return [float(value) for value in (values if isinstance(values, Iterable) else [values])]


def _to_tensor(transform: Any, form: Form) -> Made:
    ours = [T.ToDtype("float32", scale=True)] if form.dtype == "uint8" else []
    return ours, ours, transform


def _to_dtype(transform: Any, form: Form) -> Made:
    dtype = transform.dtype
    if isinstance(dtype, dict):
        raise NoOperator("its dtype differs by type")
    scale = getattr(transform, "scale", True)  # ConvertImageDtype always scales
    ours = T.ToDtype(dtype_name(dtype), scale=scale)
    return [ours], [ours], transform


def _random_apply(transform: Any, form: Form) -> Made:
    inner = [_native(each, form) for each in opened(list(transform.transforms))]
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


_MAKERS: dict[str, Callable[[Any, Form], Made]] = {
    "Resize": _resize,
    "RandomResizedCrop": _random_resized_crop,
    "CenterCrop": _center_crop,
    "RandomCrop": _random_crop,
    "Pad": _pad,
    "RandomHorizontalFlip": _flip,
    "RandomVerticalFlip": _flip,
    "RandomErasing": _random_erasing,
    "Grayscale": _grayscale,
    "RandomGrayscale": _random_grayscale,
    "ColorJitter": _color_jitter,
    "RandomPhotometricDistort": _photometric_distort,
    "RandomChannelPermutation": _channel_permutation,
    "RandomPosterize": _posterize,
    "RandomSolarize": _solarize,
    "RandomInvert": _invert,
    "RandomAdjustSharpness": _sharpness,
    "GaussianBlur": _blur,
    "RandomEqualize": _equalize,
    "RandomAutocontrast": _autocontrast,
    "Normalize": _normalize,
    "ToTensor": _to_tensor,
    "ToDtype": _to_dtype,
    "ConvertImageDtype": _to_dtype,
    "RandomApply": _random_apply,
}
_RESAMPLING = ("Resize", "RandomResizedCrop")
_SIZING = ("Resize", "RandomResizedCrop", "CenterCrop", "RandomCrop")
# Pictures are (C, H, W) arrays of uint8 from the start.
_NOTHING = ("ToImage", "PILToTensor", "ToPureTensor", "Identity")
