# SPDX-License-Identifier: Apache-2.0
"""Overlays of an image: boxes, masks, points, and their names.

Each instance of a record has its own color, in order; so has each class id of a mask.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from headrace.errors import warn

Pixels = np.ndarray[Any, Any]  # uint8 (3, H, W)

# Okabe and Ito's colors, which are distinguishable without red or green; letters on them are white.
_COLORS = np.array(
    [
        (213, 94, 0),
        (0, 114, 178),
        (0, 158, 115),
        (204, 121, 167),
        (230, 159, 0),
        (86, 180, 233),
        (240, 228, 66),
    ],
    np.uint8,
)
LETTERS = 10  # height of letters in pixels, including descenders
_LEAST_SIDE = 240  # smaller images are enlarged before drawing
_MASK_SHARE = 0.45  # opacity of a mask's color over the image
_BACKGROUND, _IGNORED = 0, 255  # class ids that are not colored


class Overlay(NamedTuple):
    """Overlays of one image, in its pixel coordinates."""

    boxes: Sequence[Pixels] = ()  # for each: corners (n, k, 2), x and y, in order around the box
    masks: Sequence[Pixels] = ()  # for each: (n, H, W), nonzero where the instance is
    ids: Sequence[Pixels] = ()  # for each: (H, W), class ids
    points: Sequence[Pixels] = ()  # for each: (n, k, 2 or more): x, y, visibility
    names: Sequence[str] = ()  # of the instances

    def __bool__(self) -> bool:
        return any((self.boxes, self.masks, self.ids, self.points))


def enlargement(picture: Pixels) -> int:
    """The factor by which a small image is enlarged."""
    side = max(1, int(min(picture.shape[1:])))
    return min(8, max(1, round(_LEAST_SIDE / side)))


def draw(picture: Pixels, over: Overlay, scale: int | None = None) -> Pixels:
    """A copy with all overlays, enlarged ``scale`` times; the default scale depends on the size."""
    if not over:
        return picture
    scale = scale or enlargement(picture)
    canvas: Pixels = picture.copy()
    for ids in over.ids:
        _lay(canvas, ids, (ids != _BACKGROUND) & (ids != _IGNORED))
    for planes in over.masks:
        for row, plane in enumerate(planes):
            _lay(canvas, np.full(plane.shape, row), plane != 0)
    canvas = canvas.repeat(scale, 1).repeat(scale, 2)
    thick = max(1, min(canvas.shape[1:]) // 200)
    for boxes in over.boxes:
        for row, corners in enumerate(boxes):
            _outline(canvas, corners * scale, _color(row), thick)
    for points in over.points:
        for row, group in enumerate(points):
            _dots(canvas, group, scale, _color(row), thick + 1)
    anchors = over.boxes[0] if over.boxes else ()
    for row, (name, corners) in enumerate(zip(over.names, anchors, strict=False)):
        if name and np.isfinite(corners).all():
            low = corners.min(0) * scale
            _tag(canvas, name, low[0], low[1], _color(row), thick)
    return canvas


def _color(number: int) -> Pixels:
    color: Pixels = _COLORS[number % len(_COLORS)]
    return color


def _lay(canvas: Pixels, numbers: Pixels, where: Pixels) -> None:
    """Colors the pixels of each class id."""
    if numbers.shape != canvas.shape[1:]:
        return  # of a different size, so not of this image
    colors = _COLORS[numbers[where].astype(np.int64) % len(_COLORS)].T
    canvas[:, where] = (canvas[:, where] * (1 - _MASK_SHARE) + colors * _MASK_SHARE).astype(
        np.uint8
    )


def _outline(canvas: Pixels, corners: Pixels, color: Pixels, thick: int) -> None:
    """Draws lines from corner to corner; corners that are NaN are skipped."""
    if not np.isfinite(corners).all():
        return
    height, width = canvas.shape[1:]
    # Points far outside are invisible, but a line to them would take time in proportion to its
    # length.
    limit = 4 * max(height, width)
    corners = np.clip(corners, -limit, limit)
    for begin, end in zip(corners, np.roll(corners, -1, 0), strict=True):
        count = int(np.abs(end - begin).max()) + 2
        line = np.rint(np.linspace(begin, end, count) - 0.5).astype(np.int64)
        for dx in range(thick):
            for dy in range(thick):
                x, y = line[:, 0] - dx, line[:, 1] - dy
                # A box that ends at the image's edge is drawn on its last pixel.
                x = np.where((x >= width) & (x < width + thick), width - 1 - dx, x)
                y = np.where((y >= height) & (y < height + thick), height - 1 - dy, y)
                x = np.where((x < 0) & (x >= -thick), 0, x)
                y = np.where((y < 0) & (y >= -thick), 0, y)
                inside = (x >= 0) & (x < width) & (y >= 0) & (y < height)
                canvas[:, y[inside], x[inside]] = color[:, None]


def _dots(canvas: Pixels, points: Pixels, scale: int, color: Pixels, radius: int) -> None:
    for point in points.astype(np.float64):
        if not np.isfinite(point[:2]).all() or (len(point) > 2 and point[2] == 0):
            continue
        x, y = (int(v) for v in np.clip((point[:2] + 0.5) * scale, -1e6, 1e6))
        for grown, paint in ((radius + 1, np.full(3, 255, np.uint8)), (radius, color)):
            top, left = max(0, y - grown), max(0, x - grown)
            place = canvas[:, top : max(0, y + grown + 1), left : max(0, x + grown + 1)]
            dy = np.arange(top, top + place.shape[1])[:, None] - y
            dx = np.arange(left, left + place.shape[2])[None] - x
            place[:, dx**2 + dy**2 <= grown**2] = paint[:, None]


def _tag(canvas: Pixels, text: str, x: float, bottom: float, color: Pixels, scale: int) -> None:
    """Draws letters on the color, above ``bottom``, shifted to stay inside the image."""
    height, width = canvas.shape[1:]
    letters = written(text, LETTERS * scale, width - 2)
    if letters is None:
        return
    box = np.pad(letters, 1)
    top = int(np.clip(bottom - box.shape[0], 0, max(0, height - box.shape[0])))
    left = int(np.clip(x, 0, max(0, width - box.shape[1])))
    place = canvas[:, top : top + box.shape[0], left : left + box.shape[1]]
    box = box[: place.shape[1], : place.shape[2]]
    ink = 0 if color.astype(int) @ (299, 587, 114) > 160_000 else 255
    share = box / 255
    place[:] = (ink * share + color[:, None, None] * (1 - share)).round().astype(np.uint8)


def written(text: str, size: int, room: int) -> Pixels | None:
    """The text, truncated to fit, as coverage from 0 to 255 (H, W); None without Pillow."""
    try:
        from PIL import Image, ImageDraw, ImageFont

        font: Any = ImageFont.load_default(size)
    except ImportError:
        warn("names of boxes are not drawn: that needs Pillow (pip install pillow)")
        return None
    while len(text) > 1 and font.getlength(text) > room:
        text = text[:-1]
    _, top, width, bottom = font.getbbox(text)
    picture = Image.new("L", (max(1, int(width)), max(1, int(bottom - top))))
    ImageDraw.Draw(picture).text((0, -top), text, fill=255, font=font)
    letters: Pixels = np.asarray(picture)
    return letters
