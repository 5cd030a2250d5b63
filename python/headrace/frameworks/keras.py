# SPDX-License-Identifier: Apache-2.0
"""A loader as Keras 3's DataAdapter, which ``fit``, ``evaluate`` and ``predict`` accept.

Keras has no public name for the class: it is in ``keras.src``, and covered by a test with Keras.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from headrace.errors import declare
from headrace.loader.options import memory_format
from headrace.loader.viewed import left_for_last_batch
from headrace.loader.views import Delivered

_NO_ADAPTER = declare(
    "HR0809",
    "unsupported",
    "unsupported version of Keras",
    "loader.keras() derives from keras.src.trainers.data_adapters.data_adapter.DataAdapter, which "
    "this Keras does not have: it is older than 3.3, or newer than the versions listed in "
    "docs/guide/trainers.md. With TensorFlow, fit(loader.tensorflow().as_dataset()) needs no "
    "adapter.",
)


class Epochs:
    """Each iteration is an epoch; it restarts if the last one was abandoned, since Keras inspects a
    first batch before it trains.
    """

    def __init__(self, view: Delivered, moved: tuple[int, ...]) -> None:
        self._view = view
        self._moved = moved  # fields that become channels-last
        self._begun: dict[str, int] | None = None  # the state of an epoch that is not complete

    def __iter__(self) -> Iterator[Any]:
        if self._begun is not None:
            self._view.load_state_dict(self._begun)
        self._view.place()
        left = self.batches()
        return self._taken(left)

    def batches(self) -> int:
        """Batches of the next iteration."""
        state, count = self._view.present_state(), len(self._view)
        if self._view.is_resumed and state["batch"] < count:
            return count - int(state["batch"])
        return count

    def _taken(self, left: int) -> Iterator[Any]:
        begun = self._view.state_dict()
        for number, batch in enumerate(self._view, 1):
            self._begun = begun if number < left else None
            values = list(batch)
            for index in self._moved:
                values[index] = _channels_last(values[index])
            yield tuple(values)


def _channels_last(value: Any) -> Any:
    moved = getattr(value, "movedim", None)  # torch's
    return moved(1, -1) if moved is not None else value.transpose(0, 2, 3, 1)


@functools.cache
def _adapter_class() -> type:
    try:
        from keras.src.trainers.data_adapters.data_adapter import DataAdapter
    except (ImportError, AttributeError) as reason:
        raise _NO_ADAPTER.error(str(reason), hint="pip install 'keras>=3.3'") from reason

    class KerasBatches(DataAdapter):  # type: ignore[misc]
        """A loader's batches: epochs in its order."""

        def __init__(self, loader: Any) -> None:
            self._loader = loader

        @functools.cached_property
        def _arrays(self) -> Epochs:
            return Epochs(self._loader.numpy(), _pictures_first(self._loader))

        @functools.cached_property
        def _tensors(self) -> Epochs:
            return Epochs(self._loader.torch(), _pictures_first(self._loader))

        def get_numpy_iterator(self) -> Any:
            return self._arrays

        def get_jax_iterator(self) -> Any:
            return self._arrays

        def get_torch_dataloader(self) -> Any:
            return self._tensors

        def get_tf_dataset(self) -> Any:
            return _laid_out(self._loader.tensorflow().as_dataset(), self._loader)

        @property
        def num_batches(self) -> int:
            return self._arrays.batches()

        @property
        def batch_size(self) -> int:
            return int(self._loader.batch_size)

        @property
        def has_partial_batch(self) -> bool:
            return self.partial_batch_size is not None

        @property
        def partial_batch_size(self) -> int | None:
            if self._loader.assembly.given["last_batch"] != "keep":
                return None
            if not left_for_last_batch(self._loader):
                return None
            return len(self._loader.assembly.engine().indices(0, len(self._loader) - 1))

    return KerasBatches


def _wants_channels_last() -> bool:
    import keras

    return bool(keras.config.image_data_format() == "channels_last")


def _images(loader: Any) -> tuple[int, ...]:
    """Positions of images in a batch."""
    fields = loader.assembly.engine().outputs()
    images = [field["is_picture"] and len(field["shape"]) == 3 for field in fields]
    return tuple(number for number, is_image in enumerate(images) if is_image)


def _pictures_first(loader: Any) -> tuple[int, ...]:
    """Positions of images whose channels Keras wants last and arrays have first."""
    return _images(loader) if _wants_channels_last() else ()


def _laid_out(dataset: Any, loader: Any) -> Any:
    """TensorFlow's tensors, which have the loader's order of axes, in Keras's."""
    comes_last = memory_format(loader.assembly.given["memory_format"]) == "channels_last"
    wants_last, images = _wants_channels_last(), _images(loader)
    if comes_last == wants_last or not images:
        return dataset
    import tensorflow as tf

    axes = (0, 2, 3, 1) if wants_last else (0, 3, 1, 2)

    def turned(batch: Any) -> Any:
        values = list(batch)
        for number in images:
            values[number] = tf.transpose(values[number], axes)
        return tuple(values)

    return dataset.map(turned)


def make_adapter(loader: Any) -> Any:
    """An adapter for ``Model.fit`` and similar methods."""
    return _adapter_class()(loader)
