# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's eager tensors and datasets."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import pytest
from conftest import Numbers, files_of, resized

import headrace as hr
from headrace import transforms as T

tf = pytest.importorskip("tensorflow")
from contract import LARGE, NamedBatches  # noqa: E402
from headrace.frameworks.tensorflow import make_hand_over  # noqa: E402

capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
capsule_pointer.restype = ctypes.c_void_p
capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


def pointer(tensor: Any) -> int:
    """A DLTensor begins with it."""
    managed = capsule_pointer(tf.experimental.dlpack.to_dlpack(tensor), b"dltensor")
    return int(ctypes.cast(managed, ctypes.POINTER(ctypes.c_uint64))[0])


class TestTensorFlow(NamedBatches):
    name = "tensorflow"
    title = "TensorFlow and Keras"

    def convert(self, array: hr.Array) -> Any:
        return make_hand_over()(array)

    def pointer(self, tensor: Any) -> int:
        return pointer(tensor)

    def as_numpy(self, tensor: Any) -> np.ndarray[Any, Any]:
        return np.asarray(tensor.numpy())

    def bfloat16(self, tensor: Any) -> np.ndarray[Any, Any]:
        assert tensor.dtype == tf.bfloat16
        return np.asarray(tf.cast(tensor, tf.float32).numpy())


def ids(dataset: Any) -> list[list[int]]:
    return [batch["id"].numpy().tolist() for batch in dataset]


def numbers(count: int = 23, **options: Any) -> hr.Loader:
    given = {"batch_size": 4, "shuffle": True, "fields": ("x", "id"), **options}
    return hr.Loader(Numbers(count), **given)


def test_a_dataset_has_the_loaders_batches_in_order_epoch_after_epoch() -> None:
    mine = numbers()
    dataset = numbers().tensorflow().as_dataset()
    for _ in range(3):
        assert ids(dataset) == [batch.id.tolist() for batch in mine]
    assert int(dataset.cardinality()) == 6


def test_a_dataset_describes_its_batches(pictures: Path) -> None:
    steps = [T.Resize((8, 9)), T.ToDtype("float16", scale=True)]
    fields = ("image", "label", "key", "valid")
    options: dict[str, Any] = {"batch_size": 4, "fields": fields, "memory_format": "channels_last"}
    keep = hr.Loader(pictures, steps, **options).tensorflow().as_dataset()
    spec = keep.element_spec
    assert spec.image == tf.TensorSpec((None, 8, 9, 3), tf.float16)
    assert spec.label == tf.TensorSpec((None,), tf.int64)
    assert spec.key == tf.TensorSpec((None,), tf.string)
    assert spec.valid == tf.TensorSpec((None,), tf.bool)
    padded = hr.Loader(pictures, steps, last_batch="pad", **options)
    dataset = padded.tensorflow(batch="dict").as_dataset()
    assert dataset.element_spec["image"].shape == (4, 8, 9, 3)
    *_, last = dataset
    assert last["valid"].numpy().tolist() == [True, True, True, False]
    assert last["key"].numpy()[0].decode().endswith(".png")


def test_tensors_of_a_dataset_share_the_engines_memory(pictures: Path) -> None:
    loader = hr.Loader(pictures, LARGE, batch_size=4)
    made: list[int] = []
    view = loader.tensorflow()
    hand_over = view.form.convert

    def watched(array: hr.Array) -> Any:
        made.append(array.data_ptr)
        return hand_over(array)

    view.form.convert = watched
    pointers = [pointer(tensor) for batch in view.as_dataset() for tensor in batch]
    assert pointers == made and loader.stats().copies == 0


def test_an_interrupted_pass_is_followed_by_the_next_epoch() -> None:
    view = numbers().tensorflow()
    dataset = view.as_dataset()
    next(iter(dataset))
    assert view.state_dict()["batch"] == 1, "nothing is taken ahead"
    assert ids(dataset) == [batch.id.tolist() for batch in list(numbers_from(1))]


def numbers_from(epoch: int) -> hr.Loader:
    loader = numbers()
    loader.set_epoch(epoch)
    return loader


def test_a_dataset_continues_from_a_state() -> None:
    whole = [batch.id.tolist() for batch in numbers()]
    first = numbers().tensorflow()
    batches = iter(first.as_dataset())
    seen = [next(batches)["id"].numpy().tolist() for _ in range(2)]
    second = numbers().tensorflow()
    second.load_state_dict(first.state_dict())
    rest = second.as_dataset()
    assert seen + ids(rest) == whole
    assert ids(rest) == [batch.id.tolist() for batch in numbers_from(1)]
    assert second.epoch == 2


def test_an_error_of_a_record_reaches_the_loop() -> None:
    class Broken(Numbers):
        def __getitem__(self, index: int) -> dict[str, Any]:
            if index == 5:
                raise OSError("no disk")
            return super().__getitem__(index)

    dataset = hr.Loader(Broken(8), batch_size=2).tensorflow().as_dataset()
    batches = iter(dataset)
    next(batches), next(batches)
    with pytest.raises(tf.errors.OpError, match="no disk"):
        next(batches)


@pytest.mark.parametrize(("ragged", "shape"), [("pad", (None, None, 2)), ("packed", (None, 2))])
def test_a_dataset_has_unknown_dimensions_for_ragged_fields(
    ragged: str, shape: tuple[Any, ...]
) -> None:
    records = [{"x": np.full((rows, 2), rows, np.float32)} for rows in (2, 0, 3, 1)]
    source = hr.open(records, shapes={"x": (-1, 2)})
    dataset = hr.Loader(source, batch_size=2, ragged=ragged).tensorflow().as_dataset()
    assert tuple(dataset.element_spec.x.shape) == shape
    parts = [part["x"].numpy() for batch in dataset for part in batch.per_record("x")]
    assert [part.tolist() for part in parts] == [record["x"].tolist() for record in records]


@pytest.mark.parametrize("options", [{"on_error": "skip"}, {"ragged": "list"}], ids=str)
def test_fields_that_a_dataset_cannot_describe_are_refused(
    pictures: Path, options: dict[str, Any]
) -> None:
    steps = LARGE if "on_error" in options else []
    view = hr.Loader(pictures, steps, batch_size=4, **options).tensorflow()
    with pytest.raises(hr.UnsupportedError, match="HR0804"):
        view.as_dataset()


def test_keras_fits_every_record_of_every_epoch() -> None:
    seen: list[int] = []

    class Watched(tf.keras.layers.Layer):  # type: ignore[misc]
        def call(self, x: Any) -> Any:
            tf.py_function(lambda x: seen.extend(x[:, 0].numpy().astype(int)), [x], [])
            return x

    loader = hr.Loader(Numbers(23), batch_size=4, shuffle=True)
    net = tf.keras.Sequential([Watched(), tf.keras.layers.Dense(5)])
    net.build((None, 2))
    net.compile(loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    net.fit(loader.tensorflow().as_dataset(), epochs=3, verbose=0)
    assert loader.epoch == 3
    assert [sorted(seen[23 * i : 23 * i + 23]) for i in range(3)] == [list(range(23))] * 3


@pytest.mark.parametrize("comes", ["channels_first", "channels_last"])
@pytest.mark.parametrize("wanted", ["channels_first", "channels_last"])
def test_keras_gets_images_in_its_axis_order(pictures: Path, comes: str, wanted: str) -> None:
    steps = [T.Resize((8, 6))]
    loader = hr.Loader(pictures, steps, batch_size=4, memory_format=comes)
    expected = loader.batch(0, 0).image
    if wanted == "channels_last":
        expected = expected.transpose(0, 2, 3, 1)
    tf.keras.config.set_image_data_format(wanted)
    try:
        image, label = next(iter(loader.keras().get_tf_dataset()))
        np.testing.assert_array_equal(image, expected)
        assert label.shape == (4,)
    finally:
        tf.keras.config.set_image_data_format("channels_last")


def test_tensors_are_copied_to_a_device(pictures: Path) -> None:
    image = next(iter(hr.Loader(pictures, LARGE, batch_size=4).tensorflow(device="CPU:0"))).image
    assert image.device.endswith("CPU:0")
    np.testing.assert_array_equal(image[1], resized(files_of(pictures)[1], 160, 160))
