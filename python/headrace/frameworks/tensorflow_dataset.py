# SPDX-License-Identifier: Apache-2.0
"""A tf.data.Dataset of a loader's batches.

Dataset.from_generator is not used: it does not know the number of batches, and reads ahead, so that
the loader's state counts batches that were not used. Here a pass asks the loader once how many
batches remain, then takes each with one call that returns its eager tensors.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from headrace.errors import declare
from headrace.loader.viewed import ViewedLoader
from headrace.loader.views import Delivered, Field, delivered_fields

_NO_DATASET = declare(
    "HR0804",
    "unsupported",
    "batches cannot be described to tf.data",
    "A tf.data.Dataset declares in advance the number of batches and each tensor's dtype and "
    "rank. Records of varying shape delivered as a list (ragged='list') have no rank: make them "
    "equal with a transform (Resize, Pad), omit the field with fields=, or iterate .tensorflow() "
    "itself, which delivers lists of tensors. on_error='skip' may drop a whole batch: use "
    "'substitute'.",
)


def make_dataset(view: Delivered) -> Any:
    """See TensorFlowBatches.as_dataset."""
    import tensorflow as tf

    loader = view.loader
    fields = delivered_fields(loader)
    specs = {name: _spec(loader, name, field) for name, field in fields.items()}
    dtypes = [spec.dtype for spec in specs.values()]
    layout = loader.assembly.layout()
    passing = _Pass(view)

    def batch(_: Any) -> Any:
        tensors = tf.py_function(passing.take, [], dtypes)
        for tensor, spec in zip(tensors, specs.values(), strict=True):
            tensor.set_shape(spec.shape)
        return view.form.structure(layout, tensors)

    def begin(_: Any) -> Any:
        return tf.data.Dataset.range(tf.py_function(passing.begin, [], tf.int64))

    dataset = tf.data.Dataset.range(1).flat_map(begin).map(batch)
    if not loader.is_resumed:
        dataset = dataset.apply(tf.data.experimental.assert_cardinality(len(loader)))
    settings = tf.data.Options()  # otherwise tf.data reads ahead, and so does the state
    settings.experimental_optimization.inject_prefetch = False
    return dataset.with_options(settings)


class _Pass:
    """The current pass over the loader; called by tf.data from its own threads, one at a time."""

    def __init__(self, view: Delivered) -> None:
        self._view = view
        self._batches: Iterator[Any] = iter(())
        self._left = 0

    def begin(self) -> int:
        """Number of batches in this pass."""
        self._batches = iter(self._view)
        self._left = len(self._view) - self._view.state_dict()["batch"]
        return self._left

    def take(self) -> list[Any]:
        import tensorflow as tf

        batch = next(self._batches)
        values = batch.values() if isinstance(batch, dict) else batch
        self._left -= 1
        if self._left == 0:
            next(self._batches, None)  # so that the loader is at the end of its epoch, too
        return [tf.constant(_bytes(v)) if isinstance(v, list) else v for v in values]


def _bytes(values: list[Any]) -> list[bytes]:
    return [os.fsencode(value) if isinstance(value, str) else value for value in values]


def _spec(loader: ViewedLoader, name: str, field: Field) -> Any:
    import tensorflow as tf

    given = loader.assembly.given
    if given["on_error"] == "skip":
        raise _NO_DATASET.error("with on_error='skip'", hint="on_error='substitute'")
    if field.is_list and field.kind not in ("text", "bytes"):
        raise _NO_DATASET.error(f"{name!r} is delivered as a list", hint="Resize, Pad or fields=")
    rows = None if given["last_batch"] == "keep" else loader.batch_size
    if field.is_list:
        return tf.TensorSpec((rows,), tf.string)
    shape = [None if size < 0 else size for size in field.shape]
    return tf.TensorSpec(shape if field.is_packed else [rows, *shape], tf.as_dtype(field.dtype))
