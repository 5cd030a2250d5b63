# SPDX-License-Identifier: Apache-2.0
"""Images in Python: Pillow images, and arrays with channels first or last. The axes of Pillow
images are known. Those of arrays are a property of the field: they are determined from the first,
the middle and the last record together, otherwise from ``shapes=``; if both orders still fit, 1, 3
or 4 channels come first, and anything else is an error that asks the user.

>>> import numpy as np
>>> PictureForm(axis=2).pixels(np.zeros((5, 6, 3), np.uint8)).shape
(3, 5, 6)
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace import _core
from headrace.errors import declare
from headrace.plain_array import plain_array

_WIDE_PICTURE = declare(
    "HR0685",
    "config",
    "unsupported image values",
    "Images are uint8, uint16, float32 or float16; Pillow's modes I;16 and F are uint16 and "
    "float32. A Pillow image of mode I, or an array of another dtype with values below 0, above "
    "255 or with fractions, would be clipped or wrapped, so it is rejected. Convert it in the "
    "object, or return it as an array under a name other than image or mask: it is then a "
    "tensor, and keeps its dtype.",
)
_NARROW = "convert it in the object, or return an array under another name: a tensor"
WHICH_AXIS = declare(
    "HR0615",
    "config",
    "ambiguous channel axis",
    "Arrays are images of (C, H, W) or (H, W, C), inferred from the shapes of the field's first, "
    "middle and last record. If all of these match both, 1, 3 or 4 channels are taken as the "
    "first axis; arrays with 2 or 5 to 16 channels or rows and a width of 1, 3 or 4 remain "
    'ambiguous. shapes={"image": (C, H, W)} decides: naming the array\'s own shape means that '
    "channels come first. Pillow images and tv_tensors are never ambiguous.",
)

IDS_OR_COLORS = declare(
    "HR0686",
    "config",
    "palette image may be a mask",
    "Pillow images of mode P hold a palette index per pixel. In an image the palette is applied, "
    'as convert("RGB") does; in a mask the indices are class ids and stay unchanged. Fields named '
    "image or mask are unambiguous; declare others with kinds=.",
)

_DTYPES = ("uint8", "uint16", "float32", "float16")
_WIDE_MODES = {"I;16": np.uint16, "I;16L": np.uint16, "I;16B": np.uint16, "F": np.float32}
_KEPT_MODES = ("L", "RGB", *_WIDE_MODES)  # all others become RGB, except palettes of masks
CHANNEL_COUNTS = (1, 3, 4)  # numbers of channels, unless an array is declared an image
_MOST_CHANNELS = 16


def is_pillow(value: Any) -> bool:
    return hasattr(value, "getbands")


@functools.cache
def _are_bytes(dtype: Any) -> bool:
    return str(dtype).endswith("uint8")


def is_picture(value: Any) -> bool:
    """Whether it is a Pillow image, or an array that looks like an image."""
    if is_pillow(value):
        return True
    return _are_bytes(getattr(value, "dtype", "")) and bool(_channel_axes(value, False))


def can_be_picture(value: Any, is_said: bool) -> bool:
    """The same for other dtypes, and for more channels if declared as an image."""
    if is_picture(value):
        return True
    dtype = getattr(value, "dtype", None)  # NumPy's dtype has a name, independent of byte order
    name = str(getattr(dtype, "name", dtype)).removeprefix("torch.")
    return name in _DTYPES and bool(_channel_axes(value, is_said))


def is_over(value: Any, picture: Any) -> bool:
    """Whether it is an image, or has one number per pixel of the image."""
    if is_picture(value) or not is_picture(picture):
        return is_picture(value)
    shape = tuple(getattr(value, "shape", ()))
    return len(shape) >= 2 and not _planes(picture).isdisjoint({shape[-2:], shape[:2]})


def _planes(picture: Any) -> set[tuple[int, ...]]:
    """(H, W) of an image; both candidates if its axes are unknown."""
    if is_pillow(picture):
        return {(picture.height, picture.width)}
    shape = tuple(picture.shape)
    return {shape[:2] if axis else shape[1:] for axis in _channel_axes(picture, False)}


def _channel_axes(value: Any, is_said: bool) -> set[int]:
    """The possible channel axes of an array: 0, 2, both, or none."""
    shape = tuple(getattr(value, "shape", ()))
    if len(shape) != 3:
        return set()
    if type(value).__module__.endswith(".tv_tensors") or "tv_tensors." in type(value).__module__:
        return {0}
    first = 1 <= shape[0] <= _MOST_CHANNELS if is_said else shape[0] in CHANNEL_COUNTS
    return {axis for axis, fits in ((0, first), (2, shape[2] in CHANNEL_COUNTS)) if fits}


@dataclasses.dataclass(frozen=True)
class PictureForm:
    """How the images of a field become (C, H, W)."""

    axis: int | None = (
        None  # the channel axis of arrays; None: no array was seen, so each is examined alone
    )
    rgb: bool = False  # gray Pillow images become RGB, like the others of the field
    ids: bool = False  # indices of palette images are kept, as the class ids of a mask

    def pixels(self, value: Any) -> np.ndarray[Any, Any]:
        """The image as (C, H, W). Pillow images are converted as with ``convert("RGB")``, except
        that 16-bit and float images keep their dtype, and masks keep palette indices. Alpha is
        dropped; values that no image dtype can hold are rejected.
        """
        array = self._pillow(value) if is_pillow(value) else self._array(value)
        if array.dtype.name not in _DTYPES:
            array = _as_bytes(array)
        return np.ascontiguousarray(array)

    def _pillow(self, image: Any) -> np.ndarray[Any, Any]:
        mode = image.mode
        if mode[:1] == "I" and mode not in _WIDE_MODES:  # would be clipped
            raise _WIDE_PICTURE.error(f"a Pillow image of mode {mode!r}", hint=_NARROW)
        kept = mode in _KEPT_MODES or (self.ids and mode == "P")
        if not kept or (self.rgb and mode == "L"):
            image = image.convert("RGB")
        array = plain_array(image)
        if mode in _WIDE_MODES:
            array = array.astype(_WIDE_MODES[mode])
        return array[None] if array.ndim == 2 else array.transpose(2, 0, 1)

    def _array(self, value: Any) -> np.ndarray[Any, Any]:
        array = plain_array(value)
        if array.ndim == 2:
            return array[None]
        axis = self.axis
        if axis is None:
            axes = _channel_axes(value, True)
            if len(axes) > 1 and array.shape[0] not in CHANNEL_COUNTS:
                raise ValueError(f"channels may come first or last in the shape {array.shape}")
            axis = min(axes, default=0)
        return array.transpose(2, 0, 1) if axis == 2 and array.ndim == 3 else array


def picture_form(
    name: str, seen: Sequence[Any], shape: Sequence[int] | None, *, is_said: bool, is_mask: bool
) -> PictureForm:
    """The form of a field, derived from these images, of which the first is record 0's. shape: (C,
    H, W) if given. Raises ConfigError HR0615 if the axes are ambiguous.
    """
    images = [value for value in seen if is_pillow(value)]
    rgb = shape[0] == 3 if shape else any(image.mode != "L" for image in images)
    arrays = [value for value in seen if len(getattr(value, "shape", ())) == 3]
    wide = any(image.mode in _WIDE_MODES for image in images)
    form = PictureForm(rgb=rgb and not is_mask and not wide, ids=is_mask)
    if not arrays:
        return form
    axes = {0, 2}
    for value in arrays:
        axes &= _channel_axes(value, is_said) or axes
    if is_mask:  # class ids: one channel
        axes = {a for a in axes if all(value.shape[a] == 1 for value in arrays)} or axes
    if len(axes) == 2 and shape:
        axes = {0} if _fits(arrays[0].shape, shape) else {2}
    first = tuple(arrays[0].shape)
    if len(axes) == 2 and first[0] not in CHANNEL_COUNTS:
        last = (first[2], *first[:2])
        raise WHICH_AXIS.error(
            f"{name} of record 0 has the shape {first}: its channels may come first or last",
            hint=f'hr.open(..., shapes={{"{name}": {first}}}) if they come first, '
            f"{last} if last; -1 for axes that differ between records",
        )
    return dataclasses.replace(form, axis=min(axes or _channel_axes(arrays[0], is_said), default=0))


def check_palette(name: str, value: Any, said: str) -> None:
    """Raises ConfigError HR0686 for a palette image in a field that may be an image or a mask."""
    if not said and name not in ("image", "mask") and is_pillow(value) and value.mode == "P":
        raise IDS_OR_COLORS.error(
            f"{name} of record 0 is a Pillow image of mode 'P'",
            hint=f'kinds={{"{name}": "mask"}} keeps class ids, kinds={{"{name}": "image"}} looks '
            "colors up",
        )


def column_of_pillow(name: str, values: Sequence[Any], said: str) -> np.ndarray[Any, Any]:
    """(N, C, H, W) of Pillow images, each converted by ``PictureForm``. ValueError, with a
    suggestion, if their sizes differ.
    """
    check_palette(name, values[0], said)
    for record, value in enumerate(values):
        if not is_pillow(value):
            raise ValueError(f"record {record} is {type(value).__name__}, but record 0 is an image")
    form = picture_form(name, values, None, is_said=bool(said), is_mask=(said or name) == "mask")
    arrays = [form.pixels(value) for value in values]
    if any(array.shape != arrays[0].shape or array.dtype != arrays[0].dtype for array in arrays):
        raise ValueError(
            "images of several sizes or modes cannot be a column: "
            f'hr.open([{{"{name}": image, ...}}, ...]), a list of dictionaries'
        )
    return np.stack(arrays)


def pillow_of(planes: np.ndarray[Any, Any]) -> Any:
    """A Pillow image of (C, H, W)."""
    from PIL import Image

    return Image.fromarray(planes[0] if len(planes) == 1 else interleaved(planes))


def interleaved(planes: np.ndarray[Any, Any], is_reversed: bool = False) -> np.ndarray[Any, Any]:
    """(C, H, W) as (H, W, C)."""
    if planes.dtype == np.uint8 and planes.flags.c_contiguous and 1 <= len(planes) <= 4:
        return np.asarray(_core.interleaved(planes, is_reversed))
    rows = planes.transpose(1, 2, 0)
    return np.ascontiguousarray(rows[..., ::-1] if is_reversed else rows)


def _fits(shape: Sequence[int], wanted: Sequence[int]) -> bool:
    return len(shape) == len(wanted) and all(
        want in (-1, have) for want, have in zip(wanted, shape, strict=True)
    )


def _as_bytes(array: np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """The same values as uint8, since class ids of a mask are often int64. Values that do not fit
    are rejected.
    """
    if array.dtype == np.uint8:
        return array
    with np.errstate(invalid="ignore"):  # also rejects NaN
        narrow = array.astype(np.uint8)
    if not np.array_equal(narrow, array):
        raise _WIDE_PICTURE.error(
            f"an image of {array.dtype} with values from {array.min()} to {array.max()}",
            hint=_NARROW,
        )
    return narrow
