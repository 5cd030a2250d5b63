# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's eager tensors over a batch's memory, and a tf.data.Dataset of batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace import _core
from headrace.loader.viewed import ViewedLoader
from headrace.loader.views import Delivered


def make_hand_over(device: str | None = None) -> Callable[[_core.Array], Any]:
    """``array -> tensor``. Since TensorFlow has no strides, axes are in memory order."""
    import tensorflow as tf

    from_dlpack = tf.experimental.dlpack.from_dlpack

    def on_host(array: _core.Array) -> Any:
        return from_dlpack(array.in_memory_order().__dlpack__())

    if device is None:
        return on_host

    def on_device(array: _core.Array) -> Any:
        with tf.device(device):
            return tf.identity(on_host(array))

    return on_device


class TensorFlowBatches(Delivered):
    """Batches as eager tensors; ``as_dataset()`` for Keras and other users of tf.data."""

    def __init__(
        self, loader: ViewedLoader, device: str | None = None, batch: str = "tuple"
    ) -> None:
        super().__init__(loader, make_hand_over(device), batch)

    def as_dataset(self) -> Any:
        """A tf.data.Dataset of this loader's batches: each pass over it is an epoch, in order.
        Tensors share the loader's memory, as in plain iteration. A pass begins where an iteration
        of the loader would: after ``load_state_dict``, at that state; the cardinality is then
        unknown, since the first pass is shorter. The loader's state counts the batches that tf.data
        took: do not append ``prefetch`` or other read-ahead if the state must count the batches
        *used*. One pass at a time; a second iterator ends the first. Raises UnsupportedError HR0804
        if the number of batches or a tensor's rank is not known in advance.
        """
        from headrace.frameworks.tensorflow_dataset import make_dataset

        return make_dataset(self)
