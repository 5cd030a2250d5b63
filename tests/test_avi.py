# SPDX-License-Identifier: Apache-2.0
"""AVI files have the frames of a sequential decode, even if packets contain two images."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import videos

import headrace as hr
from headrace import transforms as T

pytest.importorskip("av", reason="av makes the videos")
if MISSING := videos.missing_decoder():
    pytest.skip(MISSING, allow_module_level=True)

CORPUS = Path(os.environ.get("HEADRACE_TEST_DATA", "/nonexistent"))
REAL = CORPUS / "video/mpeg4/mmaction2/data__test.avi"  # Xvid, two pictures in many packets
FRAMES = 40
Chunks = list[tuple[bytes, bytes]]


def avi(codec: str = "mpeg4", **how: Any) -> bytes:
    pixels = "yuvj420p" if codec == "mjpeg" else "yuv420p"
    return videos.encoded(videos.moving(FRAMES), codec, container="avi", pixels=pixels, **how)


def packets_of(data: bytes) -> Chunks:
    """The entries of the packet list, which libavformat writes without other content."""
    at, chunks = data.index(b"movi") + 4, []
    end = data.index(b"movi") + struct.unpack("<I", data[at - 8 : at - 4])[0]
    while at < end:
        name, size = struct.unpack("<4sI", data[at : at + 8])
        chunks.append((name, data[at + 8 : at + 8 + size]))
        at += 8 + size + size % 2
    return chunks


def with_packets(data: bytes, chunks: Chunks) -> bytes:
    """The file with replaced entries, and without its index."""
    begin = data.index(b"movi") - 8
    content = b"movi" + b"".join(
        struct.pack("<4sI", name, len(packet)) + packet + b"\0" * (len(packet) % 2)
        for name, packet in chunks
    )
    body = data[12:begin] + struct.pack("<4sI", b"LIST", len(content)) + content
    return struct.pack("<4sI4s", b"RIFF", len(body) + 4, b"AVI ") + body


def packed(chunks: Chunks) -> Chunks:
    """As DivX and Xvid write them: an image between two others is in the packet of the later one,
    and an empty image is in its place."""
    picture = b"\0\0\1\xb6"
    kinds = [packet[packet.index(picture) + 4] >> 6 for _, packet in chunks]
    nothing = picture + b"\x51\xcf"  # P, not coded; its clock has only a few bits
    out: Chunks = []
    for number, (name, packet) in enumerate(chunks):
        if number == 0:
            at = packet.index(picture)
            packet = packet[:at] + b"\0\0\1\xb2DivX503b1393p" + packet[at:]
        is_between = kinds[number] == 2
        if is_between and kinds[number - 1] != 2:
            out[-1] = (name, out[-1][1] + packet)
        elif is_between:
            out.append((name, packet))
        if is_between and (number + 1 == len(kinds) or kinds[number + 1] != 2):
            out.append((name, nothing))
        if not is_between:
            out.append((name, packet))
    assert len(out) == len(chunks)
    return out


def taken(path: Path, clip: Any, visits: int = 1) -> list[tuple[videos.Frames, videos.Frames]]:
    """Frames and their times."""
    source = hr.records(video=[str(path)] * visits)
    loader = hr.Loader(source, [clip, T.CenterCrop((48, 64))], batch_size=1)
    return [(batch.video[0].copy(), batch.video_times[0].copy()) for batch in loader]


def all_frames(path: Path, count: int) -> tuple[videos.Frames, videos.Frames]:
    return taken(path, T.CenterVideoClip(count, times=True))[0]


CODINGS: dict[str, dict[str, Any]] = {
    "in order": {"bf": 0},
    "with images between": {"bf": 2, "g": 9},
    "short groups": {"bf": 3, "g": 5},
    "motion of a quarter": {"bf": 1, "flags": "+qpel+mv4"},
    "MJPEG": {"codec": "mjpeg"},
}


@pytest.mark.parametrize("name", CODINGS)
def test_an_avi_has_the_frames_of_a_sequential_decode(tmp_path: Path, name: str) -> None:
    data = avi(**CODINGS[name])
    expected, _ = videos.decoded(data)
    (tmp_path / "a.avi").write_bytes(data)
    found, times = all_frames(tmp_path / "a.avi", FRAMES)
    assert len(expected) == FRAMES
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_allclose(times, np.arange(FRAMES) / 25, atol=1e-9)
    for clip, seconds in taken(tmp_path / "a.avi", T.RandomVideoClips(3, stride=4, times=True), 8):
        at = np.rint(seconds * 25).astype(int)
        np.testing.assert_array_equal(clip, expected[at])


@pytest.mark.parametrize("between", [1, 2, 3])
def test_two_images_in_one_packet_are_two_frames(tmp_path: Path, between: int) -> None:
    plain = avi(bf=between, g=10)
    data = with_packets(plain, packed(packets_of(plain)))
    (tmp_path / "packed.avi").write_bytes(data)
    expected, _ = videos.decoded(plain)
    found, times = all_frames(tmp_path / "packed.avi", FRAMES)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_allclose(times, np.arange(FRAMES) / 25, atol=1e-9)


def test_an_avi_needs_no_index_and_is_an_error_if_truncated(tmp_path: Path) -> None:
    data = avi(bf=2)
    expected, _ = videos.decoded(data)
    (tmp_path / "a.avi").write_bytes(with_packets(data, packets_of(data)))
    np.testing.assert_array_equal(all_frames(tmp_path / "a.avi", FRAMES)[0], expected)
    end = data.index(b"idx1")
    for part in range(1, 64):
        (tmp_path / "a.avi").write_bytes(data[: end * part // 64])
        with pytest.raises(hr.DataError, match=r"HR036[0124]"):
            all_frames(tmp_path / "a.avi", FRAMES)


def test_a_folder_of_avis_is_a_video_folder(tmp_path: Path) -> None:
    for number, kind in enumerate(("dive", "jump")):
        (tmp_path / kind).mkdir()
        (tmp_path / kind / f"{number}.avi").write_bytes(avi(bf=number))
    loader = hr.Loader(
        tmp_path, [T.RandomVideoClips(4), T.Resize((32, 32))], batch_size=2, shuffle=False
    )
    (batch,) = loader
    assert batch.video.shape == (2, 4, 3, 32, 32)
    np.testing.assert_array_equal(batch.label, [0, 1])


@pytest.mark.skipif(not REAL.exists(), reason="HEADRACE_TEST_DATA/video/mpeg4")
def test_a_real_avi_has_the_frames_that_ffmpeg_shows() -> None:
    expected, _ = videos.decoded(REAL.read_bytes())
    loader = hr.Loader(
        hr.records(video=[str(REAL)]),
        [T.CenterVideoClip(len(expected)), T.CenterCrop(expected.shape[2:])],
        batch_size=1,
    )
    np.testing.assert_array_equal(next(iter(loader)).video[0], expected)
