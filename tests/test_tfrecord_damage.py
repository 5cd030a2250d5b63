# SPDX-License-Identifier: Apache-2.0
"""TFRecord files that are damaged, truncated or hostile: the lost records, and the errors."""

from __future__ import annotations

import gzip
import json
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tfrecord_writer import example, field, frame, masked, tfrecord, write_tfrecord

import headrace as hr


def test_a_missing_feature_is_an_error_of_its_record(tmp_path: Path) -> None:
    records = [example({"a": 1, "t": b"x"})] * 5000  # 77 and 99 of these are not sampled
    records[77] = example({"t": b"x"})
    records[99] = example({"a": 1})
    path = write_tfrecord(tmp_path / "x", records)
    source = hr.open(path)
    with pytest.raises(hr.DataError) as failure:
        source[77]
    assert failure.value.code == "HR0473"
    assert 'feature "a": the record does not have it' in str(failure.value)
    assert "record 77" in str(failure.value)
    with pytest.raises(hr.DataError, match="missing="):
        source[99]
    assert source.column("a").tolist() == [1] * 77 + [-1] + [1] * 4922
    assert hr.open(path, missing="empty")[99]["t"] == ""


def quarantine(path: Path, tmp_path: Path, **options: Any) -> list[dict[str, Any]]:
    lines = tmp_path / "bad.jsonl"
    loader = hr.Loader(
        path, batch_size=4, on_error="skip", quarantine=lines, fields=("n",), **options
    )
    loader.rows = [int(n) for batch in loader for n in np.asarray(batch["n"])]  # type: ignore[attr-defined]
    return [json.loads(line) for line in lines.read_text().splitlines()]


def test_a_wrong_checksum_of_data_is_one_bad_record(tmp_path: Path) -> None:
    records = [example({"n": n}) for n in range(20)]
    frames = [bytearray(frame(record)) for record in records]
    frames[7][14] ^= 1
    path = tmp_path / "x.tfrecord"
    path.write_bytes(b"".join(frames))
    (line,) = quarantine(path, tmp_path)
    assert line["code"] == "HR0471"
    assert line["record"] == 7
    assert line["offset"] == sum(map(len, frames[:7]))
    assert line["file"] == str(path)
    assert hr.open(path, verify=False, fields=["n:int64"]) is not None


def test_a_wrong_length_is_the_end_of_its_shard(tmp_path: Path) -> None:
    frames = [frame(example({"n": n})) for n in range(20)]
    for shard in range(3):
        broken = [bytearray(f) for f in frames]
        if shard == 1:
            broken[5][8] ^= 0x80
        (tmp_path / f"{shard}.tfrecord").write_bytes(b"".join(broken))
    source = hr.open(tmp_path)
    assert len(source) == 20 + 6 + 20
    assert "1 damaged place" in repr(source)
    (line,) = quarantine(tmp_path, tmp_path)
    assert (line["code"], line["record"]) == ("HR0470", 25)
    assert line["offset"] == sum(map(len, frames[:5]))
    assert source.column("n").tolist() == [*range(20), *range(5), -1, *range(20)]
    labels = hr.open(tmp_path, fields=["label=n"], label_offset=100).column("label")
    assert labels.tolist() == [*range(100, 120), *range(100, 105), -1, *range(100, 120)]


def test_every_truncation_preserves_the_records_before_it(tmp_path: Path) -> None:
    records = [example({"n": n, "t": b"x" * n}) for n in range(40)]
    whole = tfrecord(records)
    ends = np.cumsum([len(frame(record)) for record in records])
    for part in range(1, 64):
        size = len(whole) * part // 64
        path = tmp_path / f"{part}.tfrecord"
        path.write_bytes(whole[:size])
        intact = int(np.searchsorted(ends, size, side="right"))
        if intact == 0:
            with pytest.raises(hr.ConfigError, match="HR0475"):
                hr.open(path)
            continue
        source = hr.open(path, fields=["n"])
        cut = size not in ends
        assert len(source) == intact + cut
        assert [source[i]["n"] for i in range(intact)] == list(range(intact))
        if cut:
            with pytest.raises(hr.DataError, match="HR0470") as failure:
                source[intact]
            assert f"byte {ends[intact - 1]:,}".replace(",", "") in str(failure.value).replace(
                ",", ""
            )


@pytest.mark.parametrize("length", [2**63, 2**64 - 1, 2**64 - 16, 10**15])
def test_enormous_lengths_are_refused(tmp_path: Path, length: int) -> None:
    header = struct.pack("<Q", length)
    good = frame(example({"n": 1}))
    path = tmp_path / "x"
    path.write_bytes(good + header + masked(header) + b"data")
    source = hr.open(path)
    assert len(source) == 2
    with pytest.raises(hr.DataError, match=f"a record of {length} bytes extends beyond the end"):
        source[1]


@pytest.mark.parametrize(
    "message",
    [
        b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",  # a length of 2^64 - 1
        b"\x0b\x0c",  # a group
        b"\x0a\x05hello",  # invalid features
        # truncated varint
        field(1, field(1, field(1, b"n") + field(2, field(3, field(1, b"\xff"))))),
        field(1, field(1, field(1, b"n") + field(2, field(2, field(1, b"abc"))))),  # 3/4 of a float
        field(1, field(1, field(1, b"n") + field(2, b"") + field(2, b""))),  # two values
        b"\x0a" * 1000,
    ],
)
def test_data_that_is_not_protobuf_is_an_error_of_its_record(
    tmp_path: Path, message: bytes
) -> None:
    records = [example({"n": n}) for n in range(50)]
    records[13] = message
    path = write_tfrecord(tmp_path / "x", records)
    source = hr.open(path)
    with pytest.raises(hr.DataError) as failure:
        source[13]
    assert failure.value.code == "HR0472"
    assert source[14]["n"] == 14
    assert source.column("n").tolist() == [*range(13), -1, *range(14, 50)]


def test_a_truncated_compressed_shard_loses_its_end(tmp_path: Path) -> None:
    whole = gzip.compress(tfrecord([example({"n": n, "t": os.urandom(99)}) for n in range(99)]))
    path = tmp_path / "x.tfrecord.gz"
    path.write_bytes(whole[: len(whole) // 2])
    source = hr.open(path, fields=["n"])
    assert 40 < len(source) < 60
    assert [source[i]["n"] for i in range(len(source) - 1)] == list(range(len(source) - 1))
    with pytest.raises(hr.DataError) as failure:
        source[len(source) - 1]
    assert str(path) in str(failure.value)
