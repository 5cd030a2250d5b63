# SPDX-License-Identifier: Apache-2.0
"""Rows of a finished batch that remember the batch: torch.stack of all rows, in order, returns the
batch itself. So a collate function that stacks costs nothing, and returns the same values as with a
copy. The batch is handed out once, and only if no other view of its memory exists; a second stack
is a copy. Rows that are used afterwards get separate memory, and so do rows that outlive the
function, before any other code can write to the batch. A row is an ordinary tensor; all other
operations on it give plain tensors.
"""

from __future__ import annotations

import functools
import weakref
from typing import Any


class WrittenTo(RuntimeError):
    """A record is no longer available: its batch was handed out, and may have been changed."""


class _Batch:
    """A batch with rows."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor
        self.seen = False  # whether something else references its memory, too
        self.given = False  # whether it was handed out as a stack
        self.exported = False  # whether it may have been written to since, without torch counting
        # that
        self.version = 0  # version at that time

    def give(self) -> Any:
        """A stack of all rows. REQUIRES: it was not handed out before."""
        if self.seen:
            return self.tensor.clone()
        self.given, self.version = True, _writes(self.tensor)
        return self.tensor

    @property
    def changed(self) -> bool:
        """Whether it was, or may have been, written to since it was handed out."""
        return self.exported or _writes(self.tensor) != self.version

    def own(self, number: int) -> Any:
        """A row's value in separate memory. REQUIRES: the batch was handed out."""
        if self.changed:
            raise WrittenTo(
                "a record is used after the stack of all records was changed in place: "
                'from_dataloader(..., collate="copy")'
            )
        return self.tensor[number].clone()

    def note(self, result: Any) -> None:
        """Searches the result of an operation on rows for the batch's memory."""
        if isinstance(result, (list, tuple)):
            for each in result:
                self.note(each)
        elif hasattr(result, "untyped_storage"):
            self.seen |= _address(result) == _address(self.tensor)
        elif type(result) not in _values():
            self.seen = True  # a NumPy array, an iterator, a capsule


class Lent:
    """The rows passed to one call of a function. Used as a context around that call."""

    def __init__(self) -> None:
        self._batches: list[_Batch] = []
        self._rows: list[Any] = []  # weak references
        self._watch: Any = None

    def rows_of(self, batch: Any) -> list[Any]:
        """The rows of a tensor, as views of it."""
        kind, shared = _row_class(), _Batch(batch)
        rows = []
        for number, row in enumerate(batch.unbind(0)):
            row = row.as_subclass(kind)
            row._batch, row._number, row._own = shared, number, None
            rows.append(row)
        self._batches.append(shared)
        self._rows.extend(map(weakref.ref, rows))
        return rows

    def __enter__(self) -> Lent:
        self._watch = _watch_class()(self._batches)
        self._watch.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._watch.__exit__(*error)
        self._settle()

    def _settle(self) -> None:
        """Copies rows that still exist and whose batch was handed out, because the training loop
        may write to the batch."""
        if not any(batch.given for batch in self._batches):
            return
        for row in [row for row in (each() for each in self._rows) if row is not None]:
            batch = row._batch
            if batch.given and row._own is None and not batch.changed:
                row._own = batch.own(row._number)


def rows_of(batch: Any) -> list[Any]:
    """The rows of a tensor as views, outside of a `Lent` context: writes by operations on them are
    not watched."""
    return Lent().rows_of(batch)


def _address(tensor: Any) -> Any:
    return tensor.untyped_storage().data_ptr() if tensor.layout is _strided() else None


def _writes(tensor: Any) -> int:
    """The number of in-place changes to it or its views."""
    return int(getattr(tensor, "_version"))  # noqa: B009


def _strided() -> Any:
    import torch

    return torch.strided


@functools.cache
def _values() -> frozenset[Any]:
    """Result types that do not reference a tensor's memory."""
    import torch

    own = (torch.Size, torch.dtype, torch.device, torch.layout, torch.memory_format)
    return frozenset({int, float, complex, bool, str, type(None), *own})


@functools.cache
def _watch_class() -> Any:
    import torch
    from torch.overrides import TorchFunctionMode

    counted_apart = getattr(torch.Tensor.data, "__get__")  # noqa: B009

    class Watch(TorchFunctionMode):
        """Records access to a handed-out stack that allows uncounted writes: NumPy arrays,
        addresses, ``.data``."""

        def __init__(self, batches: list[_Batch]) -> None:
            super().__init__()
            self._batches = batches

        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            result = func(*args, **(kwargs or {}))
            if type(result) is torch.Tensor and func != counted_apart:
                return result
            if (type(result) not in _values() or func is torch.Tensor.data_ptr) and args:
                for batch in self._batches:
                    if batch.given and not batch.exported and type(args[0]) is torch.Tensor:
                        batch.exported = _address(args[0]) == _address(batch.tensor)
            return result

    return Watch


@functools.cache
def _row_class() -> Any:
    import torch

    class Row(torch.Tensor):
        """One row of a batch."""

        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            kwargs = kwargs or {}
            with torch._C.DisableTorchFunctionSubclass():
                if func is torch.stack and (batch := _whole(*args, **kwargs)) is not None:
                    return batch.give()
                batches: list[_Batch] = []
                args, kwargs = _replaced(args, cls, batches), _replaced(kwargs, cls, batches)
                result = func(*args, **kwargs)
                for batch in batches:
                    batch.note(result)
                    batch.seen |= func is torch.Tensor.data_ptr
                return result

        def __deepcopy__(self, memo: Any) -> Any:
            return self.clone()

        def __reduce_ex__(self, protocol: Any) -> Any:
            return self.clone().__reduce_ex__(protocol)  # type: ignore[no-untyped-call]

    return Row


def _replaced(value: Any, kind: Any, batches: list[_Batch]) -> Any:
    """The arguments of an operation, with copies of rows whose batch was handed out. batches:
    receives the batches of the other rows."""
    if type(value) is kind:
        batch = value._batch
        if not batch.given:
            batches.append(batch)
            return value
        if value._own is None:
            value._own = batch.own(value._number)
        return value._own
    if type(value) is dict:
        return {key: _replaced(each, kind, batches) for key, each in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_replaced(each, kind, batches) for each in value)
    return value


def _whole(tensors: Any = (), dim: Any = 0, *, out: Any = None, **_: Any) -> _Batch | None:
    """The batch, if these are all of its rows in order; None if they are not, or if it was handed
    out."""
    rows = tensors if dim == 0 and out is None and isinstance(tensors, (list, tuple)) else ()
    batch = getattr(rows[0], "_batch", None) if rows else None
    if batch is None or batch.given or len(rows) != len(batch.tensor):
        return None
    start, step = batch.tensor.data_ptr(), batch.tensor.stride(0) * batch.tensor.element_size()
    shape, strides = batch.tensor.shape[1:], batch.tensor.stride()[1:]
    own = (
        getattr(row, "_batch", None) is batch
        and row._number == k
        and row.data_ptr() == start + k * step
        and row.shape == shape
        and row.stride() == strides
        for k, row in enumerate(rows)
    )
    return batch if all(own) else None
