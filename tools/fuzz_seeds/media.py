# SPDX-License-Identifier: Apache-2.0
"""Audio in video containers, of a few bytes per packet, and replies of headrace-av."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from .sounds import encoded
from .videos import MATRIX, box, element, numbers

LC = b"\x11\x90"  # AAC-LC, 48 kHz, stereo
HE = b"\x2b\x92\x08\x00"


def mp4_audio_track() -> Iterator[bytes]:
    packets = [b"\x21\x10\x04", b"\x21\x10\x05\0", b"\x21\x10\x06"]
    late = numbers(0, 2, 100, -1, 0x10000, 50, 1024, 0x10000)
    for version, config, elst in ((0, LC, b""), (0, HE, late), (1, LC, late), (2, LC, b"")):
        specific = b"\5" + bytes([len(config)]) + config
        stream = b"\4" + bytes([13 + len(specific)]) + b"\x40" + bytes(12) + specific
        esds = box(b"esds", bytes(4), b"\3", bytes([3 + len(stream)]), bytes(3), stream)
        if version == 1:  # QuickTime wraps it
            esds = box(b"wave", esds)
        sound = bytes(7) + b"\1" + struct.pack(">H", version) + bytes(18)
        sound += bytes((0, 16, 36)[version]) + esds

        def moov(at: int, sound: bytes = sound, elst: bytes = elst) -> bytes:
            stbl = box(
                b"stbl",
                box(b"stsd", numbers(0, 1), box(b"mp4a", sound)),
                box(b"stts", numbers(0, 1, len(packets), 1024)),
                box(b"stsc", numbers(0, 1, 1, len(packets), 1)),
                box(b"stsz", numbers(0, 0, len(packets), *(len(each) for each in packets))),
                box(b"stco", numbers(0, 1, at)),
            )
            mdia = box(
                b"mdia",
                box(b"mdhd", numbers(0, 0, 0, 48000, 0, 0)),
                box(b"hdlr", numbers(0, 0), b"soun", numbers(0, 0, 0)),
                box(b"minf", stbl),
            )
            tkhd = box(b"tkhd", numbers(3, 0, 0, 1, *[0] * 6), MATRIX, bytes(8))
            edts = box(b"edts", box(b"elst", elst)) if elst else b""
            mvhd = box(b"mvhd", numbers(0, 0, 0, 1000, 0, 0x10000, 0, 0, 0), MATRIX, bytes(28))
            return box(b"moov", mvhd, box(b"trak", tkhd, edts, mdia))

        ftyp = box(b"ftyp", b"M4A ", bytes(4))
        yield ftyp + moov(len(ftyp) + len(moov(0)) + 8) + box(b"mdat", *packets)


def mkv_audio_track() -> Iterator[bytes]:
    def real(value: float) -> bytes:
        return struct.pack(">d", value)

    def block(time: int, lacing: int, content: bytes) -> bytes:
        return b"\x81" + struct.pack(">hB", time, 0x80 | lacing << 1) + content

    flac = encoded(200, 1, 8000, "FLAC", "PCM_16")
    opus = b"OpusHead\1\1" + struct.pack("<HIHB", 312, 48000, 0, 0)
    silence = b"\xfc\xff\xfe"  # of 20 ms
    laced = [
        block(0, 0, silence),
        block(20, 1, bytes([1, 3]) + silence * 2),
        block(60, 2, b"\1" + silence * 2),
        block(100, 3, b"\2\x83\xbf" + silence * 3),
    ]
    kinds = [
        (b"A_OPUS", opus, 48000.0, 1, 0, laced),
        (b"A_FLAC", flac[:42], 8000.0, 1, 16, [block(0, 0, flac[42:])]),
        (b"A_PCM/INT/LIT", b"", 8000.0, 2, 16, [block(i * 10, 0, bytes(320)) for i in range(3)]),
        (b"A_VORBIS", b"\2\7\7" + b"\1vorbis\3vorbis\5vorbis", 8000.0, 1, 0, laced),
        (b"A_AAC", LC, 48000.0, 2, 0, [block(i * 21, 0, b"\x21\x10\x04") for i in range(3)]),
    ]
    for codec, private, rate, channels, bits, blocks in kinds:
        audio = element(0xE1, element(0xB5, real(rate)), element(0x9F, channels))
        if bits:
            audio = element(0xE1, audio[3:], element(0x6264, bits))
        about = element(0x86, codec) + element(0x63A2, private) + element(0x56AA, 6500000)
        track = element(0xAE, element(0xD7, 1), element(0x83, 2), about, audio)
        front = element(0x1549A966, element(0x2AD7B1, 1000000)) + element(0x1654AE6B, track)
        group = element(0xA0, element(0xA1, blocks[-1]), element(0x75A2, b"\x0f\x42\x40"))
        cluster = element(
            0x1F43B675, element(0xE7, 0), *(element(0xA3, each) for each in blocks[:-1]), group
        )
        yield element(0x1A45DFA3, element(0x4282, b"webm")) + element(0x18538067, front, cluster)


def media_process() -> Iterator[bytes]:
    """A reply, the track's size, and the memory's size, as in the target's file."""
    frame, failed = 3, 5

    def reply(kind: int, failure: int, frame: bytes, name: bytes = b"", size: int = 8192) -> bytes:
        head = struct.pack("<4IQ", kind, failure, 0, 0, 0)
        tail = struct.pack("<4I32s", 0, 0, 0, 0, name)
        return head + frame + tail + struct.pack("<3H", 63, 47, size)

    def planes(count: int, x: int, y: int, bits: int, *, width: int = 64, matrix: int = 1) -> bytes:
        row = width * (2 if bits > 8 else 1) + 64
        places = [0, row * 48, row * 60]
        fields = int(bits == 10)
        head = struct.pack("<I6i4I4x", 0, width, 48, count, x, y, bits, fields, matrix, 1, 1)
        return head + struct.pack("<3Q3q", *places, row, row, row)

    for form in ((3, 1, 1, 8), (1, 0, 0, 8), (3, 1, 0, 10), (3, 0, 0, 12)):
        yield reply(frame, 0, planes(*form), size=65535)
    yield reply(frame, 0, planes(3, 1, 1, 8, width=62))
    yield reply(frame, 0, planes(3, 1, 1, 8, matrix=7))
    yield reply(frame, 0, planes(3, 1, 1, 8), size=100)
    for failure in range(9):
        yield reply(failed, failure, bytes(96), b"yuva420p")


SEEDS = {
    "mp4_audio_track": mp4_audio_track,
    "mkv_audio_track": mkv_audio_track,
    "media_process": media_process,
}
