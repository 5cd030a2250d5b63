# SPDX-License-Identifier: Apache-2.0
"""Audio for tests, and WAV files written byte by byte, following the format's specification."""

from __future__ import annotations

import io
import struct
from typing import Any

import numpy as np

RATE = 16000


def waves(frames: int, channels: int = 1, rate: int = RATE, seed: int = 1) -> np.ndarray[Any, Any]:
    """(channels, frames) float64 in -0.9 to 0.9: tones with noise, different in each channel."""
    random = np.random.default_rng(seed)
    t = np.arange(frames) / rate
    tones = [np.sin(2 * np.pi * 220 * (c + 1) * t + seed) for c in range(channels)]
    return 0.6 * np.stack(tones) + random.uniform(-0.3, 0.3, (channels, frames))


def int16_waves(frames: int, channels: int = 1, seed: int = 1) -> np.ndarray[Any, Any]:
    return (waves(frames, channels, seed=seed) * 32767).astype(np.int16)


def wav(data: bytes, channels: int, bits: int, tag: int = 1, rate: int = RATE) -> bytes:
    """A WAV of these stored bytes, after a chunk that readers skip."""
    frame = channels * bits // 8
    form = struct.pack("<HHIIHH", tag, channels, rate, rate * frame, frame, bits)
    chunks = _chunk(b"LIST", b"INFOx") + _chunk(b"fmt ", form) + _chunk(b"data", data)
    return b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WAVE" + chunks


def wav_of(samples: np.ndarray[Any, Any], rate: int = RATE) -> bytes:
    """(channels, frames) of int16, int32, float32 or float64 as a WAV."""
    tag = 3 if samples.dtype.kind == "f" else 1
    stored = np.ascontiguousarray(samples.T).astype(samples.dtype.newbyteorder("<")).tobytes()
    return wav(stored, len(samples), 8 * samples.dtype.itemsize, tag, rate)


def encoded(samples: np.ndarray[Any, Any], rate: int, **how: Any) -> bytes:
    """(channels, frames) by libsndfile: format="FLAC", subtype="PCM_16"."""
    import soundfile

    out = io.BytesIO()
    soundfile.write(out, samples.T, rate, **how)
    return out.getvalue()


def decoded(data: bytes) -> tuple[np.ndarray[Any, Any], int]:
    """A file as read by libsndfile: (channels, frames) float32, and the rate."""
    import soundfile

    samples, rate = soundfile.read(io.BytesIO(data), dtype="float32", always_2d=True)
    return np.ascontiguousarray(samples.T), rate


def _chunk(word: bytes, data: bytes) -> bytes:
    return word + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2)
