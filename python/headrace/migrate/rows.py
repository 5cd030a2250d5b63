# SPDX-License-Identifier: Apache-2.0
"""Rows of a finished batch that remember it: torch.stack of all of them, in order, is the batch.

So a collate function that stacks costs nothing. A row is a tensor like any other; whatever else is
done with it gives plain tensors.
"""

from __future__ import annotations

import functools
from typing import Any


def rows_of(batch: Any) -> list[Any]:
    """The rows of a tensor, as views of it."""
    kind = _row_class()
    rows = []
    for number, row in enumerate(batch.unbind(0)):
        row = row.as_subclass(kind)
        row._batch, row._number = batch, number
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
            if func is torch.stack and (batch := _whole(*args, **(kwargs or {}))) is not None:
                return batch
            with torch._C.DisableTorchFunctionSubclass():
                return func(*args, **(kwargs or {}))

    return Row


def _whole(tensors: Any = (), dim: Any = 0, *, out: Any = None, **_: Any) -> Any:
    """The batch of which these are all rows, in order; None: they are others."""
    rows = tensors if dim == 0 and out is None and isinstance(tensors, (list, tuple)) else ()
    batch = getattr(rows[0], "_batch", None) if rows else None
    if batch is None or len(rows) != len(batch):
        return None
    own = (getattr(row, "_batch", None) is batch and row._number == k for k, row in enumerate(rows))
    return batch if all(own) else None
