# SPDX-License-Identifier: Apache-2.0
"""Videos made by tests, and their frames decoded sequentially by PyAV's libav."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from headrace.write.lerobot.priority import kept_priority

Frames = np.ndarray[Any, Any]


def missing_decoder() -> str:
    """Why no video can be decoded here; empty if they can."""
    from headrace import _core

    try:
        _core.decode_video((Path(__file__).parent / "videos" / "hop.mp4").read_bytes(), [0])
    except Exception as error:
        return str(error) if "HR0370" in str(error) else ""
    return ""


def moving(count: int = 30, height: int = 48, width: int = 64, seed: int = 1) -> Frames:
    """(T, H, W, 3) uint8: squares that move over a background, no two frames alike."""
    random = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width]
    ground = np.stack([x * 200 // width, y * 200 // height, (x + y) % 256], axis=-1)
    frames = np.repeat(ground[None].astype(np.uint8), count, axis=0)
    for color in random.integers(60, 255, (4, 3)):
        start, speed = random.uniform(0, 1, 2), random.uniform(-3, 3, 2)
        for t in range(count):
            top, left = ((start * (height, width) + speed * t) % (height - 12, width - 12)).astype(
                int
            )
            frames[t, top : top + 12, left : left + 12] = color
    return frames


def encoded(
    frames: Frames,
    codec: str = "libx264",
    *,
    container: str = "mp4",
    fps: int = 25,
    times: Sequence[int] | None = None,
    pixels: str = "yuv420p",
    **options: Any,
) -> bytes:
    """A file of these frames. `times`: when each is shown, in ticks of 1/1000 s. options: those of
    the encoder, and movflags."""
    import av

    out = tempfile.NamedTemporaryFile()  # which the muxer may read again  # noqa: SIM115
    muxer = {"movflags": str(options.pop("movflags"))} if "movflags" in options else {}
    with kept_priority(), av.open(out.name, "w", format=container, options=muxer) as file:
        stream: Any = file.add_stream(codec, rate=fps)
        stream.height, stream.width = frames.shape[1:3]
        stream.pix_fmt = pixels
        stream.options = {key: str(value) for key, value in options.items()}
        stream.codec_context.thread_count = 1
        if times is not None:
            stream.codec_context.time_base = Fraction(1, 1000)
        for number, pixels_of in enumerate(frames):
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(pixels_of), format="rgb24")
            if times is not None:
                frame.pts, frame.time_base = times[number], Fraction(1, 1000)
            for packet in stream.encode(frame):
                file.mux(packet)
        for packet in stream.encode():
            file.mux(packet)
    with out:
        return Path(out.name).read_bytes()


def with_sound(data: bytes, seconds: int = 1) -> bytes:
    """An MP4 file's packets, and the same number of seconds of silence, as AAC."""
    import av

    out = io.BytesIO()
    with av.open(io.BytesIO(data)) as source, av.open(out, "w", format="mp4") as file:
        pictures: Any = file.add_stream_from_template(source.streams.video[0])
        sound: Any = file.add_stream("aac", rate=16000)
        sound.layout = "mono"
        for packet in source.demux(video=0):
            if packet.dts is not None:
                packet.stream = pictures
                file.mux(packet)
        for begin in range(0, seconds * 16000, 1024):
            frame = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), "fltp", "mono")
            frame.sample_rate, frame.pts = 16000, begin
            file.mux(sound.encode(frame))
        file.mux(sound.encode())
    return out.getvalue()


def h264(count: int = 30, height: int = 48, width: int = 64, **how: Any) -> bytes:
    """By x264, with B frames and several groups of images."""
    seed = how.pop("seed", 1)
    how = {"g": 12, "bf": 3, **how}
    return encoded(moving(count, height, width, seed), **how)


def decoded(data: bytes) -> tuple[Frames, Frames]:
    """(T, 3, H, W) uint8 by libswscale's default, and the second of each frame."""
    import av

    frames, times = [], []
    with av.open(io.BytesIO(data)) as file:
        stream = file.streams.video[0]
        for frame in file.decode(stream):
            frames.append(frame.to_ndarray(format="rgb24").transpose(2, 0, 1))
            times.append(float(frame.pts * stream.time_base))
    return np.ascontiguousarray(frames), np.array(times)
