# SPDX-License-Identifier: Apache-2.0
"""Writes headrace/formats/hdf5/hdf5_test_files.h: two small files by h5py, in the oldest and the
newest form, from which the C++ tests and the fuzz target of the HDF5 reader start.

    python tests/hdf5_seeds.py > headrace/formats/hdf5/hdf5_test_files.h
"""

from __future__ import annotations

import gzip
import tempfile
from pathlib import Path

import h5py
import numpy as np

ROWS = 6


def make(path: Path, version: str) -> bytes:
    """Every structure of the format that the reader supports, as small as possible."""
    with h5py.File(path, "w", libver=version) as file:
        file["x"] = np.arange(ROWS * 2 * 3, dtype="u1").reshape(ROWS, 2, 3)
        file["y"] = np.arange(ROWS, dtype=">i2")
        file.create_dataset(
            "packed",
            data=np.arange(60, dtype="<i4").reshape(ROWS, 10),
            chunks=(2, 4),
            compression="gzip",
            shuffle=True,
            fletcher32=True,
        )
        zeros = np.zeros((ROWS, 4), "u1")
        file.create_dataset("lzf", data=zeros, chunks=(ROWS, 4), compression="lzf")
        pairs = np.arange(12, dtype=">f4").reshape(ROWS, 2)
        file.create_dataset("grows", data=pairs, chunks=(1, 2), maxshape=(None, 2))
        file["text"] = ["a", "bc", "", "déf", "ghij", "k"]
        values = file.create_dataset("bytes", (ROWS,), h5py.vlen_dtype(np.uint8))
        for i in range(ROWS):
            values[i] = np.arange(i, dtype=np.uint8)
        file.create_dataset("deep/in/holes", (ROWS, 2), "<i8", chunks=(2, 2), fillvalue=3)[1] = 4
        file["fixed"] = np.array([b"ab", b"c"] * 3)
        file["soft"] = h5py.SoftLink("/deep/in/holes")
        if version == "latest":
            halves = pairs.astype("<f2")
            file.create_dataset("everywhere", data=halves, chunks=(2, 1), maxshape=(None, None))
            for i in range(9):  # more than fit in the group's header
                file[f"links/{i}"] = h5py.SoftLink("/y")
    return path.read_bytes()


def literal(content: bytes) -> str:
    lines = [content[i : i + 22] for i in range(0, len(content), 22)]
    return "\n".join('    "' + "".join(f"\\x{byte:02x}" for byte in line) + '"' for line in lines)


def main() -> None:
    print("// SPDX-License-Identifier: Apache-2.0")
    print("// Made by tests/hdf5_seeds.py: files by h5py, gzipped.")
    print("#pragma once\n\n#include <string_view>\n\nnamespace headrace {\n\n// clang-format off")
    with tempfile.TemporaryDirectory() as folder:
        for name, version in (("kOldHdf5File", "earliest"), ("kYoungHdf5File", "latest")):
            content = gzip.compress(make(Path(folder) / "seed.h5", version), 9, mtime=0)
            print(f"inline constexpr std::string_view {name}(")
            print(literal(content) + f",\n    {len(content)});")
    print("// clang-format on\n\n}  // namespace headrace")


if __name__ == "__main__":
    main()
