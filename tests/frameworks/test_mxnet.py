# SPDX-License-Identifier: Apache-2.0
"""MXNet's NDArrays and iterators."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Numbers

import headrace as hr
from headrace import transforms as T

mx = pytest.importorskip("mxnet")
from contract import LARGE, Contract  # noqa: E402
from headrace.frameworks.mxnet import make_hand_over  # noqa: E402


class TestMxnet(Contract):
    name = "mxnet"
    title = "MXNet"
    refused = dict.fromkeys(("int16", "uint16", "uint32", "uint64", "bfloat16"), "HR0805")
    copied = ("bool",)
    arrives_as = {"bool": "uint8"}  # noqa: RUF012

    def convert(self, array: hr.Array) -> Any:
        return make_hand_over()(array)

    def pointer(self, tensor: Any) -> int:
        found = ctypes.c_void_p()
        mx.base.check_call(mx.base._LIB.MXNDArrayGetData(tensor.handle, ctypes.byref(found)))
        return int(found.value or 0)

    def as_numpy(self, tensor: Any) -> np.ndarray[Any, Any]:
        return np.asarray(tensor.asnumpy())

    def fields(self, batch: Any) -> dict[str, Any]:
        named = zip(batch.provide_data + batch.provide_label, batch.data + batch.label, strict=True)
        return {description.name: array for description, array in named}


def test_it_is_a_data_iter_that_describes_its_fields(pictures: Path) -> None:
    steps = [T.Resize((8, 9)), T.ToDtype("float32", scale=True)]
    batches = hr.Loader(pictures, steps, batch_size=4).mxnet()
    assert isinstance(batches, mx.io.DataIter) and batches.batch_size == 4
    (image,), (label,) = batches.provide_data, batches.provide_label
    assert (image.name, image.shape, image.layout) == ("image", (4, 3, 8, 9), "NCHW")
    assert (label.name, label.shape, label.layout) == ("label", (4,), "N")
    assert (image.dtype, label.dtype) == (np.float32, np.int64)
    batch = batches.next()
    assert batch.data[0].shape == image.shape and batch.label[0].shape == label.shape


def test_reset_begins_the_next_epoch_without_skipping_one() -> None:
    batches = hr.Loader(Numbers(10), batch_size=4, fields=("x", "id"), shuffle=True).mxnet()
    loader = hr.Loader(Numbers(10), batch_size=4, fields=("id",), shuffle=True)
    batches.reset()  # before the first batch: nothing is skipped
    for _ in range(3):
        assert [b.index.tolist() for b in batches] == [b.id.tolist() for b in loader]
        with pytest.raises(StopIteration):
            batches.next()
        batches.reset()


def test_a_new_loop_begins_the_next_epoch_without_a_reset() -> None:
    batches = hr.Loader(Numbers(10), batch_size=4).mxnet()
    assert [len(list(batches)) for _ in range(3)] == [3, 3, 3] and batches.epoch == 3


def test_the_calls_of_older_iterators_work() -> None:
    batches = hr.Loader(Numbers(6), batch_size=4, fields=("x", "label", "id")).mxnet()
    assert batches.iter_next()
    assert batches.getdata()[0][3].asnumpy().tolist() == [3, -3]
    assert batches.getlabel()[0].asnumpy().tolist() == [0, 1, 2, 3]
    assert batches.getindex().tolist() == [0, 1, 2, 3] and batches.getpad() == 0
    assert batches.iter_next() and not batches.iter_next()


@pytest.mark.parametrize(("rank", "pads"), [(0, [0, 0, 0]), (1, [0, 0, 2])])
def test_padding_is_counted(rank: int, pads: list[int]) -> None:
    options: dict[str, Any] = {"batch_size": 2, "last_batch": "pad", "shard": (rank, 2)}
    batches = hr.Loader(Numbers(10), fields=("x", "valid"), **options).mxnet()
    valid = [
        2 - int(batch.valid.sum()) for batch in hr.Loader(Numbers(10), fields="valid", **options)
    ]
    assert [batch.pad for batch in batches] == pads == valid


def test_a_loaded_state_applies_to_the_next_batch() -> None:
    batches = hr.Loader(Numbers(10), batch_size=2, fields=("x", "id")).mxnet()
    batches.next(), batches.next()
    state = batches.state_dict()
    batches.next()
    batches.load_state_dict(state)
    assert batches.next().index.tolist() == [4, 5]
    batches.set_epoch(5)
    assert batches.next().index.tolist() == [0, 1] and batches.epoch == 5


def test_fields_are_divided_into_data_and_labels(pictures: Path) -> None:
    loader = hr.Loader(pictures, LARGE, batch_size=4, fields=("image", "label"))
    batches = loader.mxnet(data=["label"], label=["image"])
    assert [description.name for description in batches.provide_data] == ["label"]
    with pytest.raises(hr.ConfigError, match=r"HR0806.*no field 'lable'") as caught:
        loader.mxnet(label=["lable"])
    assert "'label'" in caught.value.hint
    with pytest.raises(hr.ConfigError, match=r"HR0806.*'key' comes as a list"):
        hr.Loader(pictures, LARGE, batch_size=4, fields=("image", "key")).mxnet()


def test_module_fit_accepts_it() -> None:
    loader = hr.Loader(Numbers(24), batch_size=4, shuffle=True)
    symbol = mx.sym.FullyConnected(mx.sym.Variable("x"), num_hidden=5)
    label = mx.sym.cast(mx.sym.Variable("label"), "float32")  # SoftmaxOutput requires one dtype
    symbol = mx.sym.SoftmaxOutput(symbol, label, name="softmax")
    module = mx.mod.Module(symbol, data_names=["x"], label_names=["label"])
    module.fit(loader.mxnet(), num_epoch=3, optimizer_params={"learning_rate": 1e-3})
    assert loader.epoch == 3 and loader.stats().batches == 18


def test_arrays_are_copied_to_a_context() -> None:
    batch = hr.Loader(Numbers(4), batch_size=4).mxnet(context=mx.cpu(1)).next()
    assert batch.data[0].context == mx.cpu(1) and batch.data[0][3].asnumpy().tolist() == [3, -3]
