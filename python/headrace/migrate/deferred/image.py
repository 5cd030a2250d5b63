# SPDX-License-Identifier: Apache-2.0
"""A Pillow image whose pixels are made on demand.

It is an ``Image.Image`` in every respect: operations that cannot be deferred are done by Pillow on
its pixels.
"""

from __future__ import annotations

import functools
import io
from typing import Any

import numpy as np

from headrace import _core
from headrace.errors import Error

_FILTERS = (
    "nearest",
    "lanczos",
    "bilinear",
    "bicubic",
    "box",
    "hamming",
)  # indexed by Pillow's constants
_BICUBIC = 3
# The constants of transpose() as steps.
_TURNS = (
    ("mirror",),
    ("flip",),
    ("transpose", "flip"),
    ("mirror", "flip"),
    ("transpose", "mirror"),
    ("transpose",),
    ("transpose", "mirror", "flip"),
)
_COLORS = {"RGB": "RGB", "L": "L", "P": "stored"}
_PNG = b"\x89PNG\r\n\x1a\n"
_PNG_MODES = {(8, 0): "L", (8, 2): "RGB", (8, 3): "P", (4, 3): "P", (2, 3): "P", (1, 3): "P"}


class Origin:
    """The bytes of a file, and how Pillow opens it."""

    def __init__(self, data: bytes, opened: Any, given: Any) -> None:
        self.data = data
        self._opened = opened
        self._given = given

    def open(self) -> Any:
        """Opens the file with Pillow, as a separate image."""
        by_name = isinstance(self._given, str)
        return self._opened(self._given if by_name else io.BytesIO(self.data))

    @functools.cached_property
    def header(self) -> Any:
        """Pillow's image of the file, which is never decoded."""
        return self.open()


def opened(data: bytes, opener: Any, given: Any) -> Any:
    """A deferred image of a file's bytes; None if Pillow has to read it. opener: Pillow's
    Image.open. given: its arguments.
    """
    mode = _png_mode(data) if data[:8] == _PNG else "RGB" if data[:3] == b"\xff\xd8\xff" else ""
    if not mode:
        return None
    try:
        picture = _core.DeferredPicture(data, "stored")
        if mode == "RGB":  # a JPEG, or a suitable PNG
            mode = {1: "L", 3: "RGB"}.get(picture.shape[0], "")
        if not mode:
            return None
        if mode != "P":
            picture = picture.in_color(_COLORS[mode])
    except Error:
        return None
    return image_class()(Origin(data, opener, given), picture, mode)


def _png_mode(data: bytes) -> str:
    """Empty if it has several images, or a chunk with additional data."""
    if len(data) < 33 or b"tRNS" in data or b"acTL" in data:
        return ""
    return _PNG_MODES.get((data[24], data[25]), "")


def is_deferred(image: Any) -> bool:
    """Whether it is a deferred image whose pixels have not been decoded."""
    return getattr(image, "deferred_picture", None) is not None


@functools.cache
def image_class() -> Any:
    from PIL import Image

    class DeferredImage(Image.Image):
        """An image of a file, or derived from another one by steps."""

        def __init__(
            self, origin: Origin, picture: Any, mode: str, steps: tuple[Any, ...] = ()
        ) -> None:
            self.deferred_picture = picture  # None: `_real` has the pixels
            self._origin = origin
            self._steps = steps  # pairs of a Pillow method and its arguments
            self._real: Any = None
            self._array: Any = None
            self._its_mode = mode
            self._its_info: Any = None
            self._its_palette: Any = None

        def _then(self, picture: Any, *step: Any, mode: str = "") -> Any:
            out = DeferredImage(
                self._origin, picture, mode or self.mode, (*self._steps, *([step] if step else []))
            )
            out._its_info, out._its_palette = self._its_info, self._its_palette
            return out

        # Pixels.

        def as_pillow(self) -> Any:
            """Converts itself to the real image."""
            if self._real is None:
                self._real = self._from_engine()
                if self._real is None:
                    self._real = self._from_pillow()
                self.deferred_picture = None
            return self._real

        def _from_engine(self) -> Any:
            if not self._steps:  # for a file: Pillow's own image class
                return None
            array = self._pixels()
            if array is None:
                return None
            image = Image.frombytes(self._its_mode, self.size, array.data)
            image.info = self.info
            if self._its_mode == "P":
                data, rawmode = self._palette_data()
                image.putpalette(data, rawmode)
            return image

        def _from_pillow(self) -> Any:
            image = self._origin.open()
            for method, arguments in self._steps:
                image = method(image, *arguments)
            image.load()
            return image

        def _pixels(self) -> Any:
            """(H, W) or (H, W, 3); None if the file is damaged."""
            if self._array is None:
                try:
                    made = self.deferred_picture.pixels(True)
                except Error:
                    return None
                if made is not None:
                    array = np.asarray(made)
                    self._array = array[..., 0] if array.shape[2] == 1 else array
            return self._array

        def _palette_data(self) -> Any:
            if self._its_palette is not None:
                return self._its_palette
            palette = self._origin.header.palette
            return palette.palette, palette.rawmode or palette.mode

        @property
        def __array_interface__(self) -> Any:
            array = self._pixels() if self.deferred_picture is not None else None
            if array is None:
                return self.as_pillow().__array_interface__
            return {
                "version": 3,
                "shape": array.shape,
                "typestr": "|u1",
                "data": (array.ctypes.data, True),
            }

        # Attributes that Pillow stores for an image.

        @property
        def size(self) -> Any:
            if self._real is not None:
                return self._real.size
            _, height, width = self.deferred_picture.shape
            return width, height

        @property
        def mode(self) -> Any:
            return self._its_mode if self._real is None else self._real.mode

        @property
        def info(self) -> Any:
            if self._real is not None:
                return self._real.info
            if self._its_info is None:
                self._its_info = dict(self._origin.header.info)
            return self._its_info

        @info.setter
        def info(self, value: Any) -> None:
            if self._real is not None:
                self._real.info = value
            self._its_info = value

        @property
        def format(self) -> Any:  # type: ignore[override]
            return None if self._steps else self._origin.header.format

        def __getattr__(self, name: str) -> Any:
            """For an image of a file: attributes of this file type."""
            if name[:2] == "__" or self.__dict__.get("_steps", True):
                raise AttributeError(name)
            return getattr(self._origin.header if self._real is None else self._real, name)

        def getexif(self) -> Any:
            if self._real is not None:
                return self._real.getexif()
            return super().getexif() if self._steps else self._origin.header.getexif()

        # Operations that need no pixels.

        def copy(self) -> Any:
            if self.deferred_picture is None:
                return self.as_pillow().copy()
            return self._then(self.deferred_picture, Image.Image.copy, ())

        def convert(self, mode: Any = None, *more: Any, **named: Any) -> Any:
            picture = self.deferred_picture
            if picture is None or more or named or mode not in ("RGB", "L"):
                return self.as_pillow().convert(mode, *more, **named)
            if mode == self._its_mode:
                return self.copy()
            if any(method is not Image.Image.copy for method, _ in self._steps):
                return self.as_pillow().convert(mode)
            picture = picture.in_color(_COLORS[mode])
            return self._then(picture, Image.Image.convert, (mode,), mode=mode)

        def resize(
            self, size: Any, resample: Any = None, box: Any = None, reducing_gap: Any = None
        ) -> Any:
            picture, whole = self.deferred_picture, tuple(map(int, size))
            usual = resample is None or int(resample) in range(len(_FILTERS))
            if picture is None or box is not None or not usual or min(whole) < 1:
                return self.as_pillow().resize(size, resample, box, reducing_gap)
            if whole != tuple(size) or reducing_gap is not None:
                return self.as_pillow().resize(size, resample, box, reducing_gap)
            number = _BICUBIC if resample is None else int(resample)
            name = "nearest" if self._its_mode == "P" else _FILTERS[number]
            return self._then(picture.resize(*whole, name), Image.Image.resize, (whole, resample))

        def crop(self, box: Any = None) -> Any:
            picture, (width, height) = self.deferred_picture, self.size
            if picture is None or box is None:
                return self.as_pillow().crop(box) if box is not None else self.copy()
            left, top, right, bottom = map(int, map(round, box))
            inside = max(left, 0), max(top, 0), min(right, width), min(bottom, height)
            if inside[0] >= inside[2] or inside[1] >= inside[3]:
                return self.as_pillow().crop(box)
            extent = inside[2] - inside[0], inside[3] - inside[1]
            made = picture.crop(*inside[:2], *extent)
            border = inside[0] - left, inside[1] - top, right - inside[2], bottom - inside[3]
            if any(border):
                made = made.pad(*border, [0.0] * made.shape[0])
            return self._then(made, Image.Image.crop, (tuple(box),))

        def transpose(self, method: Any) -> Any:
            picture = self.deferred_picture
            if picture is None or int(method) not in range(len(_TURNS)):
                return self.as_pillow().transpose(method)
            for step in _TURNS[int(method)]:
                picture = getattr(picture, step)()
            return self._then(picture, Image.Image.transpose, (method,))

        def expanded(self, expand: Any, border: Any, fill: tuple[int, ...]) -> Any:
            """ImageOps.expand(), as ``expand``: four borders, one value per channel."""
            made = self.deferred_picture.pad(*border, list(map(float, fill)))
            step = fill[0] if len(fill) == 1 else fill
            out = self._then(made, expand, (tuple(border), step))
            out._its_info = {}  # same as for a new image
            return out

        def putpalette(self, data: Any, rawmode: str = "RGB") -> None:
            if self.deferred_picture is None or self._its_mode != "P" or not isinstance(data, list):
                self.as_pillow().putpalette(data, rawmode)
                return
            self._its_palette = bytes(data), rawmode
            self._steps = (*self._steps, (_put_palette, (data, rawmode)))

        def getpalette(self, rawmode: str | None = "RGB") -> Any:
            if self.deferred_picture is None or self._its_mode != "P":
                return self.as_pillow().getpalette(rawmode)
            one = Image.new("P", (1, 1))
            one.putpalette(*self._palette_data())
            return one.getpalette(rawmode)

        # Methods that Pillow implements on the pixels themselves.

        def load(self) -> Any:
            return self.as_pillow().load()

        def close(self) -> None:
            return None

        def __eq__(self, other: object) -> bool:
            one = other.as_pillow() if isinstance(other, DeferredImage) else other
            return bool(self.as_pillow() == one)

        __hash__ = None  # type: ignore[assignment]  # as Pillow's

        def __copy__(self) -> Any:
            return self.copy()

        def __deepcopy__(self, memo: Any) -> Any:
            return self.copy()

        def __reduce_ex__(self, protocol: Any) -> Any:
            return _same, (self.as_pillow(),)

    def delegated(name: str) -> property:
        def get(self: Any) -> Any:
            return getattr(self.as_pillow(), name)

        def put(self: Any, value: Any) -> None:
            setattr(self.as_pillow(), name, value)

        return property(get, put)

    for name in ("im", "_im", "_size", "_mode", "palette", "readonly", "_readonly", "_exif"):
        setattr(DeferredImage, name, delegated(name))
    # Methods that change an image of a file, or the position in it.
    for name in ("draft", "thumbnail", "verify", "seek", "tell"):
        setattr(DeferredImage, name, _of_real(name))
    return DeferredImage


def _same(image: Any) -> Any:
    return image


def _of_real(name: str) -> Any:
    def call(self: Any, *arguments: Any, **named: Any) -> Any:
        return getattr(self.as_pillow(), name)(*arguments, **named)

    return call


def _put_palette(image: Any, data: Any, rawmode: str) -> Any:
    image.putpalette(data, rawmode)
    return image
