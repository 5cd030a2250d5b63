# SPDX-License-Identifier: Apache-2.0
"""``loader.torch()`` and the like: methods that choose the framework of batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from headrace.loader.form import devices_named
from headrace.loader.numpy_arrays import hand_over
from headrace.loader.viewed import ViewedLoader
from headrace.loader.views import Delivered

if TYPE_CHECKING:
    from headrace.frameworks.mxnet import MxnetBatches  # late
    from headrace.frameworks.paddle import PaddleBatches  # late
    from headrace.frameworks.tensorflow import TensorFlowBatches  # late
    from headrace.frameworks.torch_view import TorchBatches  # late


class Outputs:
    """The loader's methods that choose the form of its batches: each returns a view of the loader.

    batch: "tuple" (a namedtuple, also indexed by name) or "dict".
    """

    def numpy(self, batch: str = "tuple") -> Delivered:
        """Batches as NumPy arrays that share the engine's memory: the loader's own output."""
        return Delivered(cast(ViewedLoader, self), hand_over, batch)

    def dlpack(self, device: Any = None, batch: str = "tuple", depth: int = 2) -> Delivered:
        """Batches as ``headrace.Array``, which every framework's ``from_dlpack`` takes.

        device: "cuda", which is the device of LOCAL_RANK, or "cuda:1": ``depth`` batches are copied
        there ahead, on a separate stream; a consumer passes the stream that uses an array, which
        then waits for the copy. A list of devices divides each batch by rows over them: each batch
        is a tuple with one part per device.
        """
        targets = devices_named(device)
        return Delivered(cast(ViewedLoader, self), lambda array: array, batch, targets, depth)

    def torch(self, device: Any = None, batch: str = "tuple", depth: int = 2) -> TorchBatches:
        """Batches as torch tensors: on the host without a copy, or on ``device``.

        "cuda" is torch's current device, or that of LOCAL_RANK. ``depth`` batches are copied there
        ahead, from pinned memory, on a separate stream; torch's current stream waits for the copy
        of the batch that it receives. This takes the memory of depth + 1 batches on the device. A
        list of devices divides each batch by rows over them: each batch is a tuple with one part
        per device.

        It has a DataLoader's ``dataset``, ``sampler``, ``batch_sampler`` and options, too, for
        loops and trainers that use them (docs/guide/frameworks.md), but it is not a DataLoader.
        """
        from headrace.frameworks.torch_view import TorchBatches  # late

        return TorchBatches(cast(ViewedLoader, self), device, batch, depth)

    def tensorflow(self, device: str | None = None, batch: str = "tuple") -> TensorFlowBatches:
        """Batches as TensorFlow's eager tensors, without a copy if they stay on the host.

        device: "GPU:0" and the like; default: host memory. Images with
        memory_format="channels_last" are delivered as (B, H, W, C). Its ``.as_dataset()`` is a
        tf.data.Dataset.
        """
        from headrace.frameworks.tensorflow import TensorFlowBatches  # late

        return TensorFlowBatches(cast(ViewedLoader, self), device, batch)

    def jax(self, sharding: Any = None, batch: str = "tuple") -> Delivered:
        """Batches as JAX arrays, on the host without a copy.

        sharding: a jax.sharding.Sharding over whose devices each array is divided, or a device;
        default: JAX's default device. Without ``jax_enable_x64``, 64-bit numbers become 32-bit; an
        integer that does not fit is an error (HR0803). Images with memory_format="channels_last"
        are delivered as (B, H, W, C).
        """
        from headrace.frameworks.jax import make_hand_over  # late

        return Delivered(cast(ViewedLoader, self), make_hand_over(sharding), batch)

    def keras(self) -> Any:
        """Batches for Keras 3: what ``fit``, ``evaluate`` and ``predict`` take as their data.

        A batch is (inputs,), (inputs, targets) or (inputs, targets, sample weights), in the order
        of the fields. Tensors are of Keras' backend: torch tensors, TensorFlow tensors, NumPy
        arrays for JAX. Images are (B, H, W, C) unless Keras' image_data_format says
        "channels_first"; memory_format="channels_last" of the loader makes that the order in
        memory, too. Each pass is one epoch; after ``load_state_dict`` the first pass is the rest of
        an epoch.
        """
        from headrace.frameworks.keras import make_adapter  # late

        return make_adapter(self)

    def paddle(self, device: str | None = None, batch: str = "tuple") -> PaddleBatches:
        """Batches as Paddle tensors, on the host without a copy, or on ``device`` ("gpu:0").

        The result is also a reader: calling it returns an iterator over one epoch.
        """
        from headrace.frameworks.paddle import PaddleBatches  # late

        return PaddleBatches(cast(ViewedLoader, self), device, batch)

    def mxnet(
        self,
        context: Any = None,
        data: Sequence[str] | None = None,
        label: Sequence[str] | None = None,
    ) -> MxnetBatches:
        """Batches as an ``mxnet.io.DataIter`` of NDArrays, on the host without a copy.

        context: where the arrays go; default: the host. data, label: the fields that become the
        data and the labels of a DataBatch; default: fields of kind "label" are labels, all others
        data. Images with memory_format="channels_last" are delivered as (B, H, W, C).
        """
        from headrace.frameworks.mxnet import make_batches  # late

        return make_batches(cast(ViewedLoader, self), context, data, label)
