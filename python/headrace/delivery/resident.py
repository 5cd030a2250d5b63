# SPDX-License-Identifier: Apache-2.0
"""Small datasets that stay in memory, where each batch is a slice or a gather.

>>> import numpy as np
>>> import headrace as hr
>>> data = {"image": np.zeros((10, 1, 4, 4), np.uint8), "label": np.arange(10)}
>>> batches = hr.resident(data, batch_size=4, shuffle=True)
>>> [len(batch.label) for batch in batches]
[4, 4, 2]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from headrace import _core
from headrace.errors import declare
from headrace.frameworks.torch_view import TorchBatches
from headrace.loader import Loader
from headrace.loader.form import Form, devices_named
from headrace.loader.views import Delivered
from headrace.plain_array import plain_array
from headrace.sources import Source
from headrace.sources import open as open_source
from headrace.sources.column_list import ColumnList

_NOT_ARRAYS = declare(
    "HR0893",
    "config",
    "arrays do not form records",
    "resident() takes what headrace.open takes, or arrays and tensors with one record per index "
    "of the first axis: a dictionary that names them, or a tuple or list of them, as in a "
    "TensorDataset. Values are numbers of the usual dtypes. They are not copied, so they must "
    "not change while batches are taken.",
)
_NO_FRACTION = declare(
    "HR0895",
    "config",
    "fraction needs a device",
    "fraction= is the fraction of records kept on a device; the others stay in host memory. "
    "Without a device, all records stay in host memory. To keep part of a dataset in memory and "
    "read the rest from disk, use a Loader with cache=.",
)


class Resident(Loader):
    """A loader whose records stay in memory; ``headrace.resident`` makes one."""

    def __init__(
        self,
        source: Source,
        transforms: Any,
        device: Any,
        view: bool,
        fraction: float,
        **given: Any,
    ) -> None:
        self._kept = {"view": view, "fraction": fraction}
        self._device = device if devices_named(device) else None
        super().__init__(source, transforms, resident=True, **given)

    def __iter__(self) -> Iterator[Any]:
        return super().__iter__() if self._device is None else iter(self.dlpack())

    def iterate_as(self, form: Form) -> Iterator[Any]:
        if not form.devices and self._kept["fraction"] != 1:
            raise _NO_FRACTION.error(
                f"fraction={self._kept['fraction']} with batches on the host",
                hint='omit fraction=, or set device="cuda"',
            )
        return super().iterate_as(form)

    def dlpack(self, device: Any = None, batch: str = "tuple", depth: int = 2) -> Delivered:
        """See Loader.dlpack; device: by default that of the data."""
        return super().dlpack(self._device if device is None else device, batch, depth)

    def torch(self, device: Any = None, batch: str = "tuple", depth: int = 2) -> TorchBatches:
        """See Loader.torch; device: by default that of the data."""
        return super().torch(self._device if device is None else device, batch, depth)


def resident(
    data: Any,
    batch_size: int | None = None,
    shuffle: bool | str = False,
    last_batch: str = "keep",
    device: Any = "cpu",
    seed: int = 0,
    *,
    view: bool = False,
    transforms: Any = (),
    fraction: float = 1.0,
    **given: Any,
) -> Resident:
    """Batches of a dataset that stays in memory.

    A Loader like any other (``.torch()``, ``len``, ``state_dict``, ``set_epoch``), in the same
    order as a Loader over the same records with the same seed. Batches are copies.

    Args:
        data: arrays or tensors whose first axis indexes the records, as a dictionary or a tuple; on
            the host they are used in place. Arrays of a tuple are named image (uint8, three or four
            axes), label (integers, one axis) or data; additional ones of the same kind get a number
            (label2). Or what ``headrace.open`` takes. batch_size, shuffle, last_batch, seed, and
            other keywords: the Loader's.
        device: "cpu", or "cuda" and the like: the data is kept on that device, and batches are made
            there.
        view: batches are slices of the data, not copies, so changes to a batch change the data.
            Only for unshuffled records without transforms per epoch.
        transforms: those before the first random one run once, and their result (uint8) is kept;
            the others run for each batch, on a device by one kernel if possible. With transforms,
            uint8 arrays named image or mask are images, (C, H, W); without transforms, fields are
            delivered unchanged.
        fraction: the fraction of records kept on the device, above 0 and at most 1; the others stay
            in host memory and are copied when needed. The batches are the same. Without a device it
            is an error.

    Raises ConfigError HR0893 for arrays that do not form records, HR0890 if the records do not fit
    into memory_limit, HR0892 if views are impossible, HR0895 for a fraction without a device;
    ResourceLimitError HR0891 if they do not fit on the device.
    """
    return Resident(
        _source_of(data, plain=not transforms),
        transforms,
        device,
        view,
        fraction,
        batch_size=batch_size,
        shuffle=shuffle,
        last_batch=last_batch,
        seed=seed,
        **given,
    )


def _source_of(data: Any, plain: bool) -> Source:
    """A source over the arrays in place, or the result of ``open``."""
    if isinstance(data, Mapping):
        named = dict(data)
    elif isinstance(data, (tuple, list)) and data and all(map(_is_array, data)):
        named = _named(data)
    elif _is_array(data):
        named = _named([data])
    elif hasattr(data, "tensors") and all(map(_is_array, data.tensors)):  # a TensorDataset
        named = _named(data.tensors)
    else:
        return open_source(data)
    if not named:
        raise _NOT_ARRAYS.error("no arrays were given", hint='hr.resident({"image": images}, 128)')
    arrays = {str(name): _array_of(str(name), value) for name, value in named.items()}
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        text = ", ".join(f"{name} has {count}" for name, count in lengths.items())
        raise _NOT_ARRAYS.error(
            f"{text} records", hint="the first axis of each array must index the records"
        )
    columns = ColumnList()
    for name, array in arrays.items():
        is_picture = name.rstrip("s") in ("image", "mask") and array.dtype == np.uint8
        kind = None if not plain and (is_picture or name == "label") else "tensor"
        columns.add_array(name, array, named[name], kind=kind)
    return columns.source("arrays in memory")


def _is_array(value: Any) -> bool:
    return hasattr(value, "__array__") and getattr(value, "shape", ()) != ()


def _named(values: Sequence[Any]) -> dict[str, Any]:
    """Names for values without one, from their dtype and axes."""
    named: dict[str, Any] = {}
    for value in values:
        dtype, axes = str(value.dtype).removeprefix("torch."), len(value.shape)
        if dtype == "uint8" and axes in (3, 4):
            base = "image"
        else:
            base = "label" if axes == 1 and dtype.lstrip("u").startswith("int") else "data"
        taken = sum(name.rstrip("0123456789") == base for name in named)
        named[base if not taken else f"{base}{taken + 1}"] = value
    return named


def _array_of(name: str, value: Any) -> np.ndarray[Any, Any]:
    """The values for the engine, without a copy if they are dense and on the host."""
    array = np.empty((), object)
    if hasattr(value, "__array__"):
        try:
            array = np.ascontiguousarray(plain_array(value))
        except (TypeError, ValueError) as failure:  # masked, or bfloat16
            raise _NOT_ARRAYS.error(
                f"{name} is {failure}",
                hint="keep uint8 or float32, and convert in the transforms: ToDtype('bfloat16')"
                if "bfloat16" in str(getattr(value, "dtype", ""))
                else "",
            ) from None
    if array.dtype.name not in _core.DType.__members__ or not array.ndim:
        raise _NOT_ARRAYS.error(
            f"{name} is {type(value).__name__} of {array.dtype}",
            hint="an array or tensor of numbers with one record per index of the first axis",
        )
    if len(array) == 0:
        raise _NOT_ARRAYS.error(f"{name} has no records")
    return array
