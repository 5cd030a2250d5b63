# SPDX-License-Identifier: Apache-2.0
"""Paddle's tensors and readers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conftest import Numbers

import headrace as hr

paddle = pytest.importorskip("paddle")
from contract import NamedBatches  # noqa: E402
from headrace.frameworks.paddle import make_hand_over  # noqa: E402


class TestPaddle(NamedBatches):
    name = "paddle"
    title = "PaddlePaddle"
    refused = {"uint16": "HR0807"}  # noqa: RUF012
    has_strides = True

    def convert(self, array: hr.Array) -> Any:
        return make_hand_over()(array)

    def pointer(self, tensor: Any) -> int:
        return int(tensor.data_ptr())

    def as_numpy(self, tensor: Any) -> np.ndarray[Any, Any]:
        return np.asarray(tensor.numpy())

    def bfloat16(self, tensor: Any) -> np.ndarray[Any, Any]:
        assert tensor.dtype == paddle.bfloat16
        return np.asarray(tensor.cast("float32").numpy())


def test_it_is_a_reader() -> None:
    reader = hr.Loader(Numbers(10), batch_size=4, fields="id").paddle()
    for _ in range(2):
        assert [batch.id.tolist() for batch in reader()] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    buffered = paddle.reader.firstn(reader, 2)
    assert [batch.id.tolist() for batch in buffered()] == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_model_fit_accepts_it() -> None:
    loader = hr.Loader(Numbers(24), batch_size=4, shuffle=True)
    net = paddle.nn.Linear(2, 5)
    model = paddle.Model(net)
    optimizer = paddle.optimizer.SGD(0.001, parameters=net.parameters())
    model.prepare(optimizer, paddle.nn.CrossEntropyLoss())
    model.fit(loader.paddle(), epochs=2, verbose=0)
    assert loader.epoch == 2 and loader.stats().batches == 12


def test_tensors_are_copied_to_a_device() -> None:
    batch = next(iter(hr.Loader(Numbers(4), batch_size=4).paddle(device="cpu")))
    assert batch.x.place.is_cpu_place() and batch.x[3].tolist() == [3, -3]
