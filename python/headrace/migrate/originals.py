# SPDX-License-Identifier: Apache-2.0
"""Transforms and datasets of torch that still run as Python transforms.

They draw from the global generators of torch, NumPy and Python. For each record these are seeded
from the record's own generator and restored afterwards, so that draws are reproducible.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from headrace import _core
from headrace.dtypes import is_known
from headrace.migrate import program
from headrace.migrate.deferred.library import deferring, picture_of
from headrace.migrate.generators import generators_in
from headrace.migrate.modules import name_of
from headrace.migrate.nesting import Node, OtherForm, node_of
from headrace.migrate.reseeded import Reseeded
from headrace.migrate.seeding import seeded
from headrace.sources.pictures import interleaved, pillow_of

Pixels = np.ndarray[Any, Any]
_untimed = contextlib.nullcontext()


def value_from_pixels(pixels: Pixels, form: str) -> Any:
    """(C, H, W) as "pil", "image" (torchvision's Image), "tensor", "array" or "bgr"."""
    if form == "pil":
        return pillow_of(pixels)
    if form in ("array", "bgr"):
        return pixels[0].copy() if len(pixels) == 1 else interleaved(pixels, form == "bgr")
    import torch

    tensor = torch.from_numpy(np.ascontiguousarray(pixels))
    if form == "image":
        return importlib.import_module("torchvision.tv_tensors").Image(tensor)
    return tensor


def pixels_from_value(value: Any) -> Any:
    """A Pillow image or a tensor as an array; images as (C, H, W)."""
    if hasattr(value, "detach"):
        return value.numpy(force=True)
    array = np.asarray(value)
    if hasattr(value, "getbands"):
        return array[None] if array.ndim == 2 else planar(array)
    return array


def pixels_of(value: Any, form: str) -> Any:
    """An image in a form that ``value_from_pixels`` returns, as (C, H, W)."""
    pixels = pixels_from_value(value)
    if form not in ("array", "bgr"):
        return pixels
    pixels = pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)
    return pixels[::-1] if form == "bgr" else pixels


def planar(rows: Pixels) -> Pixels:
    """(H, W, C) as (C, H, W)."""
    if rows.dtype == np.uint8 and rows.flags.c_contiguous and 1 <= rows.shape[2] <= 4:
        return np.asarray(_core.planar(rows))
    return np.ascontiguousarray(rows.transpose(2, 0, 1))


class Timed:
    """A callable whose calls are timed if it is ``steady``, that is, used for a comparison."""

    steady = False
    __name__: str

    def __init__(self) -> None:
        self.times: list[float] = []  # seconds of this thread's CPU
        self._generators: list[Any] | None = None

    def seeded(self, seed: int) -> contextlib.AbstractContextManager[None]:
        """The same, also seeding generators that it holds."""
        if self._generators is None:
            found = generators_in(vars(self))
            self.renew()
            left = set(map(id, generators_in(vars(self))))
            self._generators = [each for each in found if id(each) in left]
        return seeded(seed, self._generators)

    def renew(self) -> None:
        """Releases the generators that each call creates."""

    def __getstate__(self) -> tuple[int, dict[str, Any], list[program.Entry]]:
        return os.getpid(), vars(self), program.entries(vars(self))

    def __setstate__(self, state: tuple[int, dict[str, Any], list[program.Entry]]) -> None:
        process, own, entries = state
        self.__dict__.update(own)
        if process != os.getpid():
            program.apply(entries)

    def timed(self) -> contextlib.AbstractContextManager[None]:
        return self._timed() if self.steady else _untimed

    @contextlib.contextmanager
    def _timed(self) -> Iterator[None]:
        begin = time.thread_time()
        yield
        self.times.append(time.thread_time() - begin)


class Originals(Timed):
    """Consecutive transforms of torchvision, or user callables, as one step on ``image``. form: the
    input of the first of them, "pil", "image" or "tensor". steady: with the same random draws for
    every record, for comparisons.
    """

    def __init__(
        self, transforms: Sequence[Callable[[Any], Any]], form: str, steady: bool = False
    ) -> None:
        super().__init__()
        self.transforms = list(transforms)
        self.form = form
        self.steady = steady
        self.__name__ = "+".join(name_of(transform) for transform in self.transforms)

    def __call__(self, image: Pixels, rng: np.random.Generator) -> Any:
        with self.timed(), self.seeded(0 if self.steady else int(rng.integers(1 << 63))):
            return pixels_from_value(self.apply(value_from_pixels(image, self.form)))

    def apply(self, value: Any) -> Any:
        for transform in self.transforms:
            value = transform(value)
        return value

    def renew(self) -> None:
        for transform in self.transforms:
            if isinstance(transform, Keyword):
                transform.renew()


class Keyword:
    """``transform(image=image)["image"]`` as a function of the image: the convention of
    Albumentations."""

    def __init__(self, transform: Any, given: str, returned: str) -> None:
        self.transform = transform
        self._given, self._returned = given, returned
        self._reseed = Reseeded(transform)
        self.__name__ = name_of(transform)

    def __call__(self, image: Any) -> Any:
        if hasattr(self.transform, "set_random_seed"):
            self._reseed(int(np.random.randint(1 << 31)))
        return self.transform(**{self._given: image})[self._returned]

    def renew(self) -> None:
        """Replaces the generators that it holds, since each call seeds the previous ones."""
        if hasattr(self.transform, "set_random_seed"):
            self.transform.set_random_seed(int(np.random.randint(1 << 31)))

    def __repr__(self) -> str:
        return f"{self.__name__}({self._given}=image)"


class OnTarget(Timed):
    """A target_transform as a step on the label."""

    def __init__(self, transform: Callable[[Any], Any], steady: bool = False) -> None:
        super().__init__()
        self.transform = transform
        self.steady = steady
        self.__name__ = name_of(transform)

    def __call__(self, label: Any, rng: np.random.Generator) -> Any:
        with self.timed(), self.seeded(0 if self.steady else int(rng.integers(1 << 63))):
            return pixels_from_value(self.transform(int(label)))


class NotLikeTheFirst(TypeError):
    """A record has different fields from record 0, or a value that no field can hold."""


class Fetch(Timed):
    """A map-style dataset as a step: record number in, its fields out. node: record 0's form.

    returns: the declared form of its fields; empty arrays, whose dtype does not count, get it.
    defers: images that it opens are decoded by the engine (headrace.migrate.deferred).
    """

    remedy = (
        'make all records alike in the Dataset, as collate functions require: image.convert("RGB") '
        "of gray images, one size, one dtype"
    )

    def __init__(
        self,
        dataset: Any,
        node: Node,
        returns: Mapping[str, tuple[Any, ...]] | None = None,
        steady: bool = False,
        defers: bool = False,
    ) -> None:
        super().__init__()
        self.dataset = dataset
        self.node = node
        self.defers = defers
        self.returns = dict(returns or {})
        self.steady = steady
        self.__name__ = type(dataset).__name__

    def __call__(self, index: Any, rng: np.random.Generator) -> dict[str, Any]:
        with self.timed():
            return self.fields(int(index), 0 if self.steady else int(rng.integers(1 << 63)))

    def fields(self, index: int, seed: int) -> dict[str, Any]:
        if self.defers:
            try:
                with self.seeded(seed), deferring():
                    return self._fields_of(index, self.dataset[index])
            except Exception:
                record = self._undeferred(index, seed)  # may raise the same exception
                self.defers = False  # the error came from deferred images
                return record
        return self._undeferred(index, seed)

    def _undeferred(self, index: int, seed: int) -> dict[str, Any]:
        with self.seeded(seed):
            record = self.dataset[index]
        return self._fields_of(index, record)

    def _fields_of(self, index: int, record: Any) -> dict[str, Any]:
        try:
            values = self.node.values(record)
        except OtherForm:
            raise NotLikeTheFirst(
                f"record {index} has the fields {_listed(record)}, but the first record has "
                f"{', '.join(self.node.names)}"
            ) from None
        crossed = {name: _field_crossing(index, name, value) for name, value in values.items()}
        return {name: self._as_declared(name, value) for name, value in crossed.items()}

    def _as_declared(self, name: str, value: Any) -> Any:
        plain = not isinstance(value, (str, bytes, _core.DeferredPicture))
        if not plain or value.size or name not in self.returns:
            return value
        dtype, shape = self.returns[name][:2]
        if value.ndim == len(shape):
            return value.astype(dtype)
        empty = [0 if extent < 0 else extent for extent in shape]
        return np.zeros(empty, dtype) if 0 in empty else value


def _listed(record: Any) -> str:
    values = node_of(record).values(record)
    return ", ".join(f"{name} ({type(value).__name__})" for name, value in values.items())


def _field_crossing(index: int, name: str, value: Any) -> Any:
    if (deferred := picture_of(value)) is not None:
        return deferred
    crossed = value_crossing(value)
    if isinstance(crossed, (str, bytes)) or is_known(crossed.dtype):
        return crossed
    raise NotLikeTheFirst(f"{name} of record {index} is {described(value)}")


def described(value: Any) -> str:
    """Describes a value that no field can hold."""
    if isinstance(value, Mapping):
        return f"a dictionary ({', '.join(map(str, value))})"
    kind = type(value).__name__
    return f"{kind} of {value.dtype}" if hasattr(value, "dtype") else kind


def value_crossing(value: Any) -> Any:
    """The value as delivered: text and bytes unchanged, others as arrays of the same shape."""
    return value if isinstance(value, (str, bytes)) else pixels_from_value(value)
