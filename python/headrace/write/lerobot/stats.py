# SPDX-License-Identifier: Apache-2.0
"""Statistics of features, as LeRobot defines them: per episode, and combined for a dataset.

Source: ``lerobot.datasets.compute_stats``, versions 0.4 to 0.6. Quantiles are interpolated in a
histogram of 5,000 bins, per episode; a dataset's quantiles are the mean of its episodes' quantiles,
weighted by frames. Sums are computed in float64, so that the standard deviation of uint8 is right,
too (in LeRobot before 0.6 the squares of uint8 values overflow).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Stats = dict[str, Array]  # by "min", "max", "mean", "std", "count", "q01", ...

QUANTILES = {"q01": 0.01, "q10": 0.10, "q50": 0.50, "q90": 0.90, "q99": 0.99}
_BINS = 5000
_MARGIN = 1e-10


def stats_of_numbers(values: Array) -> Stats:
    """values: (N, ...) of an episode, finite. Statistics have the shape of the last axis, (1,) for
    numbers."""
    rows = values.astype(np.float64).reshape(-1, values.shape[-1] if values.ndim > 1 else 1)
    weights = np.ones(len(rows))
    columns = [_of_column(column, weights) for column in rows.T]
    return _joined(columns, len(values))


class ImageStats:
    """Statistics of the pixels of an episode's frames from 0 to 1, per color, of the frames that
    LeRobot samples."""

    def __init__(self, frames: int) -> None:
        self.sampled = set(sample(frames))
        self._counts = np.zeros((3, 256), np.int64)

    def add(self, frame: int, pixels: Array) -> None:
        """frame: its number in the episode; pixels: (3, H, W) uint8."""
        if frame not in self.sampled:
            return
        for color, plane in enumerate(reduced(pixels)):
            self._counts[color] += np.bincount(plane.ravel(), minlength=256)

    def stats(self) -> Stats:
        """Arrays of shape (3, 1, 1); the count is of frames."""
        shades = np.arange(256, dtype=np.float64)
        columns = []
        for counts in self._counts:
            seen = counts > 0
            columns.append(_of_column(shades[seen], counts[seen].astype(np.float64)))
        joined = _joined(columns, len(self.sampled))
        return {
            name: value if name == "count" else (value / 255.0).reshape(3, 1, 1)
            for name, value in joined.items()
        }


def sample(frames: int) -> list[int]:
    """The frames of an episode whose pixels are counted, evenly spaced: all up to 100, then
    frames ** 0.75, 10,000 at most."""
    count = max(min(100, frames), min(int(frames**0.75), 10_000))
    return [int(each) for each in np.round(np.linspace(0, frames - 1, count))]


def reduced(pixels: Array) -> Array:
    """Every n-th row and column of images of 300 pixels or more, about 150 of the longer side."""
    _, height, width = pixels.shape
    if max(width, height) < 300:
        return pixels
    step = int(width / 150) if width > height else int(height / 150)
    return pixels[:, ::step, ::step]


def combined(parts: Sequence[Mapping[str, Array]]) -> Stats:
    """The statistics of all episodes together."""
    counts = np.array([int(part["count"][0]) for part in parts], np.float64)
    shape = (-1, *[1] * parts[0]["mean"].ndim)
    weights = (counts / counts.sum()).reshape(shape)

    def mean_of(values: Array) -> Array:
        out: Array = (values * weights).sum(axis=0)
        return out

    means = np.stack([part["mean"] for part in parts])
    mean = mean_of(means)
    variance = mean_of(np.stack([part["std"] for part in parts]) ** 2 + (means - mean) ** 2)
    return {
        "min": np.min([part["min"] for part in parts], axis=0),
        "max": np.max([part["max"] for part in parts], axis=0),
        "mean": mean,
        "std": np.sqrt(variance),
        "count": np.array([int(counts.sum())]),
        **{name: mean_of(np.stack([part[name] for part in parts])) for name in QUANTILES},
    }


def _of_column(values: Array, weights: Array) -> dict[str, float]:
    """values: of one dimension; weights: how often each occurs."""
    total = weights.sum()
    mean = float((values * weights).sum() / total)
    out = {
        "min": float(values.min()),
        "max": float(values.max()),
        "mean": mean,
        "std": float(np.sqrt((weights * (values - mean) ** 2).sum() / total)),
    }
    if total < 2:
        return out | dict.fromkeys(QUANTILES, mean)
    edges = np.linspace(out["min"] - _MARGIN, out["max"] + _MARGIN, _BINS + 1)
    histogram, _ = np.histogram(values, edges, weights=weights)
    below = np.cumsum(histogram)
    return out | {name: _quantile(below, edges, q * total) for name, q in QUANTILES.items()}


def _quantile(below: Array, edges: Array, wanted: float) -> float:
    """below: how many values are in each bin and those before it."""
    i = int(np.searchsorted(below, wanted))
    if i == 0:
        return float(edges[0])
    if i >= len(below):
        return float(edges[-1])
    inside = below[i] - below[i - 1]
    part = (wanted - below[i - 1]) / inside if inside else 0.0
    return float(edges[i] + part * (edges[i + 1] - edges[i]))


def _joined(columns: Sequence[Mapping[str, float]], count: int) -> Stats:
    out = {name: np.array([column[name] for column in columns]) for name in columns[0]}
    return {**out, "count": np.array([count])}
