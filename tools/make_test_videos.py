#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/videos: small streams of every codec, and FFmpeg's frames of them.

NAME.bin contains a stream's packets, one after another; NAME.txt describes them:

    stream CODEC WIDTH HEIGHT      parameters HEX
    packet SIZE PTS KEY            in the order of decoding
    frame PACKET CRC32             in display order: the packet's number, and the CRC-32 of
                                   its planes' bytes, rows without gaps, by `ffmpeg -f framehash`

Needs Debian's ffmpeg. The streams are committed, because another encoder version produces different
ones.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

# Name, codec, container, encoder and its options, size, pixels.
STREAMS = (
    ("h264", "h264", "mp4", "libx264 -preset slow -g 12 -bf 3 -crf 38", "64x48", "yuv420p"),
    ("h264_open", "h264", "mp4", "libx264 -x264-params open-gop=1:keyint=10:bframes=4:b-pyramid=2 "
     "-crf 38", "64x48", "yuv420p"),
    ("h264_odd", "h264", "mp4", "libx264 -preset fast -g 10 -crf 40", "66x50", "yuv420p"),
    ("h264_444", "h264", "mp4", "libx264 -g 10 -crf 40", "65x49", "yuv444p"),
    ("h264_422_10", "h264", "mp4", "libx264 -g 10 -crf 40", "64x48", "yuv422p10le"),
    ("h264_rgb", "h264", "mp4", "libx264rgb -g 10 -crf 40", "64x48", "rgb24"),
    ("h264_gray", "h264", "mp4", "libx264 -g 10 -crf 40", "64x48", "gray"),
    ("hevc", "hevc", "mp4", "libx265 -x265-params keyint=12:log-level=none -crf 38", "64x48",
     "yuv420p"),
    ("hevc_12", "hevc", "mp4", "libx265 -x265-params keyint=12:log-level=none -crf 40", "64x48",
     "yuv420p12le"),
    ("vp8", "vp8", "webm", "libvpx -g 12 -b:v 60k -auto-alt-ref 1 -lag-in-frames 10", "65x49",
     "yuv420p"),
    ("vp9", "vp9", "webm", "libvpx-vp9 -g 12 -b:v 60k -auto-alt-ref 1 -lag-in-frames 10", "65x49",
     "yuv420p"),
    ("vp9_440", "vp9", "webm", "libvpx-vp9 -g 12 -b:v 60k -profile:v 1", "64x48", "yuv440p"),
    ("av1", "av1", "mp4", "libaom-av1 -cpu-used 8 -g 12 -b:v 60k", "66x50", "yuv420p"),
    ("mpeg4", "mpeg4", "mp4", "mpeg4 -g 12 -bf 2 -q:v 20", "64x48", "yuv420p"),
    ("mjpeg", "mjpeg", "mov", "mjpeg -q:v 20", "64x48", "yuvj422p"),
)  # fmt: skip


def run(*arguments: str) -> str:
    return subprocess.run(arguments, check=True, capture_output=True, text=True).stdout


def hex_of(dump: str) -> str:
    """The bytes of ffprobe's `00000000: 0001 0203  ....` as hexadecimal digits."""
    return "".join(
        line.split(": ")[1][:40].replace(" ", "") for line in dump.splitlines() if ": " in line
    )


def dumps(text: str, key: str) -> list[str]:
    found = re.findall(rf"^{key}=\n((?:[0-9a-f]{{8}}: .*\n)+)", text, re.MULTILINE)
    return [hex_of(dump) for dump in found]


def make(name: str, codec: str, container: str, encoder: str, size: str, pixels: str) -> None:
    folder = Path(__file__).parent.parent / "tests" / "videos"
    with tempfile.TemporaryDirectory() as work:
        file = f"{work}/{name}.{container}"
        rate = "30" if codec == "mjpeg" else "25"
        made = f"testsrc2=rate={rate},scale={size.replace('x', ':')}"
        run("ffmpeg", "-v", "error", "-f", "lavfi", "-i", made,
            "-frames:v", "4" if codec == "mjpeg" else "30", "-c:v", *encoder.split(), "-pix_fmt",
            pixels, "-threads", "1", "-bitexact", file)  # fmt: skip
        stream = run("ffprobe", "-v", "error", "-show_streams", "-show_data", file)
        packets = run("ffprobe", "-v", "error", "-show_packets", "-show_data", file)
        frames = run("ffmpeg", "-v", "error", "-i", file, "-vsync", "0", "-copyts",
                     "-enc_time_base", "-1", "-f", "framehash", "-hash", "crc32", "-")  # fmt: skip
    times = [int(pts) for pts in re.findall(r"^pts=(-?\d+)", packets, re.MULTILINE)]
    flags = re.findall(r"^flags=(.)", packets, re.MULTILINE)
    contents = [bytes.fromhex(dump) for dump in dumps(packets, "data")]
    hashes = re.findall(r"^0,[^,]+,[^,]+,[^,]+,[^,]+, *([0-9a-f]+)", frames, re.MULTILINE)
    shown = sorted(range(len(times)), key=times.__getitem__)
    assert len(times) == len(contents) == len(hashes), (name, len(times), len(hashes))
    width, height = size.split("x")
    lines = [
        f"stream {codec} {width} {height}",
        "parameters " + "".join(dumps(stream, "extradata")),
    ]
    lines += [
        f"packet {len(content)} {pts} {int(flag == 'K')}"
        for content, pts, flag in zip(contents, times, flags, strict=True)
    ]
    lines += [f"frame {packet} {crc}" for packet, crc in zip(shown, hashes, strict=True)]
    (folder / f"{name}.txt").write_text("\n".join(lines) + "\n")
    (folder / f"{name}.bin").write_bytes(b"".join(contents))
    print(name, sum(map(len, contents)), "bytes")


if __name__ == "__main__":
    for stream in STREAMS:
        if stream[0] in sys.argv[1:] or not sys.argv[1:]:
            make(*stream)
