# SPDX-License-Identifier: Apache-2.0
"""Thumbnails of records in a page: JPEG if Pillow is available, otherwise PNG."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.drawing.markup import clean, data_uri
from headrace.drawing.png import png_from_pixels
from headrace.insight.probes.sample import Pixels, Sample


def grid(samples: Sequence[Sample]) -> str:
    """The records with their images, keys and milliseconds; slow ones are marked."""
    told = "<p>The time of single records on one thread, with their images.</p>"
    return f'{told}<ul class="records">{"".join(map(_item, samples))}</ul>'


def _item(sample: Sample) -> str:
    kind = ' class="slow"' if sample.slow else ""
    seen = '<span class="none">no image</span>'
    if sample.pixels is not None:
        seen = f'<img alt="" src="{picture_uri(sample.pixels)}">'
    among = "among the slowest" if sample.slow else "drawn at random"
    key = clean(sample.key, 300).replace("/", "/<wbr>")  # where a path may be broken into lines
    return f"<li{kind}>{seen}<b>{sample.ms:.1f} ms</b>{key}<br>{among}</li>"


def picture_uri(pixels: Pixels) -> str:
    """uint8 (1|3, H, W) as a data: URI."""
    kind, data = _jpeg(pixels) or ("png", png_from_pixels(pixels))
    return data_uri(f"image/{kind}", data)


def _jpeg(pixels: Pixels) -> tuple[str, bytes] | None:
    try:
        from PIL import Image
    except ImportError:
        return None
    file = io.BytesIO()
    rows: Any = pixels[0] if len(pixels) == 1 else np.ascontiguousarray(pixels.transpose(1, 2, 0))
    Image.fromarray(rows).save(file, "JPEG", quality=82)
    return "jpeg", file.getvalue()
