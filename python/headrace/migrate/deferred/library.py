# SPDX-License-Identifier: Apache-2.0
"""Replacements for functions of Pillow and torchvision that return or accept deferred images.

The replacements are installed in the modules while a thread is inside ``deferring()``, and behave
normally for everything else: images of other threads are opened as usual.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

from headrace import _core
from headrace.migrate.deferred.image import image_class, is_deferred, opened
from headrace.migrate.deferred.tensor import tensor_class


class _Inside(threading.local):
    depth = 0
    opened = 0  # number of images


_inside = _Inside()


@contextlib.contextmanager
def deferring() -> Iterator[None]:
    """Inside this context, this thread's images are opened deferred. One thread at a time
    (headrace.migrate.seeding)."""
    replaced = _replace()
    _inside.depth += 1
    try:
        yield
    finally:
        _inside.depth -= 1
        for space, name, real, ours in replaced:
            if space.get(name) is ours:
                space[name] = real


def count_opened() -> int:
    """The number of images opened deferred on this thread."""
    return _inside.opened


def can_defer() -> bool:
    """Whether the process has a version of Pillow whose images can be deferred."""
    image = sys.modules.get("PIL.Image")
    return image is not None and hasattr(image.Image, "im") and hasattr(image.Image, "_new")


def _replace() -> list[tuple[dict[str, Any], str, Any, Any]]:
    """For each loaded module: the function's name, the module, the original and the replacement."""
    out = []
    for module, functions in _REPLACED.items():
        if module not in sys.modules:
            continue
        space = vars(sys.modules[module])
        for name, make in functions.items():
            real = space.get(name)
            if real is None or hasattr(real, "headrace_replaces"):
                continue
            space[name] = ours = _replacement(make, real)
            out.append((space, name, real, ours))
    return out


@functools.lru_cache(64)
def _replacement(make: Callable[..., Any], real: Callable[..., Any]) -> Any:
    ours: Any = functools.wraps(real)(make(real))
    ours.headrace_replaces = real
    return ours


def _open(real: Callable[..., Any]) -> Callable[..., Any]:
    def open(fp: Any, *more: Any, **named: Any) -> Any:
        if not _inside.depth or more or named:
            return real(fp, *more, **named)
        data, given = _bytes_of(fp)
        image = opened(data, real, given) if data else None
        if image is None:
            return real(fp)
        _inside.opened += 1
        return image

    return open


def _bytes_of(given: Any) -> tuple[bytes, Any]:
    """A file's bytes, and its name if given; None if it cannot be read twice."""
    if isinstance(given, (str, bytes, os.PathLike)):
        with open(given, "rb") as file:
            return file.read(), os.fspath(given)
    try:
        begin = given.tell()
        data = given.read()
        given.seek(begin)
    except (AttributeError, OSError, ValueError):
        return b"", None
    return (data if isinstance(data, bytes) else b""), None


def _expand(real: Callable[..., Any]) -> Callable[..., Any]:
    from PIL import ImageOps

    def expand(image: Any, border: Any = 0, fill: Any = 0) -> Any:
        if not is_deferred(image):
            return real(image, border, fill)
        borders = ImageOps._border(border)
        channels = image.deferred_picture.shape[0]
        values = fill if isinstance(fill, (tuple, list)) else (fill,)
        if values == (0,):
            values = (0,) * channels
        plain = len(values) == channels and all(type(v) is int and 0 <= v < 256 for v in values)
        if min(borders) < 0 or not plain or type(image) is not image_class():
            return real(image, border, fill)
        return image.expanded(real, borders, tuple(values))

    return expand


def _to_tensor(real: Callable[..., Any]) -> Callable[..., Any]:
    import torch

    def to_tensor(pic: Any) -> Any:
        if not is_deferred(pic) or torch.get_default_dtype() is not torch.float32:
            return real(pic)
        return tensor_class().of_image(pic.deferred_picture.to_unit(), pic, (real,))

    return to_tensor


def _pil_to_tensor(real: Callable[..., Any]) -> Callable[..., Any]:
    def pil_to_tensor(pic: Any) -> Any:
        if not is_deferred(pic):
            return real(pic)
        return tensor_class().of_image(pic.deferred_picture, pic, (real,))

    return pil_to_tensor


def _convert_image_dtype(real: Callable[..., Any]) -> Callable[..., Any]:
    import torch

    def convert_image_dtype(image: Any, dtype: Any = torch.float) -> Any:
        bytes_alone = _is_tensor_of(image, torch.uint8)
        if not bytes_alone or dtype is not torch.float32:
            return real(image, dtype)
        picture = image.deferred_picture.to_unit()
        return image.then(picture, functools.partial(real, dtype=dtype))

    return convert_image_dtype


def _normalize(real: Callable[..., Any]) -> Callable[..., Any]:
    import torch

    def normalize(tensor: Any, mean: Any, std: Any, inplace: bool = False) -> Any:
        lists = isinstance(mean, (list, tuple)) and isinstance(std, (list, tuple))
        if inplace or not lists or not _is_tensor_of(tensor, torch.float32) or tensor.is_whole:
            return real(tensor, mean, std, inplace)
        channels = tensor.shape[0]
        if len(mean) != channels or len(std) != channels or 0 in std:
            return real(tensor, mean, std, inplace)
        picture = tensor.deferred_picture.normalize([*map(float, mean)], [*map(float, std)])
        return tensor.then(picture, functools.partial(real, mean=mean, std=std))

    return normalize


def _is_tensor_of(value: Any, dtype: Any) -> bool:
    return (
        type(value) is tensor_class()
        and value.deferred_picture is not None
        and value.dtype is dtype
    )


_REPLACED: dict[str, dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]]] = {
    "PIL.Image": {"open": _open},
    "PIL.ImageOps": {"expand": _expand},
    "torchvision.transforms.functional": {
        "to_tensor": _to_tensor,
        "pil_to_tensor": _pil_to_tensor,
        "convert_image_dtype": _convert_image_dtype,
        "normalize": _normalize,
    },
}


def picture_of(value: Any) -> _core.DeferredPicture | None:
    """What the engine should make from a record's value; None: nothing."""
    torch = sys.modules.get("torch")
    if torch is None or type(value) is not tensor_class():
        return None
    if value.is_whole:
        value.in_memory()
    picture: _core.DeferredPicture | None = value.deferred_picture
    return picture
