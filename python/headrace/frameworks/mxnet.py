# SPDX-License-Identifier: Apache-2.0
"""MXNet's NDArrays over a batch's memory, and its DataIter."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from headrace import _core
from headrace.errors import declare, did_you_mean
from headrace.loader.viewed import ViewedLoader
from headrace.loader.views import Delivered, Field, delivered_fields

_NO_DTYPE = declare(
    "HR0805",
    "unsupported",
    "dtype not supported by MXNet",
    "MXNet's NDArray supports float16, float32, float64, uint8, int8, int32 and int64; bool is "
    "delivered as uint8. End the transforms with ToDtype to one of these dtypes, or omit the field "
    "with fields=.",
)
_NOT_IN_A_BATCH = declare(
    "HR0806",
    "config",
    "field not supported by DataBatch",
    "MXNet's DataBatch contains arrays with one row per record. Text, bytes, keys and records of "
    "varying shape are lists: omit them with fields=, or make the shapes equal with a transform "
    "(Resize, Pad). data= and label= select fields that the loader delivers.",
)

_DTYPES = ("float32", "float64", "float16", "uint8", "int32", "int8", "int64")
_NOT_DATA = ("id", "valid")  # index and pad of a DataBatch


def make_hand_over(context: Any = None) -> Callable[[_core.Array], Any]:
    """``array -> NDArray``; on the host without a copy, except that bool becomes uint8."""
    import mxnet

    def on_host(array: _core.Array) -> Any:
        if array.dtype == "bool":
            return mxnet.nd.array(np.asarray(array).view(np.uint8), dtype="uint8")
        if array.dtype not in _DTYPES:
            raise _NO_DTYPE.error(f"this field is {array.dtype}", hint="ToDtype('float32')")
        return mxnet.nd.from_dlpack(array.in_memory_order().__dlpack__())

    if context is None:
        return on_host
    return lambda array: on_host(array).as_in_context(context)


class MxnetBatches(Delivered):
    """Batches as ``mxnet.io.DataBatch``, one epoch until ``reset()``.

    As MXNet's own iterators do, it ends after an epoch, and ``reset()`` begins the next; so does a
    new ``for`` loop after the end. If the loader delivers ``id`` and ``valid``, they become a
    batch's ``index`` and ``pad``.
    """

    def __init__(
        self,
        loader: ViewedLoader,
        context: Any,
        data: Sequence[str] | None,
        label: Sequence[str] | None,
    ) -> None:
        super().__init__(loader, make_hand_over(context))
        self._fields_of = delivered_fields(loader)
        self._data, self._label = _divided(self._fields_of, data, label)
        self._run: Iterator[Any] | None = None
        self._ended = False
        self._present: Any = None  # for iter_next() and related calls

    @property
    def provide_data(self) -> list[Any]:
        """A DataDesc (name, shape, dtype, layout) for each array of a full batch's data."""
        return self._descriptions(self._data)

    @property
    def provide_label(self) -> list[Any]:
        """A DataDesc for each array of a full batch's labels."""
        return self._descriptions(self._label)

    def __iter__(self) -> Iterator[Any]:
        if self._ended:
            self.reset()
        return self

    def __next__(self) -> Any:
        return self.next()

    def next(self) -> Any:
        """The next DataBatch; StopIteration at the end of the epoch."""
        import mxnet

        if self._run is None:
            self._run, self._ended = super().__iter__(), False
        try:
            batch = next(self._run)
        except StopIteration:
            self._ended = True
            raise
        return mxnet.io.DataBatch(
            data=[batch[name] for name in self._data],
            label=[batch[name] for name in self._label],
            pad=self._padding(),
            index=batch["id"].asnumpy() if "id" in batch._fields else None,
            provide_data=[_described(d, batch[d.name]) for d in self.provide_data],
            provide_label=[_described(d, batch[d.name]) for d in self.provide_label],
        )

    def reset(self) -> None:
        """Starts the next epoch, or this one again if no batch was taken."""
        self._run, self._ended = None, False

    def set_epoch(self, epoch: int) -> None:
        super().set_epoch(epoch)
        self.reset()

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        super().load_state_dict(state)
        self.reset()

    def iter_next(self) -> bool:
        """Advances to the next batch, which the methods below refer to."""
        self._present = next(self, None)
        return self._present is not None

    def getdata(self) -> list[Any]:
        return list(self._present.data)

    def getlabel(self) -> list[Any]:
        return list(self._present.label)

    def getindex(self) -> Any:
        return self._present.index

    def getpad(self) -> int:
        return int(self._present.pad)

    def _padding(self) -> int:
        """Number of rows at the end of the current batch that repeat records to fill it up."""
        if self.loader.assembly.given["last_batch"] != "pad":
            return 0
        assembly, state = self.loader.assembly, self.loader.present_state()
        shard, records = assembly.shard, assembly.engine().state()["records"]
        rows = state["global_batch"] // shard.world_size
        begin = (state["batch"] - 1) * state["global_batch"] + shard.rank * rows
        return min(max(begin + rows - records, 0), rows)

    def _descriptions(self, names: Sequence[str]) -> list[Any]:
        return [_description(name, self._fields_of[name], self.batch_size) for name in names]


def make_batches(
    loader: ViewedLoader, context: Any, data: Sequence[str] | None, label: Sequence[str] | None
) -> MxnetBatches:
    """Makes an MxnetBatches that is also an mxnet.io.DataIter; mxnet is imported only here."""
    return _data_iter_class()(loader, context, data, label)


@functools.cache
def _data_iter_class() -> type[MxnetBatches]:
    import mxnet

    return type("MxnetBatches", (MxnetBatches, mxnet.io.DataIter), {"__module__": __name__})


def _divided(
    fields: Mapping[str, Field], data: Sequence[str] | None, label: Sequence[str] | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of the data and of the labels."""
    rest = [name for name in fields if name not in _NOT_DATA]
    if label is None:
        label = [n for n in rest if fields[n].kind == "label" and n not in (data or ())]
    if data is None:
        data = [name for name in rest if name not in label]
    for name in (*data, *label):
        if name not in fields:
            raise _NOT_IN_A_BATCH.error(f"no field {name!r}", hint=did_you_mean(name, fields))
        if fields[name].is_list:
            raise _NOT_IN_A_BATCH.error(
                f"{name!r} is delivered as a list", hint="exclude it with fields= or data="
            )
        if -1 in fields[name].shape:
            raise _NOT_IN_A_BATCH.error(
                f"the shape of {name!r} differs between batches",
                hint="exclude it with fields= or data=",
            )
    return tuple(data), tuple(label)


def _description(name: str, field: Field, rows: int) -> Any:
    import mxnet

    layout = "N"
    if field.is_picture and len(field.shape) == 3:
        layout = "NCHW"
    elif field.shape:
        layout = "NT" + "C" * (len(field.shape) - 1)
    dtype = "uint8" if field.dtype == "bool" else field.dtype
    return mxnet.io.DataDesc(name, (rows, *field.shape), np.dtype(dtype).type, layout)


def _described(whole: Any, array: Any) -> Any:
    """The description with this batch's number of rows: the last batch may have fewer."""
    return type(whole)(whole.name, array.shape, whole.dtype, whole.layout)
