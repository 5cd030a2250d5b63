# SPDX-License-Identifier: Apache-2.0
"""Converts batches of any structure to arrays that the engine copies, and back: torch tensors of
every dtype and subclass, numeric NumPy arrays, and ``headrace.Array``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from headrace import _core
from headrace.delivery.nested import Parts, take_apart
from headrace.errors import declare

_ELSEWHERE = declare(
    "HR0884",
    "config",
    "tensor on another device",
    "prefetch() copies batches from host memory. A tensor already on the device is passed on "
    "unchanged; a tensor on another device would be copied through the host silently. Make batches "
    "on the host, or name the device they are on.",
)
_NO_ARRAYS = declare(
    "HR0885",
    "config",
    "nothing to copy in the batch",
    "prefetch() looks for torch tensors, numeric NumPy arrays and other objects that export "
    "DLPack, in lists, tuples, named tuples, dictionaries and dataclasses; other values are passed "
    "on. A batch without arrays or tensors usually means that a collate function is missing.",
)
_NOT_COPYABLE = declare(
    "HR0886",
    "unsupported",
    "array cannot be copied to a device",
    "Sparse and quantized tensors, and NumPy arrays of objects or complex numbers, are not a "
    "single block of memory or have no dtype on a device. Convert them to dense tensors in the "
    "source.",
)


class Opened(NamedTuple):
    """A batch that is being copied: its arrays, and for each the function that turns the copy into
    the framework's array.
    """

    parts: Parts
    finish: list[Callable[[_core.Array], Any]]

    def closed(self, arrays: list[_core.Array]) -> Any:
        """The batch made of the copies."""
        made = zip(self.finish, arrays, strict=True)
        return self.parts.put_together([finish(array) for finish, array in made])


def open_batch(batch: Any, device: str) -> tuple[list[Any], list[bool], Opened]:
    """Arrays for the engine, whether each is pinned, and how to rebuild the batch."""
    parts = take_apart(batch, lambda value: _is_array(value, device))
    if not parts.leaves and not _any_on(batch, device):
        raise _NO_ARRAYS.error(f"{type(batch).__name__}", hint="see collate_fn= of the source")
    arrays, pinned, finish = [], [], []
    for leaf in parts.leaves:
        prepare = _from_torch if _is_torch(leaf) else _from_numpy
        array, is_pinned, finisher = prepare(leaf, device)
        arrays.append(array)
        pinned.append(is_pinned)
        finish.append(finisher)
    return arrays, pinned, Opened(parts, finish)


def _is_torch(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _is_array(value: Any, device: str) -> bool:
    if _is_torch(value):
        return not _is_there(value, device)
    if isinstance(value, np.ndarray):
        if value.dtype.kind in "Oc":
            raise _NOT_COPYABLE.error(f"a NumPy array of {value.dtype}", hint="a dtype of numbers")
        return value.dtype.kind in "biuf"
    return isinstance(value, _core.Array)


def _is_there(tensor: Any, device: str) -> bool:
    if tensor.device.type == "cpu":
        return False
    if str(tensor.device) == device:
        return True
    raise _ELSEWHERE.error(
        f"a tensor is on {tensor.device}, but batches go to {device}",
        hint="make batches on the CPU",
    )


def _any_on(batch: Any, device: str) -> bool:
    return bool(take_apart(batch, lambda value: _is_torch(value)).leaves)


def _from_torch(tensor: Any, device: str) -> tuple[Any, bool, Callable[[_core.Array], Any]]:
    torch = sys.modules["torch"]
    if tensor.layout != torch.strided or tensor.is_quantized:
        kind = "quantized" if tensor.is_quantized else str(tensor.layout)
        raise _NOT_COPYABLE.error(f"a {kind} tensor of shape {tuple(tensor.shape)}")
    like = tensor
    dense = tensor.detach().resolve_conj().resolve_neg().as_subclass(torch.Tensor)
    if not dense.is_contiguous() and not _lies_together(dense):
        dense = dense.contiguous()
    shape, dtype = dense.shape, dense.dtype
    by_bytes = str(dtype).removeprefix("torch.") not in _core.DType.__members__
    if by_bytes:  # complex, float8: the same bytes under another dtype
        dense = dense.contiguous().reshape(-1).view(torch.uint8)

    def finish(array: _core.Array) -> Any:
        out = torch.from_dlpack(array)
        if by_bytes:
            out = out.view(dtype).reshape(shape)
        return out if type(like) is torch.Tensor else _as_subclass(out, like)

    is_pinned = device.startswith("cuda") and dense.is_pinned()
    return dense, is_pinned, finish


def _lies_together(tensor: Any) -> bool:
    """Whether its elements fill one block of memory, in any order of axes (channels_last)."""
    step = 1
    axes = [(s, n) for s, n in zip(tensor.stride(), tensor.shape, strict=True) if n != 1]
    for stride, extent in sorted(axes):
        if stride != step:
            return False
        step *= extent
    return True


def _as_subclass(tensor: Any, like: Any) -> Any:
    """Keeps the subclass: torchvision's Image, BoundingBoxes and the like."""
    tv_tensors = sys.modules.get("torchvision.tv_tensors")
    if tv_tensors is not None and isinstance(like, tv_tensors.TVTensor):
        return tv_tensors.wrap(tensor, like=like)
    return tensor.as_subclass(type(like))


def _from_numpy(array: Any, device: str) -> tuple[Any, bool, Callable[[_core.Array], Any]]:
    if isinstance(array, np.ndarray):
        if not array.dtype.isnative:
            array = array.astype(array.dtype.newbyteorder("="))
        if not (array.flags.c_contiguous or array.flags.f_contiguous):
            array = array.copy(order="C")
    if not device.startswith("cuda"):
        return array, False, np.asarray
    torch = sys.modules.get("torch")
    return array, False, torch.from_dlpack if torch is not None else lambda value: value
