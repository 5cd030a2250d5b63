# SPDX-License-Identifier: Apache-2.0
"""Video and audio clips that a browser plays: self-contained HTML elements."""

from __future__ import annotations

import io
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.drawing.markup import data_uri
from headrace.drawing.png import animated_png, png_from_pixels
from headrace.drawing.waveform import full_scale_of

Pixels = np.ndarray[Any, Any]

UNKNOWN_SECONDS = 0.1  # duration of a frame if the time of the next one is unknown
_MOST_SIDE = 256  # pixels; larger clips are reduced to every second, third ... pixel
_WAV_RATES = range(1000, 768001)


def clip_element(frames: Sequence[Pixels], times: Pixels | None = None) -> str:
    """Frames, uint8 (3, H, W), as an animation: WebP if Pillow is available, otherwise APNG. times:
    the second at which each frame is shown.
    """
    every = -(-max(frames[0].shape[1:]) // _MOST_SIDE)
    shown = [np.ascontiguousarray(frame[:, ::every, ::every]) for frame in frames]
    seconds = seconds_of(len(frames), times)
    kind, data = _webp(shown, seconds) or ("png", animated_png(shown, seconds))
    return f'<img alt="clip of {len(frames)} frames" src="{data_uri(f"image/{kind}", data)}">'


def sound_element(samples: Pixels, rate: int, picture: Pixels) -> str:
    """(channels, frames) as an image with a player."""
    seen = f'<img alt="waveform" src="{data_uri("image/png", png_from_pixels(picture))}">'
    return seen + audio_element(samples, rate)


def audio_element(samples: Pixels, rate: int) -> str:
    """An audio player; empty if browsers cannot play it: no samples, or an unusual sample rate."""
    if rate not in _WAV_RATES or not samples.size:
        return ""
    sound = data_uri("audio/wav", wav_from_samples(samples, rate))
    return f'<audio controls src="{sound}"></audio>'


def page(elements: Sequence[str], columns: int | None) -> str:
    """A page for a notebook: the elements side by side."""
    wide = f"repeat({columns},1fr)" if columns else "repeat(auto-fill,minmax(264px,1fr))"
    items = "".join(f'<figure style="margin:0">{element}</figure>' for element in elements)
    style = (
        "<style>.headrace-players img,.headrace-players audio"
        "{display:block;width:100%;margin:0 0 4px}</style>"
    )
    return (
        f'{style}<div class="headrace-players" '
        f'style="display:grid;gap:12px;grid-template-columns:{wide}">{items}</div>'
    )


def seconds_of(count: int, times: Pixels | None) -> list[float]:
    """How long each frame is shown; the typical duration where a clip repeats a frame or wraps.

    >>> seconds_of(3, np.array([0.0, 0.04, 0.08]))
    [0.04, 0.04, 0.04]
    """
    steps = [] if times is None else [float(step) for step in np.diff(times)]
    usual = float(np.median([step for step in steps if step > 0] or [UNKNOWN_SECONDS]))
    return [step if step > 0 else usual for step in steps] + [usual] * (count - len(steps))


def wav_from_samples(samples: Pixels, rate: int) -> bytes:
    """(channels, frames), floats from -1 to 1 or int16, as a 16-bit WAV file.

    >>> len(wav_from_samples(np.zeros((2, 10), np.float32), 16000))
    84
    """
    values = np.asarray(samples, np.float32) * (32768 / full_scale_of(samples))
    pcm: bytes = np.clip(values.round(), -32768, 32767).astype("<i2").T.tobytes()
    channels = len(samples)
    form = struct.pack("<HHIIHH", 1, channels, rate, rate * channels * 2, channels * 2, 16)
    chunks = b"WAVEfmt " + struct.pack("<I", len(form)) + form
    chunks += b"data" + struct.pack("<I", len(pcm)) + pcm
    return b"RIFF" + struct.pack("<I", len(chunks)) + chunks


def _webp(frames: Sequence[Pixels], seconds: Sequence[float]) -> tuple[str, bytes] | None:
    try:
        from PIL import Image, features
    except ImportError:
        return None
    if not features.check("webp"):
        return None
    pictures = [Image.fromarray(np.ascontiguousarray(f.transpose(1, 2, 0))) for f in frames]
    out = io.BytesIO()
    times = [max(1, round(second * 1000)) for second in seconds]
    pictures[0].save(out, "WEBP", save_all=True, append_images=pictures[1:], duration=times,
                     loop=0, quality=80, method=2)  # fmt: skip
    return "webp", out.getvalue()
