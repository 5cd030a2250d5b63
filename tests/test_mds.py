# SPDX-License-Identifier: Apache-2.0
"""MDS shards are read as MosaicML Streaming reads them, and give the folder's batches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import CLASSES
from PIL import Image

import headrace as hr
from headrace import transforms as T


def write(
    folder: Path,
    columns: dict[str, tuple[str, int | None]],
    samples: list[tuple[bytes, ...]],
    per_shard: int = 8,
) -> Path:
    """What MDSWriter writes; columns must be sorted by name."""
    folder.mkdir(parents=True)
    sizes = [size for _, size in columns.values()]
    config = json.dumps({"columns": list(columns)}).encode()
    shards: list[dict[str, Any]] = []
    for number, begin in enumerate(range(0, len(samples), per_shard)):
        bodies = []
        for sample in samples[begin : begin + per_shard]:
            lengths = [len(v) for v, size in zip(sample, sizes, strict=True) if size is None]
            bodies.append(np.array(lengths, "<u4").tobytes() + b"".join(sample))
        offsets = (
            np.cumsum([0] + [len(body) for body in bodies]) + 4 * (len(bodies) + 2) + len(config)
        )
        data = np.uint32(len(bodies)).tobytes() + offsets.astype("<u4").tobytes() + config
        name = f"shard.{number:05}.mds"
        (folder / name).write_bytes(data + b"".join(bodies))
        shards.append(
            {
                "column_encodings": [encoding for encoding, _ in columns.values()],
                "column_names": list(columns),
                "column_sizes": sizes,
                "compression": None,
                "format": "mds",
                "hashes": [],
                "raw_data": {"basename": name, "bytes": 0, "hashes": {}},
                "samples": len(bodies),
                "size_limit": 1 << 26,
                "version": 2,
                "zip_data": None,
            }
        )
    (folder / "index.json").write_text(json.dumps({"shards": shards, "version": 2}, sort_keys=True))
    return folder


def files_of(pictures: Path) -> list[tuple[Path, int]]:
    return [
        (path, label)
        for label, name in enumerate(CLASSES)
        for path in sorted((pictures / name).iterdir())
    ]


@pytest.fixture(scope="session")
def shards(pictures: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    samples = [(path.read_bytes(), np.int64(label).tobytes()) for path, label in files_of(pictures)]
    columns: dict[str, tuple[str, int | None]] = {"image": ("png", None), "label": ("int", 8)}
    return write(tmp_path_factory.mktemp("mds") / "train", columns, samples)


def make(path: Path, **options: Any) -> hr.Loader:
    steps = [T.RandomResizedCrop(16), T.RandomHorizontalFlip()]
    return hr.Loader(path, steps, batch_size=4, shuffle=True, seed=5, **options)


def batches(loader: hr.Loader) -> list[tuple[bytes, bytes]]:
    return [(batch.image.tobytes(), batch.label.tobytes()) for batch in loader]


def test_batches_are_those_of_the_folder(shards: Path, pictures: Path) -> None:
    assert batches(make(shards)) == batches(make(pictures))
    assert hr.open(shards).column("label").tolist() == [c for _, c in files_of(pictures)]


def test_a_loader_resumes_at_every_step(shards: Path) -> None:
    want = batches(make(shards))
    for step in range(len(want)):
        first, second = make(shards, threads=1), make(shards, threads=3)
        running = iter(first)
        for _ in range(step):
            next(running)
        second.load_state_dict(first.state_dict())
        assert batches(second) == want[step:]


def test_all_shards_of_a_run_are_the_dataset(shards: Path) -> None:
    parts = [make(shards, shard=(rank, 3), fields="id") for rank in range(3)]
    assert {int(i) for part in parts for batch in part for i in batch.id} == set(range(23))


def test_bad_samples_are_told_exactly(shards: Path, pictures: Path, tmp_path: Path) -> None:
    samples = [(path.read_bytes(), np.int64(c).tobytes()) for path, c in files_of(pictures)]
    folder = write(tmp_path / "bad", {"image": ("png", None), "label": ("int", 8)}, samples)
    file = folder / "shard.00001.mds"
    data = bytearray(file.read_bytes())
    begin = int(np.frombuffer(data, "<u4", 1, 4 + 4 * 3)[0])
    data[begin : begin + 4] = b"\xff\xff\xff\xff"
    file.write_bytes(data)
    lines = tmp_path / "bad.jsonl"
    loader = hr.Loader(folder, batch_size=4, on_error="skip", quarantine=lines, fields=("label",))
    labels = [int(label) for batch in loader for label in batch.label]
    assert labels == [c for i, (_, c) in enumerate(files_of(pictures)) if i != 11]
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
    """The writer and reader of the streaming package, without what it imports for the cloud."""
    pytest.importorskip(
        "streaming", reason="mosaicml-streaming is not installed", exc_type=ImportError
    )
    from streaming import MDSWriter
    from streaming.base.format.mds.reader import MDSReader

    return MDSWriter, MDSReader


@pytest.mark.parametrize("compression", [None, "zstd:7", "gz"])
def test_what_streaming_writes_is_what_streaming_reads(
    tmp_path: Path, compression: str | None
) -> None:
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
