# SPDX-License-Identifier: Apache-2.0
"""Reference implementations of the audio operators in float64, with tolerances."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import headrace as hr

Array = np.ndarray[Any, Any]


def through(sounds: Array, *steps: Any, **options: Any) -> Array:
    """All records as one batch of waveforms, (channels, frames) each, or spectrograms."""
    kinds = {"sound": "audio"} if sounds.ndim == 3 else {}
    source = hr.records(sound=sounds, kinds=kinds)
    loader = hr.Loader(source, list(steps), batch_size=len(sounds), **options)
    return np.asarray(next(iter(loader)).sound)


def noises(*shape: int, seed: int = 0) -> Array:
    """White noise with a tone in it, and a quiet beginning."""
    made = np.random.default_rng(seed).normal(0, 0.1, shape)
    made += 0.4 * np.sin(np.arange(shape[-1]) * 0.31)
    made[..., : shape[-1] // 5] *= 1e-3
    return made.astype(np.float32)


def frames_of(
    x: Array, n_fft: int, hop: int, window: Array, center: bool = True, mode: str = "reflect"
) -> Array:
    """(..., frames, n_fft), windowed in the middle."""
    x = np.asarray(x, np.float64)
    if center:
        x = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(n_fft // 2, n_fft // 2)], mode=mode)  # type: ignore[call-overload]
    left = (n_fft - len(window)) // 2
    padded = np.pad(window, (left, n_fft - len(window) - left))
    count = 1 + (x.shape[-1] - n_fft) // hop
    return np.stack([x[..., f * hop : f * hop + n_fft] * padded for f in range(count)], axis=-2)


def hann(length: int, periodic: bool = True) -> Array:
    return 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(length) / (length - (not periodic)))


def powers(frames: Array) -> Array:
    """(..., bins, frames)."""
    return np.swapaxes(np.abs(np.fft.rfft(frames)) ** 2, -1, -2)


def mel_filters(
    n_mels: int, bins: int, rate: int, f_min: float, f_max: float, slaney: bool, norm: bool
) -> Array:
    """(bins, n_mels)."""

    def mel(hertz: float) -> float:
        if not slaney:
            return 2595 * math.log10(1 + hertz / 700)
        return hertz * 3 / 200 if hertz < 1000 else 15 + 27 * math.log(hertz / 1000) / math.log(6.4)

    def hertz(mels: Array) -> Array:
        if not slaney:
            return 700 * (10 ** (mels / 2595) - 1)
        high = 1000 * np.exp(math.log(6.4) / 27 * (mels - 15))
        return np.where(mels < 15, mels * 200 / 3, high)

    points = hertz(np.linspace(mel(f_min), mel(f_max), n_mels + 2))
    f = np.linspace(0, rate // 2, bins)[:, None]
    left, middle, right = points[:-2], points[1:-1], points[2:]
    filters = np.maximum(
        0, np.minimum((f - left) / (middle - left), (right - f) / (right - middle))
    )
    return filters * (2 / (right - left)) if norm else filters


def summed(filters: Array, spectra: Array) -> Array:
    return np.einsum("km,...kt->...mt", filters, spectra)


def decibels(x: Array, multiplier: float = 10, top: float | None = None) -> Array:
    made = multiplier * np.log10(np.maximum(x, 1e-10))
    if top is None:
        return made
    return np.maximum(made, made.max(axis=(-3, -2, -1), keepdims=True) - top)


def kaldi_fbank(x: Array, bins: int = 23, snip: bool = True, **how: Any) -> Array:
    """For one channel, at 16 kHz with Kaldi's defaults, without dither."""
    x = np.asarray(x, np.float64)
    if snip:
        count = 1 + (len(x) - 400) // 160
    else:
        count = (len(x) + 80) // 160
        x = np.pad(x, (120, 600), mode="symmetric")
    frames = np.stack([x[f * 160 : f * 160 + 400] for f in range(count)])
    frames -= frames.mean(axis=1, keepdims=True)
    energy = np.log(np.maximum((frames**2).sum(axis=1), np.finfo(np.float32).eps))
    before = np.concatenate([frames[:, :1], frames[:, :-1]], axis=1)
    frames = (frames - 0.97 * before) * hann(400, periodic=False) ** 0.85
    spectra = np.abs(np.fft.rfft(np.pad(frames, ((0, 0), (0, 112)))))[:, :256] ** 2

    def mel(hertz: Any) -> Any:
        return 1127 * np.log(1 + hertz / 700)

    step = (mel(8000) - mel(20)) / (bins + 1)
    place = (mel(31.25 * np.arange(256))[:, None] - mel(20)) / step - np.arange(bins)
    sums = spectra @ np.maximum(0, np.minimum(place, 2 - place))
    made = np.log(np.maximum(sums, np.finfo(np.float32).eps))
    if how.get("use_energy"):
        made = np.concatenate([np.maximum(energy, 0)[:, None], made], axis=1)
    return made


def assert_powers_close(got: Array, want: Array, relative: float = 1e-5) -> None:
    """Within 1e-6 of the largest value of each frame and 1e-5 of each value."""
    assert got.shape == want.shape
    largest = np.abs(want).max(axis=-2, keepdims=True)
    allowed = 1e-6 * largest + relative * np.abs(want) + 1e-30
    excess = (np.abs(got.astype(np.float64) - want) / allowed).max()
    assert excess <= 1, f"{excess:.2f} times what is allowed"
