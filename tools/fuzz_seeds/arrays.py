# SPDX-License-Identifier: Apache-2.0
"""Arrays: .npy, .npz, IDX and CIFAR, safetensors."""

from __future__ import annotations

import gzip
import io
import json
import struct
import zipfile
from collections.abc import Iterator
from typing import Any

import numpy as np


def npy(array: np.ndarray, version: tuple[int, int] | None = None) -> bytes:
    out = io.BytesIO()
    np.lib.format.write_array(out, array, version, allow_pickle=True)
    return out.getvalue()


def arrays() -> Iterator[np.ndarray]:
    for dtype in ("?", "i1", "<u2", ">u2", "<i4", ">i8", "<f2", "<f4", ">f8"):
        yield np.arange(12).reshape(3, 2, 2).astype(dtype)
    yield np.asfortranarray(np.arange(6, dtype="<i4").reshape(2, 3))
    yield np.arange(3.0)
    yield np.zeros((0, 4), "<f4")
    yield np.zeros((2, 0), "<f4")
    yield np.array(["ab", "c"], "S3")
    yield np.array(["äb", "c"])
    yield np.array([(1, 2.0)], [("a", "<i4"), ("b", "<f8")])
    yield np.array(5, "<i8")
    yield np.array([1 + 2j], "<c8")


def npy_files() -> Iterator[bytes]:
    for array in arrays():
        yield b"\0" + npy(array)
        header = npy(array)[10:]
        yield b"\x77" + header[:0x76].ljust(0x76) + b"\n" + header[0x76:][: array.nbytes]
    for version in ((2, 0), (3, 0)):
        yield b"\0" + npy(np.arange(4), version)
    yield b"\0" + npy(np.array([None, 1], object))


def npz() -> Iterator[bytes]:
    images, labels = np.zeros((3, 2, 2), "u1"), np.arange(3)
    for save in (np.savez, np.savez_compressed):
        for columns in ({"a": np.arange(4.0)}, {"image": images, "label": labels}, {}):
            out = io.BytesIO()
            save(out, **columns)
            yield out.getvalue()
    for level, comment in ((0, b""), (9, b"comment")):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=level) as archive:
            with archive.open("x.npy", "w", force_zip64=True) as member:
                member.write(npy(images))
            archive.writestr("empty.npy", b"")
            archive.writestr("note.txt", "no array")
            archive.comment = comment
        yield out.getvalue()


def idx() -> Iterator[bytes]:
    for code, dtype in ((8, "u1"), (9, "i1"), (11, ">i2"), (12, ">i4"), (13, ">f4"), (14, ">f8")):
        for shape in ((3,), (2, 3, 2)):
            array = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
            sizes = struct.pack(f">{len(shape)}I", *shape)
            content = bytes([0, 0, code, len(shape)]) + sizes + array.tobytes()
            yield b"\0" + content
            yield b"\0" + gzip.compress(content, mtime=0)
    for record in (b"\x03" + bytes(3072), b"\x13\x07" + bytes(3072)):
        yield b"\x01" + gzip.compress(record * 2, mtime=0)


def safetensors() -> Iterator[bytes]:
    for columns in (
        {"a": ("F32", [2, 3], 24)},
        {"image": ("U8", [3, 2, 2], 12), "label": ("I64", [3], 24)},
        {"b": ("BF16", [2], 4), "c": ("BOOL", [2], 2), "d": ("F16", [2, 0], 0)},
        {"e": ("F64", [], 8), "f": ("U16", [2], 4), "g": ("F8_E4M3", [4], 4)},
        {},
    ):
        header: dict[str, Any] = {"__metadata__": {"by": "hand"}}
        at = 0
        for name, (dtype, shape, size) in columns.items():
            header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
            at += size
        text = json.dumps(header).encode()
        yield b"\0" + struct.pack("<Q", len(text)) + text + bytes(range(at))
        text += b" " * (-len(text) % 4)
        yield bytes([len(text) // 4 | 1]) + text.ljust((len(text) // 4 | 1) * 4) + bytes(at)


def cifar() -> Iterator[bytes]:
    names = b"airplane\r\n\nbird\ncat"
    for way in range(8):
        yield bytes([way, 3, 0, 255, 9, 0, 4, 7]) + names
    yield bytes([0, 2, 0, 1, 11, 1]) + names
    yield bytes([1, 0])


def tokens() -> Iterator[bytes]:
    """The kind, the bytes of the .bin, and the file: a Megatron .idx, or tokens."""
    for code, item in ((1, 1), (4, 4), (5, 8), (8, 2)):
        for lengths, ends in (((3, 1, 0, 4), (0, 2, 4)), ((1,), (0, 1)), ((), (0,))):
            pointers = np.cumsum([0, *lengths])[:-1] * item
            header = b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, code, len(lengths), len(ends))
            tables = np.array(lengths, "<i4").tobytes() + pointers.astype("<i8").tobytes()
            index = header + tables + np.array(ends, "<i8").tobytes()
            yield bytes([0, sum(lengths) * item]) + index
            if len(lengths) > 1:
                yield bytes([0, sum(lengths) * item]) + index + bytes(len(lengths))
    for magic, version, dtype in ((20240520, 1, "<u2"), (20240801, 7, "<u4")):
        header = struct.pack("<3i", magic, version, 9) + bytes(1012)
        yield b"\1\0" + header + np.arange(9).astype(dtype).tobytes()
    for dtype in ("<u2", ">i4", "<f4"):
        yield b"\1\0" + npy(np.arange(9).astype(dtype))
    yield b"\1\0" + np.arange(9).astype("<u2").tobytes()


def columns() -> Iterator[bytes]:
    """Offsets, valid bits and data of two parts: form, number of rows of each, bytes of data."""
    for form in range(32):
        item = "<q" if form & 1 else "<i"
        ends = (0, 2, 2, 4)
        part = b"".join(struct.pack(item, end) for end in ends) + b"\x05" + b"Ab\xc3\xa9cdef"
        yield bytes([form, 3, 3, 8]) + part * 2
        damaged = part.replace(struct.pack(item, 4), struct.pack(item, 1 << 30))
        yield bytes([form, 3, 3, 8]) + part + damaged


SEEDS = {
    "cifar": cifar,
    "columns": columns,
    "idx": idx,
    "npy": npy_files,
    "npz": npz,
    "safetensors": safetensors,
    "tokens": tokens,
}
