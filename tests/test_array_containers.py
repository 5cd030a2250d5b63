# SPDX-License-Identifier: Apache-2.0
"""Promise: arrays give the same records, order and epochs from every format that can hold
arrays."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace import transforms as T

RECORDS, BATCH = 40, 7


def pixels(*shape: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.random.default_rng(5).integers(0, 256, (RECORDS, *shape), np.uint8)


def labels() -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.arange(RECORDS) * 3 % 10


def write_npy_folder(out: Path, image: Any, label: Any) -> None:
    out.mkdir()
    np.save(out / "image.npy", image)
    np.save(out / "label.npy", label)


def write_cifar(out: Path, image: Any, label: Any) -> None:
    """Two batches in the format described at https://www.cs.toronto.edu/~kriz/cifar.html."""
    out.mkdir()
    rows = [bytes([y]) + x.tobytes() for x, y in zip(image, label, strict=True)]
    (out / "data_batch_1.bin").write_bytes(b"".join(rows[:15]))
    (out / "data_batch_2.bin").write_bytes(b"".join(rows[15:]))


def write_idx(out: Path, image: Any, label: Any) -> None:
    """In the format described at http://yann.lecun.com/exdb/mnist/: big-endian sizes."""
    out.mkdir()
    header = struct.pack(">BBBB3I", 0, 0, 8, 3, RECORDS, 28, 28)
    (out / "train-images-idx3-ubyte").write_bytes(header + image.tobytes())
    header = struct.pack(">BBBBI", 0, 0, 8, 1, RECORDS)
    data = header + label.astype(np.uint8).tobytes()
    (out / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(data))


def write_safetensors(out: Path, image: Any, label: Any) -> None:
    library = pytest.importorskip("safetensors.numpy")
    library.save_file({"image": image, "label": label}, out)


def write_hdf5(out: Path, image: Any, label: Any) -> None:
    library = pytest.importorskip("h5py")
    with library.File(out, "w") as file:
        file.create_dataset("image", data=image, chunks=(6, *image.shape[1:]), compression="gzip")
        file.create_dataset("label", data=label)


CONTAINERS: dict[str, tuple[tuple[int, ...], str, Callable[..., Any]]] = {
    "npy folder": ((3, 20, 30), "npy", write_npy_folder),
    "npz": ((3, 20, 30), "x.npz", lambda out, x, y: np.savez(out, image=x, label=y)),
    "npz deflate": (
        (3, 20, 30),
        "c.npz",
        lambda out, x, y: np.savez_compressed(out, image=x, label=y),
    ),
    "safetensors": ((3, 20, 30), "x.safetensors", write_safetensors),
    "hdf5": ((3, 20, 30), "x.h5", write_hdf5),
    "cifar": ((3, 32, 32), "cifar-10-batches-bin", write_cifar),
    "idx": ((28, 28), "MNIST", write_idx),
}


@pytest.fixture(params=CONTAINERS)
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[hr.Source, hr.Source]:
    """The container, and the same arrays in memory."""
    shape, name, write = CONTAINERS[request.param]
    image, label = pixels(*shape), labels()
    out = tmp_path / name
    write(out, image, label)
    path = out / "train-images-idx3-ubyte" if request.param == "idx" else out
    return hr.open(path), hr.records(image=image, label=label)


def loader(source: hr.Source, **given: Any) -> hr.Loader:
    steps = [T.RandomCrop(16), T.RandomHorizontalFlip()]
    options = {"batch_size": BATCH, "shuffle": True, "seed": 2, "fields": ("image", "label")}
    return hr.Loader(source, steps, **{**options, **given})


def values_of(run: hr.Loader) -> list[tuple[bytes, list[int]]]:
    return [(batch.image.tobytes(), batch.label.tolist()) for batch in run]


def test_epochs_equal_those_of_the_arrays(pair: tuple[hr.Source, hr.Source]) -> None:
    source, expected = pair
    assert len(source) == RECORDS
    assert source.column("label").tolist() == labels().tolist()
    run, other = loader(source, threads=3), loader(expected)
    for _epoch in range(2):
        assert values_of(run) == values_of(other)


def test_it_resumes_after_every_batch(pair: tuple[hr.Source, hr.Source]) -> None:
    whole = values_of(loader(pair[0]))
    first = loader(pair[0])
    for number, _ in enumerate(first, 1):
        rest = loader(pair[0])
        rest.load_state_dict(first.state_dict())
        assert values_of(rest) == whole[number:]


def test_shards_together_read_each_record_once(pair: tuple[hr.Source, hr.Source]) -> None:
    runs = [loader(pair[0], shard=(rank, 2), batch_size=4, fields=("id",)) for rank in range(2)]
    assert sorted(int(i) for run in runs for b in run for i in b.id) == list(range(RECORDS))
