# SPDX-License-Identifier: Apache-2.0
"""Videos with a few bytes per packet, as framed by the containers; none can be decoded."""

from __future__ import annotations

import struct
from collections.abc import Iterator

AVCC = bytes([1, 100, 0, 30, 0xFF, 0xE0, 0])
HVCC = bytes([1] + [0] * 20 + [0x0B, 1, 33, 0, 1, 0, 3, 0x42, 1, 0])


def unit(*content: int) -> bytes:
    return struct.pack(">I", len(content)) + bytes(content)


# A key frame with x264's build, one that others need, one that nothing needs, a recovery point.
SAYS = b"x264 - core 120 r2"
PACKETS = [
    unit(6, 5, 16 + len(SAYS), *bytes(16), *SAYS, 0x80) + unit(0x65, 0x88),
    unit(0x41, 0x9A),
    unit(0x01, 0x9E) + unit(0x01, 0x9F),
    unit(6, 6, 1, 0xC4, 0x80) + unit(0x41, 0x9A),
]
HEVC = [unit(0x26, 1, 0xAF), unit(0x02, 1, 0xD0), unit(0x00, 1, 0xE0), unit(0x2A, 1, 0xAC)]


def box(name: bytes, *content: bytes) -> bytes:
    body = b"".join(content)
    return struct.pack(">I", 8 + len(body)) + name + body


def numbers(*values: int) -> bytes:
    return struct.pack(f">{len(values)}I", *(value & 0xFFFFFFFF for value in values))


MATRIX = numbers(0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000)
TURNED = numbers(0, 0x10000, 0, -0x10000, 0, 0, 0, 0, 0x40000000)


def moov(
    packets: list[bytes], at: int, entry: bytes, more: bytes, wide: bool, elst: bytes
) -> bytes:
    visual = bytes(7) + b"\1" + bytes(16) + struct.pack(">HH", 64, 48) + bytes(50)
    sizes = [len(packet) for packet in packets]
    count = len(packets)
    chunk = struct.pack(">Q", at) if wide else numbers(at)
    stbl = box(
        b"stbl",
        box(b"stsd", numbers(0, 1), box(entry, visual, more)),
        box(b"stts", numbers(0, 1, count, 10)),
        box(b"ctts", numbers(0, 2, 1, 10, max(0, count - 1), 20)) if not wide else b"",
        box(b"stss", numbers(0, 2, 1, 4)),
        box(b"stsc", numbers(0, 1, 1, count, 1) if count else numbers(0, 0)),
        box(b"stsz", numbers(0, 0, count, *sizes)),
        box(b"co64" if wide else b"stco", numbers(0, 1 if count else 0), chunk if count else b""),
    )
    dinf = box(b"dinf", box(b"dref", numbers(0, 1), box(b"url ", numbers(1))))
    mdia = box(
        b"mdia",
        box(b"mdhd", numbers(0, 0, 0, 300, 0, 0)),
        box(b"hdlr", numbers(0, 0), b"vide", numbers(0, 0, 0)),
        box(b"minf", dinf, stbl),
    )
    tkhd = box(b"tkhd", numbers(3, 0, 0, 1, *[0] * 6), TURNED if wide else MATRIX, bytes(8))
    edts = box(b"edts", box(b"elst", elst)) if elst else b""
    mvhd = box(b"mvhd", numbers(0, 0, 0, 1000, 0, 0x10000, 0, 0, 0), MATRIX, bytes(28))
    mvex = box(b"mvex", box(b"trex", numbers(0, 1, 1, 10, 4, 0x10000))) if not count else b""
    return box(b"moov", mvhd, box(b"trak", tkhd, edts, mdia), mvex)


def mp4_track() -> Iterator[bytes]:
    nclx = box(b"colr", b"nclx", struct.pack(">HHHB", 9, 16, 9, 128))
    edits = numbers(0, 2, 100, -1, 0x10000, 100, 10, 0x10000)
    esds = bytes(4) + b"\3\x19\0\0\0\4\x11\x20" + bytes(12) + b"\5\2\0\0"
    coded = [
        (PACKETS, b"avc1", box(b"avcC", AVCC), False, b""),
        (PACKETS, b"avc3", box(b"avcC", AVCC) + nclx, True, edits),
        (HEVC, b"hvc1", box(b"hvcC", HVCC), False, edits),
        ([b"\x82\0", b"\x84\0"], b"vp09", box(b"vpcC", bytes(12)), False, b""),
        ([b"\0\0\1\xb6"], b"mp4v", box(b"esds", esds), True, b""),
    ]
    ftyp = box(b"ftyp", b"isom", bytes(4))
    for packets, entry, more, wide, elst in coded:
        at = len(ftyp) + len(moov(packets, 0, entry, more, wide, elst)) + 8
        yield ftyp + moov(packets, at, entry, more, wide, elst) + box(b"mdat", *packets)
    start = ftyp + moov([], 0, b"avc1", box(b"avcC", AVCC), False, b"")
    for run in (numbers(5, 2, 100, 0), numbers(0xF01, 1, 100, 5, 8, 0, 1), numbers(0, 2)):
        tfhd = box(b"tfhd", numbers(0x20000, 1))
        traf = box(b"traf", tfhd, box(b"tfdt", numbers(0, 40)), box(b"trun", run))
        yield start + box(b"moof", box(b"mfhd", numbers(0, 1)), traf) + box(b"mdat", *PACKETS)


def element(name: int, *content: bytes | int) -> bytes:
    body = b"".join(c if isinstance(c, bytes) else struct.pack(">I", c) for c in content)
    head = name.to_bytes((name.bit_length() + 7) // 8, "big")
    return head + bytes([0x40 | len(body) >> 8, len(body) & 0xFF]) + body


def mkv_track() -> Iterator[bytes]:
    def block(time: int, flags: int, packet: bytes) -> bytes:
        return b"\x81" + struct.pack(">hB", time, flags) + packet

    for codec, private, packets in (
        (b"V_MPEG4/ISO/AVC", AVCC, PACKETS),
        (b"V_MPEGH/ISO/HEVC", HVCC, HEVC),
        (b"V_VP8", b"", [b"\x10", b"\0"]),
    ):
        color = element(0x55B0, element(0x55B1, 1), element(0x55B9, 2))
        pose = element(0x7670, element(0x7675, struct.pack(">d", -90)))
        video = element(0xE0, element(0xB0, 64), element(0xBA, 48), color, pose)
        coded = element(0x86, codec) + element(0x63A2, private) + element(0x23E383, 40000000)
        track = element(0xAE, element(0xD7, 1), element(0x83, 1), coded, video)
        front = element(0x1549A966, element(0x2AD7B1, 1000000)) + element(0x1654AE6B, track)
        blocks = [element(0xA3, block(i * 40, 0x80 * (i == 0), p)) for i, p in enumerate(packets)]
        group = element(0xA0, element(0xA1, block(7, 0, packets[0])), element(0x9B, 40))
        cluster = element(0x1F43B675, element(0xE7, 100), *blocks, group)
        ebml = element(0x1A45DFA3, element(0x4282, b"webm"))
        yield ebml + element(0x18538067, front, cluster, cluster)
        endless = bytes([0x1F, 0x43, 0xB6, 0x75, 0xFF]) + cluster[6:]
        yield ebml + bytes([0x18, 0x53, 0x80, 0x67, 0xFF]) + front + endless + endless


def video_index() -> Iterator[bytes]:
    """Without the hash after it, which the target computes."""

    def column(width: int, *values: int) -> bytes:
        return bytes([width]) + b"".join(value.to_bytes(width, "little") for value in values)

    for width, gap in ((1, 0), (2, 0), (4, 2000)):
        head = struct.pack("<5B2i3qI", 0, 1, 2, 1, 1, 64, 48, 90000, 1, 1536, len(AVCC)) + AVCC
        sizes, gaps = column(width, 7, 9, 11), column(width, 48, gap, gap)
        times = struct.pack("<qq", 512, 0) + column(1, 0, 4, 1) + b"\1"
        yield (
            b"HRVIDEO1"
            + head
            + struct.pack("<II", 3, 3)
            + sizes
            + gaps
            + times
            + column(1, 0, 2, 3)
        )


SEEDS = {"mp4_track": mp4_track, "mkv_track": mkv_track, "video_index": video_index}
