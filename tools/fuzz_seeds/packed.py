# SPDX-License-Identifier: Apache-2.0
"""Packed bytes: deflate and Zstandard."""

from __future__ import annotations

import gzip
import itertools
import struct
import zlib
from collections.abc import Iterator


def streams(text: bytes) -> Iterator[bytes]:
    """As raw deflate, zlib and gzip."""
    for bits, level in itertools.product((-15, 15, 31), (0, 1, 9)):
        packer = zlib.compressobj(level, wbits=bits)
        yield packer.compress(text) + packer.flush()


TEXTS = (b"", b"a", b"headrace " * 20, bytes(range(256)), bytes(5000))


def inflate() -> Iterator[bytes]:
    for text in TEXTS:
        for number, stream in enumerate(streams(text)):
            yield bytes([number // 3, 6, 1]) + stream


def unpacker() -> Iterator[bytes]:
    for text in TEXTS:
        for number, stream in enumerate(streams(text)):
            if number >= 3:
                yield bytes([1 if number < 6 else 0, 6, 1]) + stream
    two = gzip.compress(b"one", mtime=0) + gzip.compress(b"two", mtime=0)
    yield b"\0\x06\x01" + two
    # RFC 8878: a frame with a raw block, then one with a run, then one that is skipped.
    raw = b"\x28\xb5\x2f\xfd\x20\x03\x19\0\0abc"
    run = b"\x28\xb5\x2f\xfd\x20\x09\x4b\0\0x"
    yield b"\2\x06\x01" + raw
    yield b"\2\x06\x01" + raw + run + b"\x50\x2a\x4d\x18\x02\0\0\0ab"


def unpack() -> Iterator[bytes]:
    """Changes to an intact pack of files: type, then position, count and bytes, repeated."""
    for way in range(4):
        yield bytes([way, 0])
        for place in (90, 4096, 4110, 4200, 9000, 20000):
            for content in (b"../../x", b"/tmp/x", b"\0\0\0\0", b"\xff" * 8):
                yield bytes([way]) + struct.pack("<HB", place, len(content) - 1) + content


SEEDS = {"unpack": unpack, "inflate": inflate, "unpacker": unpacker}
