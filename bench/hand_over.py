# SPDX-License-Identifier: Apache-2.0
"""Cost of passing a batch to a framework: `python bench/hand_over.py numpy|torch|jax|...`.

Run it in an environment with the framework, as made by `./dev test --frameworks`, with
`PYTHONPATH=build/wheel/site build/frameworks/NAME/bin/python`. The batch has 64 float32 pictures of
(3, 224, 224) and 64 int64 labels; figures are medians. For tensorflow, also compares a
tf.data.Dataset of the batches with plain iteration and Dataset.from_generator.
"""

from __future__ import annotations

import importlib
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

import headrace as hr

COPIES: dict[str, Callable[[Any, np.ndarray[Any, Any]], Any]] = {
    "numpy": lambda numpy, x: x.copy(),
    "torch": lambda torch, x: torch.tensor(x),
    "tensorflow": lambda tf, x: tf.constant(x),
    "jax": lambda jax, x: jax.numpy.array(x, copy=True).block_until_ready(),
    "paddle": lambda paddle, x: paddle.to_tensor(x),
    "mxnet": lambda mxnet, x: mxnet.nd.array(x).wait_to_read(),
}


def microseconds(call: Callable[[], Any], times: int) -> float:
    call()
    found = []
    for _ in range(times):
        begin = time.perf_counter()
        made = call()
        found.append(time.perf_counter() - begin)
        del made
    return statistics.median(found) * 1e6


def hand_over(name: str) -> None:
    rows = [{"image": np.zeros((3, 224, 224), np.float32), "label": number} for number in range(64)]
    loader = hr.Loader(rows, batch_size=64, fields=("image", "label"))
    image, label = next(iter(loader.dlpack()))
    module = importlib.import_module(f"headrace.frameworks.{name}")
    convert = module.hand_over if name == "numpy" else module.make_hand_over()
    framework, values = importlib.import_module(name), np.asarray(image)
    print(f"{name}: image {microseconds(lambda: convert(image), 300):.1f} us,", end=" ")
    print(f"labels {microseconds(lambda: convert(label), 300):.1f} us,", end=" ")
    print(f"a copy of the image {microseconds(lambda: COPIES[name](framework, values), 30):.0f} us")


def datasets() -> None:
    """The overhead alone: batches of four numbers, so that there is no other work."""
    import tensorflow as tf

    def view() -> Any:
        loader = hr.Loader([{"x": np.float32(n)} for n in range(20_000)], batch_size=4)
        return loader.tensorflow()

    bridged, generated = view().as_dataset(), view()
    passes: dict[str, Iterable[Any]] = {
        "the view": view(),
        "as_dataset()": bridged,
        "from_generator": tf.data.Dataset.from_generator(
            lambda: map(tuple, generated), output_signature=tuple(bridged.element_spec)
        ),
    }
    found: dict[str, list[float]] = {name: [] for name in passes}
    for _ in range(5):
        for name, batches in passes.items():
            begin = time.perf_counter()
            count = sum(1 for _ in batches)
            found[name].append((time.perf_counter() - begin) / count * 1e6)
    for name, each in found.items():
        print(f"  {name}: {statistics.median(each):.0f} us per batch")


if __name__ == "__main__":
    hand_over(sys.argv[1])
    if sys.argv[1] == "tensorflow":
        datasets()
