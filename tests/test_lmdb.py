# SPDX-License-Identifier: Apache-2.0
"""LMDB environments are read as by the lmdb package; promises for all containers are in
test_containers.py."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path

import numpy as np
import pytest
from conftest import labeled_files_of
from lmdb_writer import datum, write

import headrace as hr

lmdb = pytest.importorskip("lmdb", reason="the lmdb package is not installed")


@pytest.fixture(scope="session")
def datums(pictures: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder's images in its order, as written by Caffe's convert_imageset."""
    entries = {
        b"%08d_%s" % (i, path.name.encode()): datum(path.read_bytes(), label)
        for i, (path, label) in enumerate(labeled_files_of(pictures))
    }
    return write(tmp_path_factory.mktemp("lmdb") / "train_lmdb", entries)


def test_records_keys_and_labels_equal_those_of_the_files(datums: Path, pictures: Path) -> None:
    source = hr.open(datums)
    files = labeled_files_of(pictures)
    assert len(source) == len(files) == 23
    assert source.column("label").tolist() == [label for _, label in files]
    for i, (path, _) in enumerate(files):
        assert source[i]["image"].tobytes() == hr.open(pictures)[i]["image"].tobytes()
        assert source.key(i) == f"{i:08}_{path.name}"
    assert os.listdir(datums) == ["data.mdb"]
    assert "values: datum" in repr(source)


@pytest.mark.parametrize("seed", range(6))
def test_any_history_of_writes_reads_the_same_as_lmdb(tmp_path: Path, seed: int) -> None:
    """Values of all sizes put, changed and deleted in many transactions, read back in order."""
    rng = np.random.default_rng(seed)
    env = lmdb.open(str(tmp_path / "db"), map_size=1 << 27, max_dbs=2, subdir=seed % 2 == 0)
    name = b"part" if seed >= 3 else None
    database = env.open_db(name, integerkey=seed == 5)
    for _ in range(12):
        with env.begin(write=True, db=database) as txn:
            for _ in range(int(rng.integers(1, 120))):
                i = int(rng.integers(400))
                key = struct.pack("<Q", i) if seed == 5 else b"%d-" % i + b"k" * (i % 90)
                if rng.random() < 0.3:
                    txn.delete(key)
                else:
                    size = int(rng.choice([0, 1, 40, 700, 2030, 2040, 5000, 40000]))
                    txn.put(key, rng.bytes(size))
    with env.begin(db=database) as txn:
        want = list(txn.cursor())
    env.close()
    options = {"database": "part"} if name else {}
    source = hr.open(tmp_path / "db", format="lmdb", values="bytes", **options)
    assert [record["value"] for record in source] == [value for _, value in want]
    shown = [str(struct.unpack("<Q", key)[0]) if seed == 5 else key.decode() for key, _ in want]
    assert [source.key(i) for i in range(len(source))] == shown


def test_a_deep_tree_of_small_values_is_read(tmp_path: Path) -> None:
    entries = {b"%06d" % i: b"%d" % i for i in range(30000)}
    source = hr.open(write(tmp_path / "db", entries))
    assert len(source) == 30000
    picked = [0, 1, 12345, 29999]
    assert [source[i]["value"] for i in picked] == [b"%d" % i for i in picked]
    assert [source.key(i) for i in picked] == [f"{i:06}" for i in picked]


def test_several_environments_are_one_source(datums: Path, tmp_path: Path) -> None:
    for name in "ab":
        write(tmp_path / f"{name}_lmdb", {name.encode(): datum(b"\x89PNG\r\n\x1a\n", ord(name))})
    source = hr.open(tmp_path / "*_lmdb")
    assert source.column("label").tolist() == [ord("a"), ord("b")]
    assert [source.key(i) for i in range(2)] == ["a", "b"]


def test_pixels_of_a_datum_become_rgb(tmp_path: Path) -> None:
    bgr = np.random.default_rng(0).integers(0, 256, (3, 5, 7), dtype=np.uint8)
    path = write(tmp_path / "db", {b"0": datum(bgr.tobytes(), 3, (3, 5, 7), encoded=False)})
    np.testing.assert_array_equal(hr.open(path)[0]["image"], bgr[::-1])
    np.testing.assert_array_equal(hr.open(path, bgr=False)[0]["image"], bgr)
    batch = next(iter(hr.Loader(path, batch_size=1)))
    np.testing.assert_array_equal(batch.image[0], bgr[::-1])


def test_dupsort_is_refused(tmp_path: Path) -> None:
    with lmdb.open(str(tmp_path / "db"), max_dbs=1) as env:
        database = env.open_db(b"d", dupsort=True)
        with env.begin(write=True, db=database) as txn:
            txn.put(b"a", b"1")
            txn.put(b"a", b"2")
    with pytest.raises(hr.Error, match=r"HR0480.*dupsort"):
        hr.open(tmp_path / "db")


def test_pickles_are_refused_but_their_bytes_are_available(tmp_path: Path) -> None:
    import pickle

    entries = {b"%d" % i: pickle.dumps((b"picture", i)) for i in range(3)}
    path = write(tmp_path / "db", entries | {b"__len__": pickle.dumps(3)})
    with pytest.raises(hr.ConfigError, match="HR0484"):
        hr.open(path)
    assert len(hr.open(path, values="bytes")) == 3


def test_bad_records_are_reported_exactly(datums: Path, pictures: Path, tmp_path: Path) -> None:
    """One value that is not a Datum, and one whose overflow page claims to be another."""
    bad = tmp_path / "bad"
    entries = {
        b"%02d" % i: datum(p.read_bytes(), c) for i, (p, c) in enumerate(labeled_files_of(pictures))
    }
    entries[b"05"] = b"\x22\xff"
    write(bad, entries)
    file = bad / "data.mdb"
    data = bytearray(file.read_bytes())
    with lmdb.open(str(bad), lock=False, readonly=True) as env, env.begin() as txn:
        place = data.index(txn.get(b"09")) - 16
    assert place % 4096 == 0
    data[place] ^= 1
    file.write_bytes(data)
    labels = hr.open(datums).column("label").tolist()
    assert hr.open(bad).column("label").tolist() == [*labels[:5], -1, *labels[6:]]
    lines = tmp_path / "bad.jsonl"
    fields = ("id", "label")
    loader = hr.Loader(bad, batch_size=4, on_error="skip", quarantine=lines, fields=fields)
    seen = [int(i) for batch in loader for i in batch.id]
    assert seen == [i for i in range(23) if i not in (5, 9)]
    found = sorted(
        (json.loads(line) for line in lines.read_text().splitlines()), key=lambda x: x["record"]
    )
    five, nine = found
    assert (five["record"], five["key"], five["code"]) == (5, "05", "HR0485")
    assert five["member"] == "05" and five["file"] == str(file)
    assert data[five["offset"] :].startswith(b"\x22\xff")
    assert (nine["record"], nine["code"], nine["offset"]) == (9, "HR0482", place)
    assert "declares itself page" in nine["what"]


def test_every_truncation_is_an_error_or_gives_bad_records(datums: Path, tmp_path: Path) -> None:
    whole = (datums / "data.mdb").read_bytes()
    for cut in range(64):
        path = tmp_path / "cut.mdb"
        path.write_bytes(whole[: len(whole) * cut // 64])
        try:
            source = hr.open(path, format="lmdb", values="datum")
        except hr.Error as error:
            assert error.code in ("HR0481", "HR0484"), error
            continue
        for i in range(len(source)):
            try:
                source[i]
            except hr.DataError as error:
                assert error.code.startswith("HR048"), error
