# SPDX-License-Identifier: Apache-2.0
"""Paddle tensors over a batch's memory, and a reader of batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from headrace import _core
from headrace.errors import declare
from headrace.loader.viewed import ViewedLoader
from headrace.loader.views import Delivered

_NO_UINT16 = declare(
    "HR0807",
    "unsupported",
    "Paddle has no uint16",
    "Paddle stores bfloat16 as uint16, and would mistake one for the other. End the transforms "
    "with ToDtype to another dtype, or omit the field with fields=.",
)


def make_hand_over(device: str | None = None) -> Callable[[_core.Array], Any]:
    """``array -> tensor``; on the host without a copy, on a device with one."""
    import paddle

    from_dlpack = paddle.utils.dlpack.from_dlpack

    def on_host(array: _core.Array) -> Any:
        if array.dtype == "uint16":
            raise _NO_UINT16.error("this field is uint16", hint="ToDtype('int32')")
        return from_dlpack(array)

    if device is None:
        return on_host
    return lambda array: on_host(array).to(device)


class PaddleBatches(Delivered):
    """Batches as Paddle tensors; a reader in Paddle's sense: calling it starts an epoch."""

    def __init__(
        self, loader: ViewedLoader, device: str | None = None, batch: str = "tuple"
    ) -> None:
        super().__init__(loader, make_hand_over(device), batch)

    def __call__(self) -> Iterator[Any]:
        return iter(self)
