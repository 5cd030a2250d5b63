# SPDX-License-Identifier: Apache-2.0
"""Transforms on one image or record, without a loader.

Each form of record (names, kinds, dtypes) has a loader over one record, whose values are replaced
by each call: the engine's plan is made once, and a call costs the transforms plus about 0.2 ms.
"""

from __future__ import annotations

import os
import random
import sys
import threading
from collections.abc import Mapping
from typing import Any

import numpy as np

from headrace import _core, arguments
from headrace.errors import declare
from headrace.inspection import has_scope
from headrace.loader.assembly import Assembly
from headrace.loader.form import each
from headrace.loader.numpy_arrays import hand_over
from headrace.loader.options import completed
from headrace.plain_array import plain_array
from headrace.sources.objects import source_from_object
from headrace.sources.pictures import CHANNEL_COUNTS, WHICH_AXIS, is_pillow, pillow_of
from headrace.transforms import flatten

_NEEDS_OTHERS = declare(
    "HR0170",
    "config",
    "transform needs several records",
    "MixUp and CutMix mix the records of a batch, Mosaic and CopyPaste mix in other records of "
    "the dataset. They run in a loader: hr.Loader(source, [...]).",
)

_PICTURES = ("image", "mask")
_SAMPLES = ("uint8", "uint16", "float16", "float32")
_MOST_FORMS = 8  # forms of records for which a thread keeps loaders


class Compose:
    """A list of transforms as a function of one image or record, for use in your own Dataset.

    Args:
        transforms: as those of a loader: transforms, callables, lists of them; except those that
            combine several records.
        kinds: kinds of fields whose names do not determine them, as in ``hr.open``.

    >>> from headrace import transforms as T
    >>> crop = Compose([T.RandomCrop(4), T.RandomHorizontalFlip()])
    >>> pixels = np.arange(6 * 6 * 3, dtype=np.uint8).reshape(6, 6, 3)
    >>> crop(pixels, seed=3).shape, np.array_equal(crop(pixels, seed=3), crop(pixels, seed=3))
    ((4, 4, 3), True)
    """

    def __init__(self, transforms: Any, *, kinds: Mapping[str, str] | None = None) -> None:
        self.transforms = flatten(transforms)
        self.kinds = dict(kinds or {})
        for step in self.transforms:
            if has_scope(step, ("batch", "mixed_in")):
                raise _NEEDS_OTHERS.error(f"{step!r} needs other records")

    def __call__(self, value: Any, *, seed: int | None = None) -> Any:
        """The transformed image or record.

        Args:
            value: an image, or a dictionary of fields as ``hr.open`` takes them (``"image"``,
                ``"mask"``, ``"boxes"``, ``"label"`` ...). An image is a Pillow image, an array of
                shape (H, W, C), (C, H, W) or (H, W), a tensor of shape (C, H, W), or the bytes of
                an image file, of which only the part that the transforms use is decoded. In an
                array of three axes, the channel axis is the first one if its length is 1, 3 or 4,
                otherwise the last one; if neither length is 1, 3 or 4, the array is rejected.
                Pillow images are converted as with ``convert("RGB")`` (palettes are applied, alpha
                is dropped), except for the modes L, I;16 and F; a mask of mode P keeps its class
                ids.
            seed: the draws are a function of it. None: it is drawn from torch's global generator if
                torch is imported, otherwise from Python's ``random``, so a DataLoader's workers
                differ.

        Returns:
            The result in the form of the input: Pillow images (of uint8; other dtypes become arrays
            (C, H, W)), arrays with the same channel axis, tensors; for encoded bytes an array (C,
            H, W).

        Raises:
            hr.DataError: an image that cannot be decoded, a value that a transform rejects.
        """
        is_record = isinstance(value, Mapping)
        record = dict(value) if is_record else {"image": value}
        number = _drawn() if seed is None else arguments.integer("seed", seed)
        out = self._loader(record).made(record, number)
        return out if is_record else out["image"]

    def __repr__(self) -> str:
        return f"Compose({self.transforms!r})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def _loader(self, record: Mapping[str, Any]) -> _OneRecord:
        """This thread's loader for records of this form."""
        kept: dict[Any, _OneRecord] = _threads.__dict__.setdefault("kept", {})
        key = (os.getpid(), id(self), *(self._form(*item) for item in record.items()))
        found = kept.pop(key, None)
        if found is None or found.owner is not self:
            found = _OneRecord(self, record)
            while len(kept) >= _MOST_FORMS:
                kept.pop(next(iter(kept))).close()
        kept[key] = found  # most recently used last
        return found

    def _form(self, name: str, value: Any) -> tuple[Any, ...]:
        """The properties of a value that the plan depends on: type, dtype, axes and fixed
        extents."""
        if is_pillow(value):
            return (name, "pillow", value.mode)
        if isinstance(value, (bytes, str, int, float)):
            return (name, type(value))
        array = plain_array(value)
        shape: Any = array.shape
        stays = (shape[0] in CHANNEL_COUNTS, *shape[1:]) if array.ndim == 3 else shape[1:]
        if self.kinds.get(name, name) in _PICTURES and array.dtype.name in _SAMPLES:
            channels = _shape(value)  # the other two extents may differ
            stays = channels and (channels[0], shape[0] == channels[0])
        return (name, type(value), array.dtype.str, array.ndim, stays)


_threads = threading.local()


def _drawn() -> int:
    torch = sys.modules.get("torch")
    if torch is None:
        return random.getrandbits(62)
    return int(torch.randint(1 << 62, (), dtype=torch.int64))


class _OneRecord:
    """A loader over one record, whose values are given at each call."""

    def __init__(self, owner: Compose, record: Mapping[str, Any]) -> None:
        self.owner = owner
        self._record = dict(record)
        kinds = {"image": "image"} | owner.kinds if "image" in record else owner.kinds
        images = {name: record[name] for name, kind in kinds.items() if kind in _PICTURES}
        shapes = {name: shape for name, value in images.items() if (shape := _shape(value))}
        first = source_from_object(self, kinds=kinds, shapes=shapes)
        shapes |= {field.name: _opened(field) for field in first.schema if field.shape}
        source = source_from_object(self, kinds=kinds, shapes=shapes)
        (reader,) = source.readers
        self._forms = reader.forms
        keywords = completed(
            {"batch_size": 1, "threads": 1, "seed": 0, "shard": False, "ragged": "list"}
        )
        # A loader that makes batches by number starts no thread, so a process may fork after it.
        self._assembly = Assembly(source, owner.transforms, keywords, {"on_demand": True})
        self._names = self._assembly.field_names()

    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: int) -> dict[str, Any]:
        return self._record

    def made(self, record: dict[str, Any], seed: int) -> dict[str, Any]:
        self._record = record
        _, _, values = self._assembly.engine().batch(seed, 0)
        return {
            name: self._like(name, record.get(name), each(hand_over, value)[0])
            for name, value in zip(self._names, values, strict=True)
        }

    def close(self) -> None:
        self._assembly.engine().close()

    def _like(self, name: str, given: Any, made: Any) -> Any:
        """A result in the form of its input: of the same library, with the same axes."""
        if not isinstance(made, (np.ndarray, np.generic)):
            return made
        if isinstance(given, (int, float)):
            return made.item()
        array = np.asarray(made)
        if hasattr(given, "detach"):
            return sys.modules["torch"].from_numpy(np.array(array))
        if name not in self._forms or isinstance(given, bytes):
            return np.array(array)
        if is_pillow(given):
            return _pillow(array)
        if np.ndim(given) == 2 and len(array) == 1:
            return np.array(array[0])
        return np.ascontiguousarray(np.moveaxis(array, 0, self._forms[name].axis or 0))


def _shape(image: Any) -> tuple[int, ...] | None:
    """(C, -1, -1) of an array of three axes; None for anything else. Raises HR0615 if the channel
    axis is ambiguous.
    """
    shape = tuple(getattr(image, "shape", ()))
    if len(shape) != 3:
        return None
    if hasattr(image, "detach") or shape[0] in CHANNEL_COUNTS:  # tensors are (C, H, W)
        return (shape[0], -1, -1)
    if shape[2] not in CHANNEL_COUNTS:
        raise WHICH_AXIS.error(
            f"an image of shape {shape}: neither its first nor its last axis is 1, 3 or 4",
            hint="pass a (C, H, W) image as a tensor: torch.from_numpy(image)",
        )
    return (shape[2], -1, -1)


def _opened(field: Any) -> tuple[int, ...]:
    """The field's shape, with -1 for the axes in which records may differ."""
    is_picture = str(field.kind) in _core.picture_kinds()
    return (field.shape[0], -1, -1) if is_picture else (-1, *field.shape[1:])


def _pillow(planes: np.ndarray[Any, Any]) -> Any:
    """A Pillow image of (C, H, W), if Pillow has a mode for that dtype."""
    is_image = planes.dtype == np.uint8 and len(planes) in CHANNEL_COUNTS
    return pillow_of(planes) if is_image else np.array(planes)
