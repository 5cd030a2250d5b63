# SPDX-License-Identifier: Apache-2.0
"""Grids of a loader's images, and of one record after each transform."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.whole_file import write_whole

if TYPE_CHECKING:
    from pathlib import Path

Pixels = np.ndarray[Any, Any]

_STYLE = "body{margin:24px;background:#fff}"


class Grid:
    """A grid of images. Notebooks show it; ``save(path)`` writes a PNG file.

    Notebooks play video and audio clips, and ``save("clips.html")`` writes a page that does.
    """

    def __init__(
        self,
        pictures: Sequence[Pixels],
        columns: int | None = None,
        players: Sequence[str] = (),
    ) -> None:
        from headrace.drawing.png import picture_grid  # here, since it loads much

        self.pixels = picture_grid(_equal_sizes(pictures), columns)
        self._players, self._columns = list(players), columns

    def _repr_html_(self) -> str | None:
        if not self._players:
            return None
        from headrace.drawing.player import page

        return page(self._players, self._columns)

    def _repr_png_(self) -> bytes:
        from headrace.drawing.png import png_from_pixels

        return png_from_pixels(self.pixels)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the PNG file, or an HTML page if the path ends in .html, and returns its path."""
        from pathlib import Path

        path = Path(path)
        if path.suffix.lower() in (".html", ".htm"):
            from headrace.drawing.markup import document

            body = self._repr_html_() or self._still()
            write_whole(path, document("Headrace", _STYLE, body))
        else:
            write_whole(path, self._repr_png_())
        return path

    def _still(self) -> str:
        from headrace.drawing.markup import data_uri

        return f'<img alt="images" src="{data_uri("image/png", self._repr_png_())}">'

    def __repr__(self) -> str:
        _, height, width = self.pixels.shape
        return f"<Grid {width} x {height} pixels; .save('grid.png') writes it>"


def visible(
    image: Pixels, mean: Sequence[float] | None = None, std: Sequence[float] | None = None
) -> Pixels:
    """(C, H, W) of any dtype -> uint8 (3, H, W); undoes a normalization by mean and std."""
    pixels = image
    if image.dtype == np.uint16:
        pixels = (image >> 8).astype(np.uint8)
    elif image.dtype != np.uint8:
        pixels = image.astype(np.float32)
        if mean is not None and std is not None:
            pixels = pixels * _per_channel(std) + _per_channel(mean)
        pixels = (np.clip(pixels, 0, 1) * 255).round().astype(np.uint8)
    if len(pixels) not in (3, 4):
        pixels = np.repeat(pixels[:1], 3, axis=0)
    return pixels[:3]


def _per_channel(values: Sequence[float]) -> Pixels:
    return np.asarray(values, np.float32).reshape(-1, 1, 1)


def _equal_sizes(pictures: Sequence[Pixels]) -> list[Pixels]:
    """Centers images of different sizes on white."""
    height = max(picture.shape[1] for picture in pictures)
    width = max(picture.shape[2] for picture in pictures)
    out = []
    for picture in pictures:
        canvas = np.full((3, height, width), 255, np.uint8)
        y, x = (height - picture.shape[1]) // 2, (width - picture.shape[2]) // 2
        canvas[:, y : y + picture.shape[1], x : x + picture.shape[2]] = picture
        out.append(canvas)
    return out
