# SPDX-License-Identifier: Apache-2.0
"""Rows of a finished batch that remember it: torch.stack of all of them, in order, is the batch.

So a collate function that stacks costs nothing. That is given away once, and only as long as no
other view of its memory has been: a second stack is a copy. Rows that are used afterwards have
memory of their own. A row is a tensor like any other; whatever else is done with it gives plain
tensors.
"""

from __future__ import annotations

import functools
from typing import Any


class WrittenTo(RuntimeError):
    """A record is gone: its batch, which was given away, was changed in place."""


class _Batch:
    """A batch of which there are rows."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor
        self.seen = False  # whether something else has its memory, too
        self.given = False  # whether it was given away as a stack
        self.version = 0  # as it was then

    def give(self) -> Any:
        """A stack of all rows. REQUIRES: it was not given away."""
        if self.seen:
            return self.tensor.clone()
        self.given, self.version = True, _writes(self.tensor)
        return self.tensor

    def note(self, result: Any) -> None:
        """Looks for its memory in what an operation on rows returned."""
        if isinstance(result, (list, tuple)):
            for each in result:
                self.note(each)
        elif hasattr(result, "untyped_storage"):
            self.seen |= _address(result) == _address(self.tensor)
        elif type(result).__module__ not in ("builtins", "torch"):
            self.seen = True  # an array of NumPy's


def _address(tensor: Any) -> Any:
    return tensor.untyped_storage().data_ptr() if tensor.layout is _strided() else None


def _writes(tensor: Any) -> int:
    """How often it, or a view of it, was changed in place."""
    return int(getattr(tensor, "_version"))  # noqa: B009


def _strided() -> Any:
    import torch

    return torch.strided


def rows_of(batch: Any) -> list[Any]:
    """The rows of a tensor, as views of it."""
    kind, shared = _row_class(), _Batch(batch)
    rows = []
    for number, row in enumerate(batch.unbind(0)):
        row = row.as_subclass(kind)
        row._batch, row._number, row._own = shared, number, None
        rows.append(row)
    return rows


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
                return result

        def __deepcopy__(self, memo: Any) -> Any:
            return self.clone()

        def __reduce_ex__(self, protocol: Any) -> Any:
            return self.clone().__reduce_ex__(protocol)  # type: ignore[no-untyped-call]

    return Row


def _replaced(value: Any, kind: Any, batches: list[_Batch]) -> Any:
    """The arguments of an operation, with rows whose batch was given away as copies of their own.
    batches: gets the others'."""
    if type(value) is kind:
        batch = value._batch
        if not batch.given:
            batches.append(batch)
            return value
        if value._own is None:
            if _writes(batch.tensor) != batch.version:
                raise WrittenTo(
                    "a record is used after the stack of all records was changed in place: "
                    'from_dataloader(..., collate="copy")'
                )
            value._own = batch.tensor[value._number].clone()
        return value._own
    if type(value) is dict:
        return {key: _replaced(each, kind, batches) for key, each in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_replaced(each, kind, batches) for each in value)
    return value


def _whole(tensors: Any = (), dim: Any = 0, *, out: Any = None, **_: Any) -> _Batch | None:
    """The batch of which these are all rows, in order; None: they are others, or it was given."""
    rows = tensors if dim == 0 and out is None and isinstance(tensors, (list, tuple)) else ()
    batch = getattr(rows[0], "_batch", None) if rows else None
    if batch is None or batch.given or len(rows) != len(batch.tensor):
        return None
    start, step = batch.tensor.data_ptr(), batch.tensor.stride(0) * batch.tensor.element_size()
    shape = batch.tensor.shape[1:]
    own = (
        getattr(row, "_batch", None) is batch
        and row._number == k
        and row.data_ptr() == start + k * step
        and row.shape == shape
        for k, row in enumerate(rows)
    )
    return batch if all(own) else None
