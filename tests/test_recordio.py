# SPDX-License-Identifier: Apache-2.0
"""RecordIO: the same records as the files that they were made from, and as MXNet reads them."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import files_of, label_of, pixels_of
from recordio_writer import MAGIC, frame, index, ir, recordio

import headrace as hr
from headrace import transforms as T

AUGMENT = [T.RandomCrop(12), T.RandomHorizontalFlip(), T.ToDtype("float32", scale=True)]


def write(path: Path, records: list[bytes]) -> Path:
    path.write_bytes(recordio(records))
    return path


def picture_records(pictures: Path) -> list[bytes]:
    return [ir(label_of(p), n, p.read_bytes()) for n, p in enumerate(files_of(pictures))]


@pytest.fixture(scope="module")
def packed(pictures: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("rec") / "train.rec", picture_records(pictures))


def batches_of(source: Any, **options: Any) -> list[bytes]:
    given: dict[str, Any] = {"batch_size": 4, "shuffle": True, "fields": ("image", "label")}
    loader = hr.Loader(source, AUGMENT, **{**given, **options})
    return [np.asarray(b["image"]).tobytes() + np.asarray(b["label"]).tobytes() for b in loader]


def test_records_and_batches_equal_those_of_the_folder(packed: Path, pictures: Path) -> None:
    source = hr.open(packed)
    assert [(f.name, f.kind, f.dtype) for f in source.schema] == [
        ("image", "image", "uint8"),
        ("label", "label", "int64"),
    ]
    paths = files_of(pictures)
    for record, path in zip(source, paths, strict=True):
        assert np.array_equal(record["image"], pixels_of(path))
        assert record["label"] == label_of(path)
    assert source.column("label").tolist() == [label_of(path) for path in paths]
    for threads in (1, 3):
        assert batches_of(source, threads=threads, seed=4) == batches_of(pictures, seed=4)
    assert f"recordio {packed} (23 records)" in repr(source)


def test_a_loader_resumes_at_every_step(packed: Path) -> None:
    whole = batches_of(packed)
    for step in range(len(whole)):
        first = hr.Loader(packed, AUGMENT, batch_size=4, shuffle=True)
        running = iter(first)
        for _ in range(step):
            next(running)
        second = hr.Loader(packed, AUGMENT, batch_size=4, shuffle=True)
        second.load_state_dict(first.state_dict())
        rest = [np.asarray(b["image"]).tobytes() for b in second]
        assert len(rest) == len(whole) - step
        assert all(whole[step + i].startswith(image) for i, image in enumerate(rest))


def test_all_shards_of_a_run_cover_the_dataset(pictures: Path, tmp_path: Path) -> None:
    records = picture_records(pictures)
    for number in range(3):
        write(tmp_path / f"part-{number}.rec", records[number * 8 : number * 8 + 8])
    source = hr.open(tmp_path)
    assert source.key(9) == "part-1.rec:1"
    seen: set[int] = set()
    for rank in range(2):
        loader = hr.Loader(
            source, batch_size=1, shard=(rank, 2), last_batch="pad", fields=("id", "label")
        )
        seen |= {int(i) for batch in loader for i in np.asarray(batch["id"])}
    assert seen == set(range(23))


def test_a_record_that_contains_the_magic_number_is_restored(tmp_path: Path) -> None:
    contents = [
        MAGIC,
        MAGIC * 3,
        b"abcd" + MAGIC + b"ef",
        b"a" + MAGIC + b"bc" + MAGIC,  # not at multiples of four: not split
        b"",
        b"xyz",
        MAGIC + struct.pack("<I", 5) + b"hello" + MAGIC,
    ]
    path = write(tmp_path / "x.rec", contents)
    assert path.read_bytes().count(MAGIC + struct.pack("<I", 1 << 29)) == 3
    source = hr.open(path, header=False)
    assert [record["data"] for record in source] == contents
    labeled = write(tmp_path / "y.rec", [ir(3, n, c) for n, c in enumerate(contents)])
    source = hr.open(labeled)
    assert [record["data"] for record in source] == contents
    assert source.column("label").tolist() == [3] * 7
    # The label's own bytes are the magic number.
    magic = [struct.pack("<I", 0) + MAGIC + bytes(16) + b"data"]
    source = hr.open(write(tmp_path / "z.rec", magic), header=True, label_dtype="float32")
    assert source[0]["label"] == np.frombuffer(MAGIC, "<f4")[0]


def test_labels_of_every_kind_are_read(tmp_path: Path) -> None:
    def opened(labels: list[Any], **options: Any) -> Any:
        records = [ir(label, n, b"data") for n, label in enumerate(labels)]
        return hr.open(write(tmp_path / "x.rec", records), **options)

    source = opened([0.5, 2, 3.25])
    assert (source.schema[1].dtype, source.schema[1].shape) == ("float32", ())
    assert [float(r["label"]) for r in source] == [0.5, 2, 3.25]
    source = opened([[1, 2, 3, 4, 5], [6.5]])
    assert source.schema[1].shape == (-1,)
    assert [r["label"].tolist() for r in source] == [[1, 2, 3, 4, 5], [6.5]]
    source = opened([[1, 2, 3, 4, 5, 6], [7] * 6], label_shape=[-1, 3])
    assert source[0]["label"].tolist() == [[1, 2, 3], [4, 5, 6]]
    source = opened([[1, 2], [3, 4]], label_shape=2)
    assert source.schema[1].shape == (2,)
    with pytest.raises(hr.DataError, match=r"HR0477.*2 labels, which do not fit label_shape"):
        opened([[1, 2], [3, 4]], label_shape=3)[1]
    with pytest.raises(hr.DataError, match=r"HR0477.*not an integer: 0.5"):
        opened([0.5], label_dtype="int64")[0]
    assert opened([1, 0.5], label_dtype="int64").column("label").tolist() == [1, -1]
    with pytest.raises(hr.ConfigError, match=r"HR0478.*int64 or float32"):
        opened([1], label_dtype="int32")
    few = [ir(n, n, b"data") for n in range(200)]
    few[77] = struct.pack("<IfQQ", 1000, 0, 0, 0)
    source = hr.open(write(tmp_path / "y.rec", few))
    with pytest.raises(hr.DataError, match=r"HR0477.*too short for its header"):
        source[77]


def test_an_index_names_the_records(pictures: Path, tmp_path: Path) -> None:
    records = picture_records(pictures)
    path = write(tmp_path / "x.rec", records)
    assert hr.open(path).key(5) == "x.rec:5"
    beside = tmp_path / "x.idx"
    for keys in (range(23), range(100, 123), [f"name {n}" for n in range(23)], ["007"] * 23):
        beside.write_text(index(records, keys))
        assert [hr.open(path).key(n) for n in range(23)] == [str(key) for key in keys]
    lines = index(records, range(23)).splitlines(keepends=True)
    beside.write_text("".join(lines[::-1][:20]))  # in any order, and not for all records
    assert [hr.open(path).key(n) for n in (2, 3, 22)] == ["x.rec:2", "3", "22"]
    for wrong in ("1\t2\n", "no index", "", "1\t-5\n"):
        beside.write_text(wrong)
        assert hr.open(path).key(5) == "x.rec:5"  # found, but not trusted
        with pytest.raises(hr.ConfigError, match=r"HR0479.*is not the index of"):
            hr.open(path, index=str(beside))


def quarantine(path: Path, tmp_path: Path) -> tuple[list[dict[str, Any]], list[int]]:
    lines = tmp_path / "bad.jsonl"
    loader = hr.Loader(path, batch_size=4, on_error="skip", quarantine=lines, fields=("label",))
    labels = [int(n) for batch in loader for n in np.asarray(batch["label"])]
    text = lines.read_text() if lines.exists() else ""
    return [json.loads(line) for line in text.splitlines()], labels


@pytest.mark.parametrize("at", [0, 4, 7])
def test_damage_affects_only_its_record(tmp_path: Path, at: int) -> None:
    """Damage of the magic number, the length, the kind."""
    frames = [bytearray(frame(ir(n, n, b"x" * (n * 7)))) for n in range(30)]
    frames[12][at] ^= 0x40
    path = tmp_path / "x.rec"
    path.write_bytes(b"".join(frames))
    bad, labels = quarantine(path, tmp_path)
    assert [(line["code"], line["record"]) for line in bad] == [("HR0476", 12)]
    assert bad[0]["offset"] == sum(map(len, frames[:12]))
    assert bad[0]["file"] == str(path)
    assert labels == [n for n in range(30) if n != 12]


def test_a_length_that_includes_the_next_record_is_detected_on_reading(tmp_path: Path) -> None:
    frames = [bytearray(frame(ir(n, n, b"x" * 40))) for n in range(10)]
    frames[4][4:8] = struct.pack("<I", 64 + len(frames[5]))
    path = tmp_path / "x.rec"
    path.write_bytes(b"".join(frames))
    bad, labels = quarantine(path, tmp_path)
    assert [(line["code"], line["record"]) for line in bad] == [("HR0476", 4)]
    assert labels == [0, 1, 2, 3, 6, 7, 8, 9]


def test_every_truncation_preserves_the_records_before_it(tmp_path: Path) -> None:
    records = [ir(n, n, MAGIC + b"x" * n) for n in range(40)]
    whole = recordio(records)
    ends = np.cumsum([len(frame(record)) for record in records])
    for part in range(1, 64):
        size = len(whole) * part // 64
        path = tmp_path / f"{part}.rec"
        path.write_bytes(whole[:size])
        intact = int(np.searchsorted(ends, size, side="right"))
        if intact == 0:
            continue
        source = hr.open(path)
        assert len(source) in (intact, intact + 1)
        assert [source[i]["label"] for i in range(intact)] == list(range(intact))
        if len(source) > intact and size < ends[intact] - 3:
            with pytest.raises(hr.DataError, match="HR0476"):
                source[intact]


def test_records_without_a_header_are_read(tmp_path: Path, pictures: Path) -> None:
    paths = files_of(pictures)[:4]
    source = hr.open(write(tmp_path / "a.rec", [path.read_bytes() for path in paths]))
    assert [f.name for f in source.schema] == ["image"]
    assert np.array_equal(source[3]["image"], pixels_of(paths[3]))
    words = [b"short", b"some longer text, longer than a header is", b""]
    source = hr.open(write(tmp_path / "b.rec", words))
    assert [record["data"] for record in source] == words
    with pytest.raises(hr.ConfigError, match=r"HR0478.*there is no record in"):
        hr.open(write(tmp_path / "c.rec", []))


# --- MXNet ----------------------------------------------------------------------------------------


def test_files_of_mxnet_are_read_as_mxnet_reads_them(tmp_path: Path, pictures: Path) -> None:
    mxnet = pytest.importorskip("mxnet")
    header = mxnet.recordio.IRHeader
    contents = [path.read_bytes() for path in files_of(pictures)]
    contents[3] += MAGIC * 2 + b"x"
    contents[4] += bytes(-len(contents[4]) % 4) + MAGIC + b"abcd" + MAGIC
    for name, labels in {
        "single": [float(n) for n in range(23)],
        "arrays": [np.arange(n + 1, dtype=np.float32) for n in range(23)],
    }.items():
        path = tmp_path / f"{name}.rec"
        theirs = mxnet.recordio.MXIndexedRecordIO(str(path.with_suffix(".idx")), str(path), "w")
        packed = []
        for n, (label, content) in enumerate(zip(labels, contents, strict=True)):
            packed.append(mxnet.recordio.pack(header(0, label, n, 0), content))
            theirs.write_idx(n * 3, packed[-1])
        theirs.close()
        assert path.read_bytes() == recordio(packed)  # written by the tests themselves
        source = hr.open(path)
        reader = mxnet.recordio.MXRecordIO(str(path), "r")
        raw = hr.open(path, header=False)
        for n in range(23):
            item = reader.read()
            unpacked, content = mxnet.recordio.unpack(item)
            assert source.engine.read(n)["image"] == content
            assert np.array_equal(np.ravel(source[n]["label"]), np.ravel(unpacked.label))
            assert source.key(n) == str(n * 3)
            assert raw.engine.read(n)["data"] == item
        assert reader.read() is None
