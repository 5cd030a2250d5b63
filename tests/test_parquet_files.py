# SPDX-License-Identifier: Apache-2.0
"""Promise: many, large, damaged or inconsistent Parquet and Arrow files give clear errors."""

from __future__ import annotations

import importlib
import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from headrace.sources.arrow_files import packed_batches, row_groups
from PIL import Image

import headrace as hr

pa = pytest.importorskip("pyarrow")
pq: Any = pytest.importorskip("pyarrow.parquet")

MANY = """
import resource, sys
import headrace as hr
resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
for memory in (None, 0):
    source = hr.parquet(sys.argv[1], memory=memory)
    print([int(record["x"]) for record in source] == list(range(100)))
"""


def test_more_files_than_a_process_may_open_are_read(tmp_path: Path) -> None:
    for i in range(100):
        pq.write_table(pa.table({"x": [i]}), tmp_path / f"{i:03}.parquet")
    run = subprocess.run([sys.executable, "-c", MANY, tmp_path], capture_output=True, text=True)
    assert run.stdout.split() == ["True", "True"], run.stderr


def test_decompression_of_pages_is_limited_by_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_groups, "LEAST_UNPACKED", 1 << 20)
    zeros = pa.table({"data": [bytes(4 << 20)] * 2, "label": [0, 1]})
    pq.write_table(zeros, tmp_path / "a.parquet", compression="zstd", use_dictionary=False)
    with pytest.raises(hr.ResourceLimitError, match="HR0499") as caught:
        hr.open(tmp_path / "a.parquet")
    assert "memory=" in caught.value.hint
    assert len(hr.parquet(tmp_path / "a.parquet", memory=16 << 20)[1]["data"]) == 4 << 20
    assert hr.open(tmp_path / "a.parquet", fields=["label"])[1]["label"] == 1


def number(value: int, size: int = 0) -> bytes:
    """As Parquet's footer has it, in that many bytes."""
    value, out = value << 1 if value >= 0 else ~(value << 1), bytearray()
    while value or len(out) < max(size, 1):
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out[:-1]) + bytes([out[-1] & 0x7F])


def lie(path: Path, true: bytes, false: bytes) -> None:
    content = path.read_bytes()
    footer = content.rindex(b"PAR1") - 4 - int.from_bytes(content[-8:-4], "little")
    at = content.index(true, footer)
    path.write_bytes(content[:at] + false + content[at + len(true) :])


def test_decompression_is_limited_if_the_footer_understates_the_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_groups, "LEAST_UNPACKED", 1 << 20)
    zeros = pa.table({"data": [bytes(4 << 20)] * 2})
    path = tmp_path / "a.parquet"
    pq.write_table(zeros, path, compression="zstd", use_dictionary=False)
    size = pq.ParquetFile(path).metadata.row_group(0).column(0).total_uncompressed_size
    lie(path, number(size), number(1000, len(number(size))))
    assert pq.ParquetFile(path).metadata.row_group(0).column(0).total_uncompressed_size == 1000
    with pytest.raises(hr.ResourceLimitError, match="HR0499"):
        hr.open(path)


@pytest.mark.parametrize("negative", [False, True])
def test_row_groups_that_contradict_the_number_of_rows_are_an_error(
    tmp_path: Path, negative: bool
) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"x": np.arange(300)}), path, row_group_size=100)
    if negative:
        size = number(pq.ParquetFile(path).metadata.row_group(0).total_byte_size)
        lie(path, size + b"\x16" + number(100), size + b"\x16" + number(-100))
    lie(path, number(300), number(100))
    groups = pq.ParquetFile(path).metadata
    assert groups.row_group(0).num_rows == (-100 if negative else 100) and groups.num_rows == 100
    for memory in (None, 0):
        with pytest.raises(hr.UnsupportedError, match=r"HR0427.*100 rows"):
            hr.parquet(path, memory=memory)


@pytest.mark.parametrize("packing", ["zstd", "lz4"])
@pytest.mark.parametrize("stream", [False, True])
def test_decompression_of_batches_is_limited_by_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packing: str, stream: bool
) -> None:
    table = pa.table(
        {"data": [bytes(1 << 20)] * 4, "word": pa.array(["a"] * 4).dictionary_encode()}
    )
    options = pa.ipc.IpcWriteOptions(compression=packing)
    writer = pa.ipc.new_stream if stream else pa.ipc.new_file
    path = str(tmp_path / "a.arrow")
    with pa.OSFile(path, "wb") as file, writer(file, table.schema, options=options) as out:
        out.write_table(table)
    source = hr.open(path)
    assert len(source[3]["data"]) == 1 << 20 and source[3]["word"] == "a"
    monkeypatch.setattr(packed_batches, "LEAST_UNPACKED", 1 << 20)
    with pytest.raises(hr.ResourceLimitError, match="HR0499"):
        hr.open(path)


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_any_library_exception_for_a_damaged_file_becomes_our_error(
    tmp_path: Path, kind: str
) -> None:
    table = pa.table({"x": [1.5, 2.5], "näme": ["a", "bé"], "label": ["ä", "b"]})
    path = tmp_path / f"a.{kind}"
    if kind == "parquet":
        pq.write_table(table, path)
    else:
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as out:
            out.write_table(table)
    sound = path.read_bytes()
    draws = random.Random(0)
    for _ in range(150):
        damaged = bytearray(sound)
        for _ in range(draws.randrange(1, 4)):
            damaged[draws.randrange(len(sound))] = draws.randrange(256)
        path.write_bytes(damaged)
        try:
            source = hr.open(path, format=kind)
            source[0]
        except hr.Error:
            pass


def test_a_non_arrow_exception_becomes_our_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pq.write_table(pa.table({"x": [1]}), tmp_path / "a.parquet")
    library = importlib.import_module("headrace.sources.arrow_files.parquet_files")

    class Failing:
        def ParquetFile(self, *_: Any, **__: Any) -> Any:
            raise KeyError("a column")

    monkeypatch.setattr(library, "pyarrow", lambda *_: Failing())
    with pytest.raises(hr.UnsupportedError, match="HR0427"):
        hr.open(tmp_path / "a.parquet")


def labeled(names: list[str] | None, labels: list[int]) -> Any:
    table = pa.table({"x": np.zeros(len(labels)), "label": pa.array(labels, pa.int64())})
    if names is None:
        return table
    features = {"label": {"names": names, "_type": "ClassLabel"}}
    info = {"info": {"features": features}}
    return table.replace_schema_metadata({"huggingface": json.dumps(info)})


def write(folder: Path, kind: str, **tables: Any) -> Path:
    for name, table in tables.items():
        if kind == "parquet":
            pq.write_table(table, folder / f"{name}.parquet")
        else:
            path = str(folder / f"{name}.arrow")
            with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, table.schema) as out:
                out.write_table(table)
    return folder


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
@pytest.mark.parametrize("names", [["bird", "cat"], ["dog", "cat"], ["cat"]])
def test_files_with_other_class_names_are_refused(
    tmp_path: Path, kind: str, names: list[str]
) -> None:
    folder = write(
        tmp_path, kind, a=labeled(["cat", "dog"], [0, 1]), b=labeled(names, [0] * len(names))
    )
    with pytest.raises(hr.UnsupportedError, match=r"HR0427 .*b\.\w+.*'cat', 'dog'"):
        hr.open(folder)
    assert len(hr.open(folder, fields=["x"])) == 2 + len(names)


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_files_with_the_same_class_names_are_accepted(tmp_path: Path, kind: str) -> None:
    names = ["cat", "dog"]
    folder = write(tmp_path, kind, a=labeled(None, [0]), b=labeled(names, [1]))
    assert hr.open(folder).classes == names
    if kind == "parquet":
        assert hr.parquet(folder, memory=0).classes == names


@pytest.mark.parametrize("door", ["file", "arrow", "frame", "columns", "objects", "bytes"])
def test_images_in_tables_are_images_for_every_way_of_opening(tmp_path: Path, door: str) -> None:
    """In Hugging Face's layout, {"bytes", "path"}; under any name in a table."""
    stored = []
    for value in (7, 200):
        Image.fromarray(np.full((4, 5, 3), value, np.uint8)).save(tmp_path / "x.png")
        stored.append({"bytes": (tmp_path / "x.png").read_bytes(), "path": f"{value}.png"})
    table = pa.table({"img": pa.array(stored), "label": [3, 4]})
    pq.write_table(table, tmp_path / "x.parquet")
    given: Any = {"arrow": table, "file": tmp_path / "x.parquet"}.get(door)
    if door == "frame":
        given = pytest.importorskip("pandas").read_parquet(tmp_path / "x.parquet")
    elif door == "columns":
        given = {"image": stored, "label": [3, 4]}
    elif door == "objects":
        given = [{"image": each, "label": i} for i, each in enumerate(stored, 3)]
    elif door == "bytes":
        given = {"image": [each["bytes"] for each in stored], "label": [3, 4]}
    source = hr.open(given)
    assert [(field.name, field.kind) for field in source.schema] == [
        ("image", "image"),
        ("label", "label"),
    ]
    record = source[1]
    assert record["image"].shape == (3, 4, 5) and record["image"].min() == 200
    assert record["label"] == 4
