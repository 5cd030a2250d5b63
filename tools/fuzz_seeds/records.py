# SPDX-License-Identifier: Apache-2.0
"""Record containers: tar, RecordIO, TFRecord, LMDB, MDS."""

from __future__ import annotations

import gzip
import io
import itertools
import json
import struct
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import lmdb
import lmdb_writer
import numpy as np
import recordio_writer
import tfrecord_writer

from fuzz_seeds.arrays import npy
from fuzz_seeds.pictures import SMALL_JPEG


def tar() -> Iterator[bytes]:
    members = [
        ("a/1.jpg", SMALL_JPEG), ("a/1.cls", b"3"), ("a/1.json", b'{"a": 1, "c": {"d": "x"}}'),
        ("a/1.npy", npy(np.arange(4.0))), ("a/2.jpg", b""), ("a/2.cls", b"cat"),
        ("b.png", b"\x89PNG"), ("b.txt", "déf".encode()), ("l" * 120 + ".txt", b"long"),
    ]  # fmt: skip
    formats = (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)
    for format, some in itertools.product(formats, (members[:3], members[3:6], members[5:])):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=format) as archive:
            for name, data in some if format != tarfile.USTAR_FORMAT else some[:3]:
                entry = tarfile.TarInfo(name)
                entry.size = len(data)
                if format == tarfile.PAX_FORMAT:
                    entry.pax_headers = {"mtime": "1.5", "comment": "c"}
                archive.addfile(entry, io.BytesIO(data))
            link = tarfile.TarInfo("link")
            link.type, link.linkname = tarfile.SYMTYPE, "b.txt"
            archive.addfile(link)
        content = out.getvalue().rstrip(b"\0") + bytes(1024)
        content += bytes(-len(content) % 512)
        for way in (0, 16 + 4 + 1, 16 + 8 + 3):
            yield bytes([way]) + content
    yield b"\0" + gzip.compress(content, mtime=0)


def recordio() -> Iterator[bytes]:
    contents = [
        recordio_writer.ir(3.0, 1, SMALL_JPEG),
        recordio_writer.ir([1.0, 2.0], 2, b"abc"),
        b"plain",
        b"ab" * 6 + recordio_writer.MAGIC + b"cdef",
    ]
    for some in (contents, contents[:1], contents[1:2] * 2, contents[2:], []):
        yield b"\0" + recordio_writer.recordio(some)
        yield b"\0" + recordio_writer.index(some, range(len(some))).encode()
    yield b"\1" + bytes([0, 28]) + contents[0][:24] + b"abcd" + bytes([1, 3]) + b"abc\x03\x02de"
    yield b"\1" + bytes([0, 36]) + contents[1][:35] + b"x"


def tfrecord() -> Iterator[bytes]:
    values = {
        "image": SMALL_JPEG,
        "label": 3,
        "text": b"t",
        "f": [0.5, 1.5],
        "u": b"abcd",
        "i": [1, -2],
    }
    examples = [tfrecord_writer.example(values, packed) for packed in (True, False)]
    examples.append(tfrecord_writer.example({"label": [], "e": b"", "l": [7, 8]}))
    examples.append(tfrecord_writer.sequence_example({"label": 1}, {"steps": [1, [2, 3]]}))
    for message in (*examples, b"", b"no message"):
        yield b"\0" + tfrecord_writer.tfrecord([message])
        yield b"\1" + message
        yield b"\2" + message + message
    yield b"\0" + tfrecord_writer.tfrecord(examples)


def tf_index() -> Iterator[bytes]:
    records = [tfrecord_writer.tfrecord([value]) for value in (b"", b"first", b"second" * 9)]
    lines, at = [], 0
    for record in records:
        lines.append(f"{at} {len(record)}")
        at += len(record)
    for index in (lines, lines[:2], lines[::-1], [*lines, "9 9"], ["x"], [lines[0] + " 7"], []):
        text = ("\n".join(index) + "\n").encode()
        text += b"\n" * (-len(text) % 4) if index is not lines else b""
        yield bytes([len(text) // 4]) + text + b"".join(records)
        padded = text.ljust((len(text) + 3) // 4 * 4, b"\n")
        yield bytes([len(padded) // 4]) + padded + b"".join(records)


def wds_index() -> Iterator[bytes]:
    """An index as written by wds2idx, and its archive."""
    members = [("a/1.jpg", b"J" * 700), ("a/1.cls", b"3"), ("a/2.jpg", b""), ("a/2.cls", b"12")]
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    archive_bytes = out.getvalue()[:6144]
    places = [(512, 700), (2048, 1), (3072, 0), (3584, 2)]
    for version in ("v1.1", "v1.2"):
        lines = [f"{version} 2"]
        for sample in (0, 2):
            parts = []
            for (name, _), (at, size) in zip(
                members[sample : sample + 2], places[sample:], strict=False
            ):
                parts.append(
                    f"{name.split('.')[1]} {at} {size}" + (f" {name}" if version == "v1.2" else "")
                )
            lines.append(" ".join(parts))
        for index in (lines, lines[:2], [lines[0], *lines[:0:-1]]):
            text = ("\n".join(index) + "\n").encode()
            text = text.ljust((len(text) + 15) // 16 * 16, b"\n")
            yield bytes([len(text) // 16]) + text + archive_bytes
            yield bytes([len(text) // 16]) + text + archive_bytes[:2000]


def lmdb_files() -> Iterator[bytes]:
    for way, place in itertools.product((0, 1, 2, 3, 8, 16), (10, 90, 700, 1536, 4000)):
        yield bytes([way]) + struct.pack("<HB", place, 1) + b"\0\1"
    pixels = bytes(range(48))
    values: list[Callable[[int], bytes]] = [
        lambda i: lmdb_writer.datum(pixels, i, (3, 4, 4), encoded=False),
        lambda i: lmdb_writer.datum(SMALL_JPEG, i),
        lambda i: lmdb_writer.tensors(SMALL_JPEG, i),
        lambda i: b"value" * (i * 300),
    ]
    for value, flags in zip(values, (4, 8 + 4, 16 + 4, 4), strict=True):
        with tempfile.TemporaryDirectory() as folder:
            with lmdb.open(folder, map_size=1 << 20) as file, file.begin(write=True) as transaction:
                for i in range(6):
                    transaction.put(b"%04d" % i, value(i))
            yield bytes([flags]) + Path(folder, "data.mdb").read_bytes()


def mds() -> Iterator[bytes]:
    for kind, place in itertools.product(range(8), (0, 4, 60, 100, 200)):
        yield bytes([kind]) + struct.pack("<HB", place, 1) + b"\0\1"
    shard = {
        "column_encodings": ["int", "str"], "column_names": ["label", "text"],
        "column_sizes": [8, None], "compression": None, "format": "mds", "hashes": [],
        "raw_data": {"basename": "shard.00000.mds", "bytes": 100, "hashes": {}}, "samples": 5,
        "size_limit": 1 << 26, "version": 2, "zip_data": None,
    }  # fmt: skip
    zipped = {
        **shard,
        "compression": "zstd",
        "zip_data": {"basename": "a.zstd", "bytes": 9, "hashes": {}},
    }
    for shards in ([shard], [shard, zipped], []):
        yield b"\3" + json.dumps({"shards": shards, "version": 2}).encode()


SEEDS = {
    "lmdb": lmdb_files,
    "mds": mds,
    "recordio": recordio,
    "tar": tar,
    "tf_index": tf_index,
    "tfrecord": tfrecord,
    "wds_index": wds_index,
}
