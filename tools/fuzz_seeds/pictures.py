# SPDX-License-Identifier: Apache-2.0
"""Pictures: JPEG and PNG as Pillow writes them."""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
from PIL import Image

random = np.random.default_rng(1)


def picture(mode: str, width: int, height: int) -> Image.Image:
    """Waves with noise."""
    y, x = np.mgrid[0:height, 0:width]
    planes = [
        60 * np.sin(x / 5 + i) + 60 * np.cos(y / 7 * (i + 1)) + random.normal(128, 12, x.shape)
        for i in range(len(Image.new(mode, (1, 1)).getbands()))
    ]
    pixels = np.stack(planes, -1).clip(0, 255).astype(np.uint8)
    return Image.fromarray(pixels[..., 0] if len(planes) == 1 else pixels, mode)


def encoded(image: Image.Image, format: str, **options: Any) -> bytes:
    out = io.BytesIO()
    image.save(out, format, **options)
    return out.getvalue()


SMALL_JPEG = encoded(picture("RGB", 8, 8), "JPEG", quality=30)


def jpeg() -> Iterator[bytes]:
    sizes = ((1, 1), (8, 8), (17, 9), (33, 40), (64, 48))
    for (width, height), mode in itertools.product(sizes, ("L", "RGB", "CMYK")):
        image = picture(mode, width, height)
        samplings = (0, 1, 2) if mode == "RGB" else (0,)
        for sampling, progressive, restarts in itertools.product(samplings, (0, 1), (0, 2)):
            yield encoded(
                image,
                "JPEG",
                quality=40 + 50 * (width % 2),
                subsampling=sampling,
                progressive=bool(progressive),
                restart_marker_blocks=restarts,
            )


def png() -> Iterator[bytes]:
    for mode, width in itertools.product(("1", "L", "LA", "P", "RGB", "RGBA", "I;16"), (1, 9, 33)):
        if mode == "I;16":
            image = Image.fromarray(random.integers(0, 65536, (7, width), dtype=np.uint16))
        else:
            image = (
                picture("RGBA", width, 7).convert("RGB" if mode == "P" else mode[:4]).convert(mode)
            )
        yield encoded(image, "PNG")
        if mode in ("L", "P", "RGB"):
            yield encoded(image, "PNG", transparency=1 if mode != "RGB" else (1, 2, 3))


SEEDS = {"jpeg": jpeg, "jpeg_parts": jpeg, "packed_jpeg": jpeg, "png": png}
