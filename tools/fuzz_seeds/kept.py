# SPDX-License-Identifier: Apache-2.0
"""Headrace's cache files: indexes of containers, listings of folders."""

from __future__ import annotations

import struct
from collections.abc import Iterator


def container_index() -> Iterator[bytes]:
    def text(value: bytes) -> bytes:
        return struct.pack("<Q", len(value)) + value

    def index(damage: bytes, tallies: bytes, longs: bytes, records: list[tuple[int, int]]) -> bytes:
        out = damage + tallies + longs + struct.pack("<Q", len(records))
        out += bytes(-(names + len(out)) % 8)
        out += b"".join(struct.pack("<Q", offset) for offset, _ in records)
        return out + b"".join(struct.pack("<I", length) for _, length in records)

    names = 40 + 3 * (56 + len("/tmp/headrace-123456/file0"))  # the prefix written by the target
    none = bytes(8)
    one = struct.pack("<Q", 1)
    damage = one + struct.pack("<qQ", 1, 600) + text(b"HR0401") + text(b"what") + text(b"hint")
    tally = one + text(b"jpg") + struct.pack("<q", 3)
    records = [(0, 600), (600, 400), (0, 70)]
    yield b"\2\0\1\1" + index(damage, tally, none, records)
    yield b"\2\0\1\1" + index(none, none, none, records)
    yield b"\2\0\1\1" + index(none, none, one + struct.pack("<qQ", 1, 2**32), records)
    yield b"\0\0\0\1" + index(none, none, none, [])
    yield b"\0\0\0\0HRCONTNR" + struct.pack("<Q", 1)


def listing_cache() -> Iterator[bytes]:
    def listing(folders: list[str], files: list[str], tables: list[str]) -> bytes:
        out = struct.pack("<QQQQ", 0, 0, len(folders), len(files))
        for i in range(len(folders)):
            count = len(files) if i + 1 == len(folders) else 0
            out += struct.pack("<QqqQ", i + 1, 10**18, 10**18, count)
        for names in (folders, files, tables):
            if names is tables:
                out += struct.pack("<QQ1sQQ4sQ", 2, 1, b"t", 1, 4, b"a_gt", len(tables))
            out += b"".join(struct.pack("<I", len(name)) for name in names)
            out += "".join(names).encode()
        return out

    for folders, files in (([""], []), ([""], ["a.jpg", "b.png"]), (["", "c"], ["c/a.jpg"])):
        yield listing(folders, files, ["a.csv"] if files else [])


def unpacked_copy() -> Iterator[bytes]:
    yield bytes([255])  # intact
    for kept in (0, 8, 12, 20, 40):
        yield bytes([kept]) + bytes(9)
        yield bytes([kept]) + struct.pack("<Q", 1000) + b"\1" + struct.pack("<Q", 6) + b"HR0211"
    for changed in (b"\0", b"\1", b"\1" + struct.pack("<Q", 1 << 60)):
        yield bytes([254]) + changed


SEEDS = {
    "container_index": container_index,
    "listing_cache": listing_cache,
    "unpacked_copy": unpacked_copy,
}
