# SPDX-License-Identifier: Apache-2.0
"""Draws a video clip: its frames side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.drawing.grid import visible

Pixels = np.ndarray[Any, Any]

MOST = 8  # frames of a clip
_CHANNELS = (1, 3, 4)


def frames_of(clip: Pixels) -> Pixels:
    """(T, C, H, W) or (C, T, H, W) -> (T, C, H, W); several clips of either are concatenated. If
    both axes could be channels, the first one is time.

    >>> frames_of(np.zeros((2, 3, 16, 8, 8))).shape
    (32, 3, 8, 8)
    """
    if clip.ndim == 5:
        return np.concatenate([frames_of(each) for each in clip])
    first, second = (extent in _CHANNELS for extent in clip.shape[:2])
    before_time = clip.strides[0] < clip.strides[1] if first and second else first
    return clip.swapaxes(0, 1) if before_time else clip


def strip_picture(
    frames: Pixels, mean: Sequence[float] | None = None, std: Sequence[float] | None = None
) -> Pixels:
    """(T, C, H, W) -> uint8 (3, H, width): at most eight frames, including the first and the last.

    >>> strip_picture(np.zeros((16, 3, 10, 20), np.uint8)).shape
    (3, 10, 174)
    """
    chosen = np.linspace(0, len(frames) - 1, min(len(frames), MOST)).round().astype(int)
    height, gap = frames.shape[2], 2
    between = np.full((3, height, gap), 255, np.uint8)
    parts: list[Pixels] = []
    for number in chosen:
        parts += [visible(frames[number], mean, std), between]
    return np.concatenate(parts[:-1], axis=2)
