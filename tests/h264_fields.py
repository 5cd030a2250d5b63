# SPDX-License-Identifier: Apache-2.0
"""Writes H.264 whose frames are pairs of fields (PAFF), which x264 cannot: by hand, following ITU-T
H.264 7.3, with blocks of raw samples (I_PCM) and fields that repeat the previous one (P_Skip).
"""

from __future__ import annotations

import io
from fractions import Fraction

import numpy as np

Unit = bytes
Planes = tuple[np.ndarray, np.ndarray, np.ndarray]
WIDTH, HEIGHT = 64, 64
BLOCKS = WIDTH // 16 * (HEIGHT // 32)  # of a field


class Bits:
    def __init__(self) -> None:
        self.text = ""

    def u(self, count: int, value: int) -> Bits:
        self.text += format(value, f"0{count}b")
        return self

    def ue(self, *values: int) -> Bits:
        for value in values:
            self.text += "0" * ((value + 1).bit_length() - 1) + format(value + 1, "b")
        return self

    def samples(self, *planes: np.ndarray) -> Bits:
        self.text += "0" * (-len(self.text) % 8)
        self.text += "".join(format(byte, "08b") for plane in planes for byte in plane.tobytes())
        return self

    def unit(self, header: int) -> Unit:
        text = self.text + "1"
        text += "0" * (-len(text) % 8)
        out, zeros = bytearray([header]), 0
        for byte in int(text, 2).to_bytes(len(text) // 8, "big"):
            if zeros >= 2 and byte <= 3:
                out.append(3)
                zeros = 0
            out.append(byte)
            zeros = zeros + 1 if byte == 0 else 0
        return bytes(out)


def _sets() -> list[Unit]:
    sequence = Bits().u(24, 77 << 16 | 30).ue(0, 0, 0, 4, 2).u(1, 0)
    sequence.ue(WIDTH // 16 - 1, HEIGHT // 32 - 1).u(5, 0b00100)  # fields, no adaptive ones
    pictures = Bits().ue(0, 0).u(2, 0).ue(0, 0, 0).u(3, 0).ue(0, 0, 0).u(3, 0b100)
    return [sequence.unit(0x67), pictures.unit(0x68)]


def _slice(kind: int, number: int, *, bottom: bool) -> Bits:
    first = number == 0 and not bottom
    bits = Bits().ue(0, kind, 0).u(4, number).u(2, 0b11 if bottom else 0b10)
    if first:
        bits.ue(0)
    bits.u(8, 2 * number + bottom)
    if kind == 5:
        bits.u(2, 0)
    return bits.u(2 if first else 1, 0).ue(0, 1)


def _coded(field: Planes, number: int, *, bottom: bool) -> Unit:
    luma, blue, red = field
    bits = _slice(7, number, bottom=bottom)
    for y in range(0, HEIGHT // 2, 16):
        for x in range(0, WIDTH, 16):
            chroma = np.s_[y // 2 : y // 2 + 8, x // 2 : x // 2 + 8]
            bits.ue(25).samples(luma[y : y + 16, x : x + 16], blue[chroma], red[chroma])
    return bits.unit(0x61 if number or bottom else 0x65)


def _field(seed: int) -> Planes:
    random = np.random.default_rng(seed)
    slopes = np.add.outer(np.arange(HEIGHT // 2) * 3, np.arange(WIDTH)) + random.integers(1, 60)
    chroma = random.integers(60, 200, 2)
    blue, red = (np.full((HEIGHT // 4, WIDTH // 2), value, np.uint8) for value in chroma)
    return slopes.astype(np.uint8), blue, red


def fields(frames: int, group: int = 4) -> list[tuple[list[Unit], list[Unit]]]:
    """The NAL units of each frame's top and bottom field. Every other bottom field repeats the top
    one; decoding can begin every `group` frames.
    """
    out = []
    for i in range(frames):
        number = i % group
        upper = [] if number else _sets()
        upper.append(_coded(_field(2 * i), number, bottom=False))
        if i % 2:
            lower = _slice(5, number, bottom=True).ue(BLOCKS).unit(0x61)
        else:
            lower = _coded(_field(2 * i + 1), number, bottom=True)
        out.append((upper, [lower]))
    return out


def file(container: str, frames: int, *, packets_per_frame: int, group: int = 4) -> bytes:
    import av

    coded = fields(frames, group)
    stream = b"".join(b"\0\0\0\1" + unit for pair in coded for field in pair for unit in field)
    packets = [(i, True, pair[0] + pair[1]) for i, pair in enumerate(coded)]
    if packets_per_frame == 2:
        packets = [(i, k == 0, pair[k]) for i, pair in enumerate(coded) for k in range(2)]
    made = io.BytesIO()
    with (
        av.open(io.BytesIO(stream), format="h264") as source,
        av.open(made, "w", format=container) as out,
    ):
        track = out.add_stream_from_template(source.streams.video[0])
        for number, (frame, begins, units) in enumerate(packets):
            packet = av.Packet(b"".join(b"\0\0\0\1" + unit for unit in units))
            packet.stream, packet.time_base = track, Fraction(1, 50)
            packet.pts = packet.dts = number * (2 // packets_per_frame)
            packet.duration = 2 // packets_per_frame
            packet.is_keyframe = begins and frame % group == 0
            out.mux(packet)
    return made.getvalue()
