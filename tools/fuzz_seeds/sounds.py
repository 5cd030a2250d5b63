# SPDX-License-Identifier: Apache-2.0
"""Audio files of all formats that libsndfile writes."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator

import numpy as np
import soundfile


def encoded(frames: int, channels: int, rate: int, format: str, subtype: str) -> bytes:
    """A tone with noise."""
    random = np.random.default_rng(frames)
    t = np.arange(frames)[:, None] / rate
    tone = 0.5 * np.sin(2 * np.pi * 330 * t * np.arange(1, channels + 1))
    out = io.BytesIO()
    samples = tone + random.uniform(-0.1, 0.1, tone.shape)
    soundfile.write(out, samples, rate, format=format, subtype=subtype)
    return out.getvalue()


def of(format: str, *subtypes: str, frames: int) -> Callable[[], Iterator[bytes]]:
    def seeds() -> Iterator[bytes]:
        for subtype in subtypes:
            for channels in (1, 2):
                yield encoded(frames, channels, 48000, format, subtype)

    return seeds


def wav() -> Iterator[bytes]:
    for format in ("WAV", "WAVEX", "RF64"):
        for subtype in ("PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE", "ULAW", "ALAW"):
            yield encoded(20, 2, 8000, format, subtype)


SEEDS = {
    "wav": wav,
    "flac": of("FLAC", "PCM_S8", "PCM_16", "PCM_24", frames=600),
    "mp3": of("MP3", "MPEG_LAYER_III", frames=1500),
    "vorbis": of("OGG", "VORBIS", frames=500),
    "opus": of("OGG", "OPUS", frames=1000),
}
