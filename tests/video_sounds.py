# SPDX-License-Identifier: Apache-2.0
"""Videos whose images and audio encode the time: a number in each frame, and unique tones in the
audio, so that both give the time of a clip."""

from __future__ import annotations

import io
import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

Numbers = np.ndarray[Any, Any]

TONES = np.array([311.7, 523.3, 877.9, 1410.1, 2233.7, 3301.3])
PHASES = np.array([0.3, 1.7, 2.9, 4.1, 5.3, 0.9])
BITS, SIDE = 8, 16  # a frame's number, in squares of white and black


def heard(seconds: Numbers) -> Numbers:
    """What audio clips at these times contain, independent of the sample rate."""
    swell = 0.6 + 0.4 * np.sin(2 * np.pi * 0.37 * seconds)
    tones = np.sin(2 * np.pi * TONES * np.asarray(seconds)[..., None] + PHASES)
    return 0.1 * swell * tones.sum(-1)


def off_by(samples: Numbers, begin: float, rate: int) -> float:
    """Seconds that these samples are late against what is heard from `begin` on, to a share of a
    sample; fails where they are something else altogether, or more than 8 ms away."""
    samples = samples[: rate // 5]
    times = begin + np.arange(len(samples)) / rate

    def misfit(late: float, some: slice = slice(None)) -> float:
        return float(np.square(samples[some] - heard(times[some] - late)).mean())

    some = slice(0, rate // 20, rate // 8000)
    turns = np.arange(-100, 101) / 12000  # a quarter turn of the highest tone
    best = min(turns, key=lambda late: misfit(late, some))
    slope = (heard(times - best - 1e-7) - heard(times - best + 1e-7)) / 2e-7
    for _ in range(3):
        best += float((samples - heard(times - best)) @ slope / (slope @ slope))
        slope = (heard(times - best - 1e-7) - heard(times - best + 1e-7)) / 2e-7
    assert misfit(best) < 0.02 * np.square(heard(times)).mean(), "it is another audio clip"
    return best


def painted(number: int) -> Numbers:
    """A frame that shows its number."""
    bits = [255 * (number >> bit & 1) for bit in range(BITS)]
    row = np.repeat(np.array(bits, np.uint8), SIDE)
    return np.repeat(np.repeat(row[None, :, None], SIDE, axis=0), 3, axis=2)


def number_of(frame: Numbers) -> int:
    """The number shown in a (3, H, W) frame."""
    squares = frame.mean((0, 1)).reshape(BITS, SIDE).mean(1) > 128
    return int(sum(1 << bit for bit, white in enumerate(squares) if white))


def film(
    seconds: float = 4.0,
    fps: int = 25,
    *,
    container: str = "mp4",
    video: str | None = None,  # its encoder
    sound: str | None = "aac",
    rate: int = 48000,
    channels: int = 1,
    late: float = 0.0,  # the audio begins this many seconds after the pictures
    pictures_late: float = 0.0,
    lasts: float | None = None,  # the audio's length; None: as long as the pictures
    times: list[int] | None = None,  # for frames, in ticks of 1/1000 s
    options: dict[str, str] | None = None,  # the container's options
) -> bytes:
    """Frame i is shown at pictures_late + i / fps and has the number i; what is heard at t is
    heard(t) by the file's clock."""
    import av

    out: Any = io.BytesIO()
    folder = tempfile.TemporaryDirectory()  # some of the container's options read back the output
    if options:
        out = str(Path(folder.name) / "film")
    with folder, av.open(out, "w", format=container, options=options or {}) as file:
        encoder = video or ("libvpx-vp9" if container == "webm" else "libx264")
        pictures: Any = file.add_stream(encoder, rate=fps)
        pictures.height, pictures.width, pictures.pix_fmt = SIDE, BITS * SIDE, "yuv420p"
        pictures.options = {"g": "12", "cpu-used": "8"} if container == "webm" else {"g": "12"}
        pictures.codec_context.thread_count = 1
        if times is not None:
            pictures.codec_context.time_base = Fraction(1, 1000)
        audio: Any = None
        if sound:
            layout = {1: "mono", 2: "stereo", 6: "5.1"}[channels]
            audio = file.add_stream(sound, rate=rate, layout=layout)
            if sound in ("vorbis", "opus"):
                audio.codec_context.options = {"strict": "-2"}
            if "pcm" not in sound and sound != "flac":
                audio.bit_rate = 192000 * channels
        packets: list[Any] = []
        for number in range(round(seconds * fps) if times is None else len(times)):
            frame = av.VideoFrame.from_ndarray(painted(number), format="rgb24")
            if times is not None:
                frame.pts, frame.time_base = times[number], Fraction(1, 1000)
            else:
                tick = Fraction(1, fps * 1000)
                frame.pts, frame.time_base = number * 1000 + round(pictures_late / tick), tick
            packets += pictures.encode(frame)
        packets += pictures.encode()
        if sound:
            packets += _sound_packets(av, audio, rate, channels, late, lasts or seconds - late)
        packets = [packet for packet in packets if packet.dts is not None]
        for packet in sorted(packets, key=lambda packet: float(packet.dts * packet.time_base)):
            file.mux(packet)
        file.close()
        return Path(out).read_bytes() if options else out.getvalue()


def _sound_packets(
    av: Any, stream: Any, rate: int, channels: int, late: float, seconds: float
) -> list[Any]:
    begin = round(late * rate)
    samples = heard((begin + np.arange(round(seconds * rate))) / rate)
    form = stream.codec_context.format.name
    packets: list[Any] = []
    step = stream.codec_context.frame_size or 1024
    for at in range(0, len(samples), step):
        piece = np.repeat(samples[None, at : at + step], channels, axis=0)
        if form.startswith("s16"):
            data = (piece * 32767).round().astype(np.int16)
        elif form.startswith("s32"):
            data = (piece * 2147483647).round().astype(np.int32)
        else:
            data = piece.astype(np.float32)
        if not form.endswith("p"):
            data = data.T.reshape(1, -1)
        frame = av.AudioFrame.from_ndarray(
            np.ascontiguousarray(data), format=form, layout=stream.codec_context.layout.name
        )
        frame.sample_rate, frame.pts, frame.time_base = rate, begin + at, Fraction(1, rate)
        packets += stream.encode(frame)
    return packets + stream.encode()
