# SPDX-License-Identifier: Apache-2.0
"""Draws an audio clip: its waveform, and below it its spectrogram."""

from __future__ import annotations

from typing import Any

import numpy as np

Pixels = np.ndarray[Any, Any]

WIDTH, WAVE_HEIGHT, SPECTRUM_HEIGHT = 256, 64, 64
_INK, _PAPER, _LINE = 40, 255, 200  # gray level
_WINDOW = 512  # samples of a spectrum
_RANGE_DB = 80.0  # that the spectrogram shows


def waveform_picture(samples: Pixels) -> Pixels:
    """(channels, frames) -> uint8 (3, height, width): the mean of the channels.

    >>> waveform_picture(np.zeros((1, 100), np.float32)).shape
    (3, 128, 256)
    """
    sound: Pixels = np.asarray(samples, np.float32) / full_scale_of(samples)
    mono = sound.mean(axis=0) if sound.shape[1] else np.zeros(1, np.float32)
    gray = np.concatenate([_wave(mono), _spectrum(mono)])
    return np.repeat(gray[None], 3, axis=0)


def full_scale_of(samples: Pixels) -> int:
    """The value of full scale: 1 for floats, 32,768 for int16."""
    return 32768 if np.issubdtype(samples.dtype, np.integer) else 1


def _wave(mono: Pixels) -> Pixels:
    """Each column is filled from its smallest to its largest sample; full scale fills the
    height."""
    out = np.full((WAVE_HEIGHT, WIDTH), _PAPER, np.uint8)
    out[WAVE_HEIGHT // 2] = _LINE
    rows = np.clip((1 - mono) / 2 * (WAVE_HEIGHT - 1), 0, WAVE_HEIGHT - 1).round().astype(int)
    edges = np.linspace(0, len(mono), WIDTH + 1).astype(int)
    for column in range(WIDTH):
        begin = min(int(edges[column]), len(mono) - 1)
        part = rows[begin : max(int(edges[column + 1]), begin + 1)]
        out[part.min() : part.max() + 1, column] = _INK
    return out


def _spectrum(mono: Pixels) -> Pixels:
    """Darker is louder, in decibels below the loudest; low frequencies are at the bottom."""
    padded = np.pad(mono, (_WINDOW // 2, _WINDOW // 2))
    starts = np.linspace(0, len(padded) - _WINDOW, WIDTH).astype(int)
    frames = padded[starts[:, None] + np.arange(_WINDOW)] * np.hanning(_WINDOW)
    power = np.abs(np.fft.rfft(frames, axis=1)[:, 1:]) ** 2
    bands = power.reshape(WIDTH, SPECTRUM_HEIGHT, -1).mean(axis=2).T[::-1]
    loudest = bands.max()
    if not loudest > 0:
        return np.full(bands.shape, _PAPER, np.uint8)
    decibels = 10 * np.log10(np.maximum(bands / loudest, 10 ** (-_RANGE_DB / 10)))
    gray: Pixels = (-decibels / _RANGE_DB * _PAPER).round().astype(np.uint8)
    return gray
