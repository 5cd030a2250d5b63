# SPDX-License-Identifier: Apache-2.0
"""HDF5: each way in which h5py stores a dataset, in the oldest and the newest format."""

from __future__ import annotations

import itertools
import struct
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np


def dataset(data: Any, **options: Any) -> Callable[[h5py.File], None]:
    return lambda file: file.create_dataset("x", data=data, **options)


def compact(file: h5py.File) -> None:
    create = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    create.set_layout(h5py.h5d.COMPACT)
    space = h5py.h5s.create_simple((3, 2))
    made = h5py.h5d.create(file.id, b"x", h5py.h5t.STD_I32LE, space, create)
    made.write(h5py.h5s.ALL, h5py.h5s.ALL, np.arange(6, dtype="<i4").reshape(3, 2))


def links(file: h5py.File) -> None:
    file["x"] = np.arange(3)
    file["outside"] = h5py.ExternalLink("b.h5", "/v")
    file["a"], file["b"] = h5py.SoftLink("/b"), h5py.SoftLink("/a")
    for i in range(40):  # more than a group's header, and than a leaf of its tree, can hold
        file[f"many/a name that takes some room {i:03}"] = h5py.SoftLink("/x")


def shared_type(file: h5py.File) -> None:
    file["type"] = np.dtype("<i4")
    file.create_dataset("x", (3,), file["type"])
    for i in range(12):  # continues its header
        file["x"].attrs[f"attribute {i}"] = "text " * 9


def virtual(file: h5py.File) -> None:
    layout = h5py.VirtualLayout((4,), "<i8")
    layout[:] = h5py.VirtualSource("b.h5", "v", (4,))
    if file.libver[0] != "earliest":
        file.create_virtual_dataset("x", layout)


DATASETS: list[Callable[[h5py.File], None]] = [
    dataset(np.arange(6, dtype="u1").reshape(3, 2)),
    dataset(np.arange(30, dtype=">i2"), chunks=(4,), compression="gzip", shuffle=True),
    dataset(np.arange(8, dtype="<f4"), chunks=(4,), fletcher32=True, maxshape=(None,)),
    dataset(np.arange(8, dtype="<f8"), chunks=(4,), compression="lzf"),
    dataset(np.arange(200, dtype="u1").reshape(100, 2), chunks=(1, 2), maxshape=(None, 2)),
    dataset(np.arange(200, dtype="u1").reshape(50, 4), chunks=(1, 3), maxshape=(None, None)),
    dataset(np.arange(60, dtype="u1").reshape(5, 4, 3), chunks=(2, 3, 2), maxshape=(9, 4, 3)),
    dataset(np.array([b"ab", b"c"])),
    dataset(["text", ""], dtype=h5py.string_dtype()),
    dataset([b"cat", b"dog", b"cat"], dtype=h5py.string_dtype(length=4)),
    dataset(np.array([(1, 2.0)] * 2, [("a", "<i4"), ("b", "<f8")])),
    dataset(np.array([0, 1], "i1"), dtype=h5py.enum_dtype({"no": 0, "yes": 1}, "i1")),
    dataset(np.array([True, False])),
    dataset(np.array([b"ab\0", b"\0cd"], "V3")),
    dataset(np.zeros(2, np.complex64)),
    dataset(np.arange(4), chunks=(4,), scaleoffset=0),
    dataset(5.0),
    lambda file: file.create_dataset("x", (2,), np.dtype(("<i4", (2, 2)))),
    lambda file: file.create_dataset("x", (2,), h5py.ref_dtype),
    lambda file: file.create_dataset("x", (4, 3), "<i2", chunks=(2, 3), fillvalue=7),
    lambda file: file.create_dataset("x", (4,), "<i8", external=[("b.bin", 0, 32)]),
    compact,
    links,
    shared_type,
    virtual,
]


def hdf5() -> Iterator[bytes]:
    for way, place in itertools.product(range(4), (0, 8, 96, 800, 2048, 4000)):
        yield bytes([way]) + struct.pack("<HB", place, 1) + b"\0\1"
    for make, version in itertools.product(DATASETS, ("earliest", "latest")):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "a.h5")
            with h5py.File(path, "w", libver=version) as file:
                make(file)
            yield b"\x04" + path.read_bytes()


SEEDS = {"hdf5": hdf5}
