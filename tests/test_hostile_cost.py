# SPDX-License-Identifier: Apache-2.0
"""A small file costs little, whatever it declares: it is rejected, or read cheaply."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

import headrace as hr


def test_unwritten_labels_are_refused_before_classes_are_made(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("label", (60_000_000,), "S1")
    with pytest.raises(hr.ResourceLimitError, match="the labels of its rows") as caught:
        hr.open(tmp_path / "a.h5")
    assert caught.value.code == "HR0499"


def test_unwritten_columns_are_not_loaded(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for i in range(60):
            file.create_dataset(f"v{i}", (60_000_000,), "i1", fillvalue=i)
    source = hr.open(tmp_path / "a.h5")
    assert int(np.asarray(source[59_999_999]["v59"])) == 59


def test_an_archive_of_many_members_that_expand_too_much_is_refused(tmp_path: Path) -> None:
    zeros = io.BytesIO()
    np.save(zeros, np.zeros(63 << 20, np.uint8))
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        for i in range(9):
            archive.writestr(f"v{i}.npy", zeros.getvalue())
    with pytest.raises(hr.ResourceLimitError, match="unpacking 'v") as caught:
        hr.open(tmp_path / "a.npz")
    assert caught.value.code == "HR0499"
    assert len(hr.open(tmp_path / "a.npz", fields=["v3"])) == 63 << 20


def mds(folder: Path, shards: int, offsets: list[int], body: bytes, columns: int = 1) -> Path:
    names = [f"c{i % 7} {'!?'[i % 2]}" for i in range(columns)]
    shard = {
        "column_names": names,
        "column_encodings": ["bytes"] * columns,
        "column_sizes": [None] * columns,
        "compression": None,
        "format": "mds",
        "raw_data": {"basename": "shard.00000.mds", "bytes": 0, "hashes": {}},
        "samples": len(offsets) - 1,
        "version": 2,
        "zip_data": None,
    }
    (folder / "index.json").write_text(json.dumps({"shards": [shard] * shards, "version": 2}))
    table = struct.pack(f"<{len(offsets) + 1}I", len(offsets) - 1, *offsets)
    (folder / "shard.00000.mds").write_bytes(table + body)
    return folder


def test_a_shard_listed_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(hr.DataError, match="which an earlier shard also uses") as caught:
        hr.open(mds(tmp_path, 1000, [12, 17], b"\1\0\0\0x"))
    assert caught.value.code == "HR0486"


def test_a_shard_of_samples_without_offsets_gives_a_short_error_list(tmp_path: Path) -> None:
    samples = 300_000
    source = hr.open(mds(tmp_path, 1, [0xFFFFFFFF] * (samples + 1), b""))
    size = (tmp_path / "shard.00000.mds").stat().st_size
    assert len(source) == 1000 + size // 4096 + 1
    with pytest.raises(hr.DataError, match="the rest is not read"):
        source[len(source) - 1]


def test_columns_of_the_same_name_are_numbered(tmp_path: Path) -> None:
    columns = 4000
    body = struct.pack(f"<{columns}I", *([1] * columns)) + b"x" * columns
    begin = 12
    source = hr.mds(mds(tmp_path, 1, [begin, begin + len(body)], body, columns))
    names = [field.name for field in source.schema]
    assert len(set(names)) == columns and names[:2] == ["c0__", "c1__"]
    with pytest.raises(hr.DataError, match="at most 4096 are supported"):
        hr.mds(mds(tmp_path, 1, [begin, begin], b"", 5000))


def test_a_file_of_a_hundred_thousand_tensors_is_refused(tmp_path: Path) -> None:
    header = {
        f"t{i}": {"dtype": "U8", "shape": [1], "data_offsets": [i, i + 1]} for i in range(100_000)
    }
    text = json.dumps(header).encode()
    (tmp_path / "a.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + bytes(100_000))
    with pytest.raises(hr.ConfigError, match="at most 4,096 are supported"):
        hr.open(tmp_path / "a.safetensors")
    assert len(hr.open(tmp_path / "a.safetensors", fields=["t99999", "t5"])) == 1


@pytest.mark.parametrize("kept_as", ["strings", "structs", "dictionary", "arrow"])
def test_a_string_shared_by_all_rows_is_refused(tmp_path: Path, kept_as: str) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = 3000
    words = pa.DictionaryArray.from_arrays(np.zeros(rows, np.int32), ["x" * (1 << 20), "y"])
    table = pa.table({"s": words, "n": np.arange(rows)})
    if kept_as == "structs":
        table = table.set_column(0, "s", pa.StructArray.from_arrays([words], ["bytes"]))
    path = tmp_path / ("a.arrow" if kept_as == "arrow" else "a.parquet")
    if kept_as == "arrow":
        with pa.ipc.new_file(str(path), table.schema) as writer:
            writer.write_table(table)
    else:
        pq.write_table(table, path, store_schema=kept_as == "dictionary")
    with pytest.raises(hr.ResourceLimitError, match="are stored once for many rows") as caught:
        hr.open(path)
    assert caught.value.code == "HR0499"
    assert len(hr.open(path, fields=["n"])) == rows


def test_run_length_encoded_rows_are_not_expanded_in_memory(tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pa.table({"n": np.zeros(1 << 20, np.int64)})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=1 << 18)
    assert (tmp_path / "a.parquet").stat().st_size < 10_000
    held = hr.open(tmp_path / "a.parquet")
    on_demand = hr.parquet(tmp_path / "a.parquet", memory=1 << 20)
    assert "on demand" in repr(on_demand) and "on demand" not in repr(held)
    assert on_demand[(1 << 20) - 1]["n"] == held[5]["n"] == 0
