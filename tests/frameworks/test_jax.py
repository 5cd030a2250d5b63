# SPDX-License-Identifier: Apache-2.0
"""JAX arrays share the engine's memory on the host; a sharding divides rows over devices."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

# Four devices on one CPU; must be configured before JAX is imported.
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Numbers, files_of, resized

import headrace as hr
from headrace import transforms as T

jax = pytest.importorskip("jax")
from contract import LARGE, NamedBatches  # noqa: E402
from headrace.frameworks.jax import make_hand_over  # noqa: E402

P = jax.sharding.PartitionSpec


class TestJax(NamedBatches):
    name = "jax"
    title = "JAX"
    copied = ("int64", "uint64", "float64")
    arrives_as = {"int64": "int32", "uint64": "uint32", "float64": "float32"}  # noqa: RUF012

    def convert(self, array: hr.Array) -> Any:
        return make_hand_over()(array)

    def pointer(self, tensor: Any) -> int:
        return int(tensor.unsafe_buffer_pointer())

    def bfloat16(self, tensor: Any) -> np.ndarray[Any, Any]:
        assert tensor.dtype == jax.numpy.bfloat16
        return np.asarray(tensor.astype("float32"))


def by_rows() -> Any:
    return jax.sharding.NamedSharding(jax.sharding.Mesh(jax.devices(), ("data",)), P("data"))


def test_the_tests_have_four_devices() -> None:
    assert len(jax.devices()) == 4


def test_with_64_bits_nothing_is_copied() -> None:
    with jax.enable_x64(True):
        (array,) = next(iter(hr.Loader([{"x": 1 << 40}] * 4, batch_size=4).dlpack()))
        tensor = make_hand_over()(array)
        assert tensor.dtype == "int64" and tensor.unsafe_buffer_pointer() == array.data_ptr
        assert tensor.tolist() == [1 << 40] * 4


def test_an_integer_that_needs_64_bits_is_an_error() -> None:
    fits = hr.Loader([{"x": value} for value in (2**31 - 1, -(2**31))], batch_size=2)
    assert next(iter(fits.jax())).x.tolist() == [2**31 - 1, -(2**31)]
    loader = hr.Loader([{"x": value} for value in (3, 1 << 31)], batch_size=2)
    with pytest.raises(hr.ConfigError, match=r"HR0803.*2147483648 as int32") as caught:
        next(iter(loader.jax()))
    assert "jax_enable_x64" in caught.value.hint


def test_rows_are_divided_over_the_devices(pictures: Path) -> None:
    loader = hr.Loader(pictures, LARGE, batch_size=8, last_batch="drop")
    expected = np.stack([resized(path, 160, 160) for path in files_of(pictures)])
    for number, batch in enumerate(loader.jax(sharding=by_rows())):
        rows = expected[8 * number : 8 * number + 8]
        assert batch.image.sharding == by_rows() and batch.image.shape == rows.shape
        np.testing.assert_array_equal(np.asarray(batch.image), rows)
        for shard, device in zip(batch.image.addressable_shards, jax.devices(), strict=True):
            assert shard.device == device
            np.testing.assert_array_equal(np.asarray(shard.data), rows[shard.index])
        assert batch.label.shape == (8,)
        total = jax.jit(lambda image: image.astype("float32").sum())(batch.image)
        assert float(total) == pytest.approx(rows.sum(dtype=float), rel=1e-5)


def test_sharded_rows_aligned_to_64_bytes_are_not_copied(pictures: Path) -> None:
    array = next(iter(hr.Loader(pictures, LARGE, batch_size=8).dlpack())).image
    sharded = make_hand_over(by_rows())(array)
    starts = [shard.data.unsafe_buffer_pointer() for shard in sharded.addressable_shards]
    assert starts == [array.data_ptr + 2 * 3 * 160 * 160 * i for i in range(4)]


def test_sharded_batches_keep_and_free_their_slots(pictures: Path) -> None:
    expected = np.stack([resized(path, 160, 160) for path in files_of(pictures)])
    loader = hr.Loader(pictures, LARGE, batch_size=4, last_batch="drop")
    view = loader.jax(sharding=by_rows())
    kept = next(iter(view)).image
    for _ in range(10):
        for batch in view:
            del batch
    assert loader.stats().copies == 0
    loader.close()
    np.testing.assert_array_equal(np.asarray(kept), expected[:4])


def test_bfloat16_and_bool_are_sharded(pictures: Path) -> None:
    steps = [T.Resize((8, 8)), T.ToDtype("bfloat16", scale=True)]
    fields = ("image", "valid")
    loader = hr.Loader(pictures, steps, batch_size=8, last_batch="pad", fields=fields)
    *_, last = loader.jax(sharding=by_rows())
    assert last.image.dtype == jax.numpy.bfloat16
    assert last.valid.dtype == bool and last.valid.tolist() == [True] * 7 + [False]


def test_a_batch_not_divisible_by_the_devices_is_an_error() -> None:
    loader = hr.Loader(Numbers(10), batch_size=8)
    batches = iter(loader.jax(sharding=by_rows()))
    next(batches)
    with pytest.raises(hr.ConfigError, match=r"HR0802.*\(2, 2\)") as caught:
        next(batches)
    assert "last_batch" in caught.value.hint


def test_two_processes_form_one_global_array() -> None:
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    processes = [
        subprocess.Popen(
            [sys.executable, str(Path(__file__).parent / "rank_jax.py"), str(rank), str(port)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    for process in processes:
        out, error = process.communicate(timeout=300)
        assert (out.splitlines()[-1], process.returncode) == ("3 batches", 0), error


def test_a_device_is_accepted_instead_of_a_sharding() -> None:
    device = jax.devices()[2]
    batch = next(iter(hr.Loader(Numbers(4), batch_size=4).jax(sharding=device)))
    assert batch.x.devices() == {device} and batch.x.tolist()[3] == [3, -3]


def test_batches_are_pytrees() -> None:
    batch = next(iter(hr.Loader(Numbers(4), batch_size=4).jax()))
    doubled = jax.tree.map(lambda array: array * 2, batch)
    assert type(doubled) is type(batch) and doubled.x[3].tolist() == [6, -6]


def test_jit_accepts_a_whole_batch() -> None:
    batch = next(iter(hr.Loader(Numbers(4), batch_size=4).jax()))
    assert float(jax.jit(lambda batch: batch.x.sum() + batch.label.sum())(batch)) == 6
