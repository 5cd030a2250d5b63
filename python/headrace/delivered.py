# SPDX-License-Identifier: Apache-2.0
"""Batches as the arrays of a framework: what ``loader.torch()`` and its like return.

A view holds no batch and no position: both are the loader's. Several views of one loader are one
iteration, seen as different arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from headrace import _core, options
from headrace.batch import batch_class
from headrace.frameworks import each

if TYPE_CHECKING:
    from headrace.frameworks.mxnet import MxnetBatches
    from headrace.frameworks.paddle import PaddleBatches
    from headrace.frameworks.tensorflow import TensorFlowBatches
    from headrace.loader import Loader

_View = TypeVar("_View", bound="Delivered")


class Field(NamedTuple):
    """What a delivered field is; ``shape`` is a record's, its axes as the memory has them."""

    kind: str
    dtype: str
    shape: tuple[int, ...]
    is_list: bool  # text, bytes, keys, records of differing shape


def delivered_fields(loader: Loader) -> dict[str, Field]:
    """The loader's fields, for frameworks that want to know them beforehand and have no strides."""
    order = options.memory_format(loader._given["memory_format"])
    turned = order == _core.MemoryFormat.__members__["channels_last"]
    fields = {}
    for output in loader._current().outputs():
        shape = tuple(output["shape"])
        if turned and output["kind"] in ("image", "mask") and len(shape) == 3:
            shape = (*shape[1:], shape[0])
        fields[output["name"]] = Field(output["kind"], output["dtype"], shape, output["list"])
    return fields


Devices = _core.Device | Sequence[_core.Device]


def devices_named(device: Any) -> Devices:
    """The engine's devices of a name or a list of them; none for the host, where batches are."""
    if device is None or isinstance(device, _core.Device):
        return device or ()
    if isinstance(device, (list, tuple)):
        return [d if isinstance(d, _core.Device) else _core.open_device(str(d)) for d in device]
    found = _core.open_device(str(device))
    return () if found.is_host else found


class Form:
    """How the engine's values become a batch: arrays by ``convert``, in a namedtuple or a dict."""

    def __init__(
        self,
        convert: Callable[[_core.Array], Any],
        batch: str = "tuple",
        devices: Devices = (),
        depth: int = 2,
    ) -> None:
        self.convert = convert
        # To which arrays are copied before they are converted. A list divides batches over them.
        self.devices = [devices] if isinstance(devices, _core.Device) else list(devices)
        self._divided = not isinstance(devices, _core.Device)
        self.depth = options.integer("depth", depth, 1)  # batches that are copied ahead
        self.as_dict = options.one_of("batch", batch, ("tuple", "dict")) == "dict"

    def batch(self, fields: tuple[str, ...], values: list[Any]) -> Any:
        return self.structure(fields, [each(self.convert, value) for value in values])

    def batch_on_devices(self, fields: tuple[str, ...], parts: list[list[Any]]) -> Any:
        """The batch; where a list of devices was asked for, a tuple of their parts."""
        batches = tuple(self.batch(fields, values) for values in parts)
        return batches if self._divided else batches[0]

    def structure(self, fields: tuple[str, ...], values: Iterable[Any]) -> Any:
        """Values of the fields, as they are, in a batch."""
        if self.as_dict:
            return dict(zip(fields, values, strict=True))
        return batch_class(fields)._make(values)

    def inspected(self, fields: tuple[str, ...], values: Mapping[str, Any]) -> Any:
        """A namedtuple of ``fields`` with the other values as attributes."""
        converted = {name: each(self.convert, value) for name, value in values.items()}
        batch = batch_class(fields, inspected=True)._make(converted.pop(name) for name in fields)
        batch.__dict__.update(converted)
        return batch


class Delivered:
    """A loader whose batches are a framework's arrays. Everything else is the loader's own.

    It can be iterated again and again, one epoch each time. It is no DataLoader and has no sampler:
    the loader divides each global batch over the ranks, so nothing must be put around it that does
    so a second time, and Lightning and Accelerate leave it as it is.
    """

    def __init__(
        self,
        loader: Loader,
        convert: Callable[[_core.Array], Any],
        batch: str = "tuple",
        devices: Devices = (),
        depth: int = 2,
    ) -> None:
        self._loader = loader
        self._form = Form(convert, batch, devices, depth)

    # Written out, though __getattr__ would find them: frameworks look for them on the class.

    def __iter__(self) -> Iterator[Any]:
        return self._loader._iterate(self._form)

    def __len__(self) -> int:
        return len(self._loader)

    @property
    def batch_size(self) -> int:
        """Records a full batch of this rank has."""
        return self._loader.batch_size

    @property
    def epoch(self) -> int:
        """The present epoch; it advances on exhaustion."""
        return self._loader.epoch

    def set_epoch(self, epoch: int) -> None:
        """The next iteration is this epoch's. See Loader.set_epoch."""
        self._loader.set_epoch(epoch)

    def state_dict(self) -> dict[str, int]:
        """What was received so far. See Loader.state_dict."""
        return self._loader.state_dict()

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """The next iteration begins behind the last batch that ``state`` has counted."""
        self._loader.load_state_dict(state)

    def batch(self, epoch: int, index: int) -> Any:
        """Batch ``index`` of an epoch, with ``.id`` and ``.key``. See Loader.batch."""
        return self._loader._batch(epoch, index, self._form)

    def peek(self) -> Any:
        """The batch that comes next, without taking it."""
        return self._loader._peek(self._form)

    def close(self) -> None:
        """Closes the loader; batches that are kept stay valid."""
        self._loader.close()

    def __enter__(self: _View) -> _View:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # also while it is being copied, before it has a loader
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        return getattr(self._loader, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._loader)})

    def __repr__(self) -> str:
        return repr(self._loader)


class Outputs:
    """The loader's methods that say as what its batches come: each returns a view of the loader.

    batch: "tuple" (a namedtuple, also indexed by name) or "dict".
    """

    def numpy(self, batch: str = "tuple") -> Delivered:
        """Batches as NumPy arrays that share the engine's memory: the loader's own output."""
        from headrace.frameworks.numpy import hand_over

        return Delivered(cast("Loader", self), hand_over, batch)

    def dlpack(self, device: Any = None, batch: str = "tuple", depth: int = 2) -> Delivered:
        """Batches as ``headrace.Array``, which every framework's ``from_dlpack`` takes.

        device: "cuda" or "cuda:1": ``depth`` batches are copied there ahead, on a stream of their
        own; whoever takes an array says which stream uses it, and that stream waits for the copy.
        A list of devices divides each batch by rows over them: a tuple of batches comes, one each.
        """
        targets = devices_named(device)
        return Delivered(cast("Loader", self), lambda array: array, batch, targets, depth)

    def torch(self, device: Any = None, batch: str = "tuple", depth: int = 2) -> Delivered:
        """Batches as torch tensors: on the host without a copy, or on ``device``.

        "cuda" is torch's current device, or LOCAL_RANK's. ``depth`` batches are copied there ahead,
        from pinned memory, on a stream of their own; torch's current stream waits for the copy of
        the batch that it is given. Memory there is depth + 1 batches and stays so. A list of
        devices divides each batch by rows over them: a tuple of batches comes, one each.
        """
        from headrace.frameworks.torch import devices_for, make_hand_over

        targets = devices_for(device)
        return Delivered(cast("Loader", self), make_hand_over(device), batch, targets, depth)

    def tensorflow(self, device: str | None = None, batch: str = "tuple") -> TensorFlowBatches:
        """Batches as TensorFlow's eager tensors, without a copy where they stay on the host.

        device: "GPU:0" and the like; default, the host's memory. Pictures with
        memory_format="channels_last" come as (B, H, W, C). ``.as_dataset()`` of what it returns is
        a tf.data.Dataset.
        """
        from headrace.frameworks.tensorflow import TensorFlowBatches

        return TensorFlowBatches(cast("Loader", self), device, batch)

    def jax(self, sharding: Any = None, batch: str = "tuple") -> Delivered:
        """Batches as JAX arrays, on the host without a copy.

        sharding: a jax.sharding.Sharding over whose devices each array is divided, or a device;
        default, JAX's own default device. Without ``jax_enable_x64`` 64-bit numbers come with 32
        bits; an integer that does not fit is an error (HR0803). Pictures with
        memory_format="channels_last" come as (B, H, W, C).
        """
        from headrace.frameworks.jax import make_hand_over

        return Delivered(cast("Loader", self), make_hand_over(sharding), batch)

    def paddle(self, device: str | None = None, batch: str = "tuple") -> PaddleBatches:
        """Batches as Paddle tensors, on the host without a copy, or on ``device`` ("gpu:0").

        What it returns is a reader, too: calling it gives an iterator over one epoch.
        """
        from headrace.frameworks.paddle import PaddleBatches

        return PaddleBatches(cast("Loader", self), device, batch)

    def mxnet(
        self,
        context: Any = None,
        data: Sequence[str] | None = None,
        label: Sequence[str] | None = None,
    ) -> MxnetBatches:
        """Batches as an ``mxnet.io.DataIter`` of NDArrays, on the host without a copy.

        context: where the arrays go; default, the host. data, label: the fields that are the data
        and the labels of a DataBatch; default, fields of kind "label" are labels, all others data.
        Pictures with memory_format="channels_last" come as (B, H, W, C).
        """
        from headrace.frameworks.mxnet import make_batches

        return make_batches(cast("Loader", self), context, data, label)
