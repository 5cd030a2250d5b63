# SPDX-License-Identifier: Apache-2.0
"""A tensor of a deferred image, which records its conversion to floats and its normalization.

All other operations use the tensor's values.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from headrace.errors import Error


@functools.cache
def tensor_class() -> Any:
    import torch

    class DeferredTensor(torch.Tensor):
        """(C, H, W), uint8 or float32. Its memory is on the device "meta", without values, so any
        access except by torch's operations raises."""

        of_image: Any
        _values: Any
        _extents: Any
        _its_dtype: Any
        deferred_picture: Any  # None: it has values
        made_by: tuple[Any, ...]  # of a Pillow image: functions, applied in order
        image: Any
        is_whole: bool  # floats converted from bytes, not yet divided by 255

        @property
        def shape(self) -> Any:  # type: ignore[override]
            return self._extents

        @property
        def dtype(self) -> Any:  # type: ignore[override]
            return self._its_dtype

        @property
        def device(self) -> Any:  # type: ignore[override]
            return torch.device("cpu")

        def is_floating_point(self) -> bool:
            return bool(self._its_dtype.is_floating_point)

        def in_memory(self) -> Any:
            """Converts itself to the real tensor."""
            if self._values is None:
                self._values = self._from_engine()
                if self._values is None:
                    image = self.image.as_pillow()
                    self._values = functools.reduce(_done, self.made_by, image)
                self.deferred_picture = None
            return self._values

        def _from_engine(self) -> Any:
            try:
                pixels = self.deferred_picture.pixels()
            except Error:
                return None
            if pixels is None:
                return None
            values = torch.from_numpy(np.asarray(pixels))
            return values.to(torch.float32) if self.is_whole else values

        def then(self, picture: Any, step: Any, is_whole: bool = False) -> Any:
            return made(picture, self.image, (*self.made_by, step), is_whole)

        def clone(self, *more: Any, **named: Any) -> Any:
            if self.deferred_picture is None or more or named:
                return self.in_memory().clone(*more, **named)
            return self.then(self.deferred_picture, torch.Tensor.clone, self.is_whole)

        def to(self, *wanted: Any, **named: Any) -> Any:
            dtype = wanted[0] if len(wanted) == 1 and not named else named.get("dtype")
            if self.deferred_picture is not None and len(wanted) + len(named) == 1:
                if dtype is self._its_dtype:
                    return self
                if dtype is torch.float32 and self._its_dtype is torch.uint8:
                    return self.then(self.deferred_picture, _to_floats, is_whole=True)
            return self.in_memory().to(*wanted, **named)

        def float(self) -> Any:
            return self.to(torch.float32)

        def div(self, by: Any, **named: Any) -> Any:  # type: ignore[override]
            divides = type(by) in (int, float) and by == 255 and not named
            if self.deferred_picture is not None and self.is_whole and divides:
                return self.then(self.deferred_picture.to_unit(), _by_255)
            return self.in_memory().div(by, **named)

        __truediv__ = div

        def contiguous(self, *more: Any, **named: Any) -> Any:
            if self.deferred_picture is None or more or named:
                return self.in_memory().contiguous(*more, **named)
            return self

        def __reduce_ex__(self, protocol: Any) -> Any:
            return self.in_memory().__reduce_ex__(protocol)

        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return func(*map(_real, args), **{k: _real(v) for k, v in (kwargs or {}).items()})

    def _real(value: Any) -> Any:
        if type(value) is DeferredTensor:
            return value.in_memory()
        if type(value) in (list, tuple):
            return type(value)(map(_real, value))
        return value

    def _done(value: Any, step: Any) -> Any:
        return step(value)

    def _to_floats(tensor: Any) -> Any:
        return tensor.to(torch.float32)

    def _by_255(tensor: Any) -> Any:
        return tensor / 255

    def made(picture: Any, image: Any, made_by: tuple[Any, ...], is_whole: bool = False) -> Any:
        dtype = torch.float32 if is_whole else getattr(torch, picture.dtype)
        out = torch.empty(picture.shape, dtype=dtype, device="meta").as_subclass(DeferredTensor)
        out.deferred_picture, out.image, out.made_by = picture, image, made_by
        out.is_whole, out._values = is_whole, None
        out._extents, out._its_dtype = torch.Size(picture.shape), dtype
        return out

    DeferredTensor.of_image = made
    return DeferredTensor
