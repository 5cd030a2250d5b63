# SPDX-License-Identifier: Apache-2.0
"""Pictures of all formats that Pillow writes."""

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
    if mode == "LA":
        return Image.merge("LA", [Image.fromarray(pixels[..., c]) for c in range(2)])
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


def webp() -> Iterator[bytes]:
    for mode, size in itertools.product(("RGB", "RGBA"), (1, 17, 40)):
        for options in ({"quality": 50}, {"lossless": True}):
            yield encoded(picture(mode, size, 9), "WebP", **options)
    more = [picture("RGBA", 12, 9)]
    yield encoded(picture("RGBA", 12, 9), "WebP", save_all=True, append_images=more)


def bmp() -> Iterator[bytes]:
    for mode, width in itertools.product(("1", "L", "P", "RGB", "RGBA"), (1, 9, 33)):
        yield encoded(picture("RGBA", width, 7).convert("RGB").convert(mode), "BMP")
    rows = b"\5\1\0\0\2\7\0\3\1\2\3\0\0\0\0\2\1\1\4\6\0\1"
    yield encoded(picture("L", 5, 4), "BMP")[:30] + b"\1" + bytes(1055) + rows * 3


def pnm() -> Iterator[bytes]:
    for mode, width in itertools.product(("1", "L", "RGB", "I"), (1, 9)):
        image = picture("L", width, 5) if mode == "I" else picture("RGB", width, 5)
        yield encoded(image.convert(mode), "PPM")
    yield b"P1 3 2 # bits\n101 0 1 1"
    yield b"P2\n2 2\n9\n1 2 3 # three\n9"
    yield b"P3 1 2 300 1 200 300 4 5 6"
    yield b"P6 1 1 1000 \0\1\0\2\0\3"


def tiff() -> Iterator[bytes]:
    packings = (None, "tiff_lzw", "tiff_adobe_deflate", "packbits", "jpeg")
    for mode, packing in itertools.product(("1", "L", "LA", "P", "RGB", "RGBA", "CMYK"), packings):
        if packing == "jpeg" and mode not in ("L", "RGB", "CMYK"):
            continue
        yield encoded(
            picture("RGBA", 17, 9).convert("RGB").convert(mode), "TIFF", compression=packing
        )
    for packing in ("group3", "group4"):
        yield encoded(picture("L", 40, 9).convert("1"), "TIFF", compression=packing)
    values = random.integers(0, 65536, (7, 9), dtype=np.uint16)
    yield encoded(Image.fromarray(values), "TIFF")


def gif() -> Iterator[bytes]:
    for width, interlace in itertools.product((1, 9, 40), (0, 1)):
        yield encoded(picture("RGB", width, 11).quantize(30), "GIF", interlace=interlace)
    more = [picture("RGB", 12, 9)]
    yield encoded(picture("RGB", 12, 9), "GIF", save_all=True, append_images=more)


def jpeg2000() -> Iterator[bytes]:
    for mode, width in itertools.product(("L", "LA", "RGB", "RGBA"), (1, 9, 40)):
        for lossy in (False, True):
            yield encoded(picture(mode, width, 11), "JPEG2000", irreversible=lossy)
    yield encoded(picture("RGB", 40, 30), "JPEG2000", tile_size=(16, 16), no_jp2=True)


def avif() -> Iterator[bytes]:
    for mode, size in itertools.product(("RGB", "RGBA", "L"), (1, 20)):
        yield encoded(picture(mode, size, 9), "AVIF", quality=40)


def heif() -> Iterator[bytes]:
    import pillow_heif

    pillow_heif.register_heif_opener()
    for mode in ("RGB", "RGBA", "L"):
        yield encoded(picture(mode, 20, 18), "HEIF", quality=40)


def jpegxl() -> Iterator[bytes]:
    import pillow_jxl  # noqa: F401  (registers itself)

    for mode, lossless in itertools.product(("RGB", "RGBA", "L"), (True, False)):
        yield encoded(picture(mode, 20, 9), "JXL", lossless=lossless)


SEEDS = {
    "jpeg": jpeg,
    "jpeg_device": jpeg,
    "jpeg_parts": jpeg,
    "packed_jpeg": jpeg,
    "png": png,
    "webp": webp,
    "bmp": bmp,
    "pnm": pnm,
    "tiff": tiff,
    "gif": gif,
    "jpeg2000": jpeg2000,
    "avif": avif,
    "heif": heif,
    "jpegxl": jpegxl,
}
