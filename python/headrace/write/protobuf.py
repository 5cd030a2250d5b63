# SPDX-License-Identifier: Apache-2.0
"""The two parts of protobuf's wire format that containers need."""

from __future__ import annotations


def varint(value: int) -> bytes:
    """A varint: seven bits per byte, low bits first; negative numbers as 64 bits."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def message(number: int, data: bytes) -> bytes:
    """A field of wire type 2 (bytes, text, messages): its tag, its length, its bytes."""
    return varint(number << 3 | 2) + varint(len(data)) + data
