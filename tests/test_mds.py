# SPDX-License-Identifier: Apache-2.0
"""MDS shards are read as by MosaicML Streaming; promises for all containers are in
test_containers.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import labeled_files_of
from mds_writer import write
from PIL import Image

import headrace as hr


def test_bad_samples_are_reported_exactly(pictures: Path, tmp_path: Path) -> None:
    samples = [(path.read_bytes(), np.int64(c).tobytes()) for path, c in labeled_files_of(pictures)]
    folder = write(tmp_path / "bad", {"image": ("png", None), "label": ("int", 8)}, samples)
    file = folder / "shard.00001.mds"
    data = bytearray(file.read_bytes())
    begin = int(np.frombuffer(data, "<u4", 1, 4 + 4 * 3)[0])
    data[begin : begin + 4] = b"\xff\xff\xff\xff"
    file.write_bytes(data)
    lines = tmp_path / "bad.jsonl"
    loader = hr.Loader(folder, batch_size=4, on_error="skip", quarantine=lines, fields=("label",))
    labels = [int(label) for batch in loader for label in batch.label]
    assert labels == [c for i, (_, c) in enumerate(labeled_files_of(pictures)) if i != 11]
    (line,) = (json.loads(text) for text in lines.read_text().splitlines())
    assert (line["record"], line["key"], line["code"]) == (11, "shard.00001.mds:3", "HR0488")
    assert (line["file"], line["offset"]) == (str(file), begin)


def test_pickled_columns_are_refused_and_can_be_left_out(tmp_path: Path) -> None:
    columns: dict[str, tuple[str, int | None]] = {"meta": ("pkl", None), "x": ("int", 8)}
    folder = write(tmp_path / "d", columns, [(b"\x80\x04N.", np.int64(5).tobytes())])
    with pytest.raises(hr.ConfigError, match=r"HR0487.*pickles"):
        hr.open(folder)
    assert hr.open(folder, columns=["x"])[0]["x"] == 5


def streaming() -> Any:
    """The writer and reader of the streaming package, without its imports for clouds."""
    pytest.importorskip(
        "streaming", reason="mosaicml-streaming is not installed", exc_type=ImportError
    )
    from streaming import MDSWriter
    from streaming.base.format.mds.reader import MDSReader

    return MDSWriter, MDSReader


@pytest.mark.parametrize("compression", [None, "zstd:7", "gz"])
def test_our_records_equal_those_read_by_streaming(tmp_path: Path, compression: str | None) -> None:
    MDSWriter, MDSReader = streaming()
    rng = np.random.default_rng(3)
    columns = {
        "f16": "float16",
        "flag": "uint8",
        "json": "json",
        "label": "int",
        "name": "str",
        "pil": "pil",
        "png": "png",
        "raw": "bytes",
        "si": "str_int",
        "sf": "str_float",
        "vary": "ndarray",
        "fixed": "ndarray:float32:2,3",
        "typed": "ndarray:int16",
    }
    samples = []
    for i in range(40):
        picture = Image.fromarray(rng.integers(0, 256, (9 + i % 4, 7, 3), dtype=np.uint8))
        samples.append(
            {
                "f16": np.float16(i / 7),
                "flag": np.uint8(i),
                "json": {"i": i},
                "label": i * i,
                "name": f"näme {i}",
                "pil": picture,
                "png": picture,
                "raw": rng.bytes(i),
                "si": 10**i if i < 19 else -i,
                "sf": i / 3,
                "vary": rng.integers(0, 9, (1 + i % 3, 300), dtype=np.int32),
                "fixed": rng.random((2, 3), dtype=np.float32),
                "typed": rng.integers(0, 9, (1 + i,), dtype=np.int16),
            }
        )
    out = tmp_path / "out"
    with MDSWriter(
        out=str(out), columns=columns, compression=compression, size_limit=20000
    ) as writer:
        for sample in samples:
            writer.write(sample)
    source = hr.open(out)
    assert len(source) == 40
    index = json.loads((out / "index.json").read_text())
    assert len(index["shards"]) > 2
    assert source.column("label").tolist() == [i * i for i in range(40)]
    for record, sample in zip(source, samples, strict=True):
        assert record["label"] == sample["label"] and record["si"] == sample["si"]
        assert record["name"] == sample["name"] and record["raw"] == sample["raw"]
        assert json.loads(record["json"]) == sample["json"]
        assert float(record["sf"]) == sample["sf"] and record["f16"] == sample["f16"]
        assert record["flag"] == sample["flag"]
        for name in ("vary", "fixed", "typed"):
            np.testing.assert_array_equal(record[name], sample[name])
            assert record[name].dtype == sample[name].dtype
        pixels = np.asarray(sample["pil"]).transpose(2, 0, 1)
        np.testing.assert_array_equal(record["pil"], pixels)
    if compression is None:
        first = MDSReader.from_json(str(out), "", index["shards"][0])
        assert first[0]["name"] == source[0]["name"]
