# SPDX-License-Identifier: Apache-2.0
"""Images of the kinds that codecs read, written by Pillow, and their pixels according to Pillow."""

from __future__ import annotations

import io
import itertools
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from PIL import Image

import headrace as hr

SIZES = ((1, 1), (2, 3), (37, 23), (130, 67))


def waves(mode: str, width: int, height: int, seed: int = 1) -> Image.Image:
    """Waves with noise, in all channels of the mode."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width]
    count = {"L": 1, "LA": 2, "RGB": 3, "RGBA": 4, "CMYK": 4}[mode]
    planes = [
        70 * np.sin(x / 5 + i) + 60 * np.cos(y / 7 * (i + 1)) + rng.normal(128, 20, x.shape)
        for i in range(count)
    ]
    pixels = np.stack(planes, -1).clip(0, 255).astype(np.uint8)
    if count == 1:
        return Image.fromarray(pixels[..., 0])
    bands = [Image.fromarray(np.ascontiguousarray(pixels[..., c])) for c in range(count)]
    return Image.merge(mode, bands)


def wide(width: int, height: int, seed: int = 1) -> Image.Image:
    """Gray of 16 bits, with values on both sides of 255."""
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 65536, (height, width)) >> rng.integers(0, 12, (height, width))
    return Image.fromarray(values.astype(np.uint16))


def of_mode(mode: str, width: int, height: int) -> Image.Image:
    if mode in ("I;16", "I"):
        return wide(width, height)
    if mode == "1":
        return waves("L", width, height).convert("1")
    if mode.startswith("P"):  # P7: a palette of seven colors
        return waves("RGB", width, height).quantize(int(mode[1:] or 200))
    return waves(mode, width, height)


def encoded(picture: Image.Image, kind: str, **options: Any) -> bytes:
    out = io.BytesIO()
    picture.save(out, kind, **options)
    return out.getvalue()


def webp() -> Iterator[tuple[str, bytes]]:
    for (width, height), mode in ((size, mode) for size in SIZES for mode in ("RGB", "RGBA")):
        picture = waves(mode, width, height)
        for options in ({"quality": 60}, {"quality": 95, "method": 0}, {"lossless": True}):
            name = f"{mode} {width}x{height} {options}"
            yield name, encoded(picture, "WebP", exact=True, **options)
    more = [waves("RGBA", 40, 30, seed) for seed in (2, 3)]
    yield "animation", encoded(waves("RGBA", 40, 30), "WebP", save_all=True, append_images=more)


def bmp() -> Iterator[tuple[str, bytes]]:
    for width, height in SIZES:
        for mode in ("1", "L", "P2", "P7", "P16", "P", "RGB", "RGBA"):
            yield f"{mode} {width}x{height}", encoded(of_mode(mode, width, height), "BMP")


def pnm() -> Iterator[tuple[str, bytes]]:
    for width, height in SIZES:
        for mode in ("1", "L", "RGB", "I"):
            picture = of_mode(mode, width, height)
            yield f"{mode} {width}x{height}", encoded(picture.convert(mode), "PPM")
        values = np.asarray(waves("RGB", width, height))
        rng = np.random.default_rng(width)
        for most in (1, 7, 200, 255, 300, 65535):
            levels = rng.integers(0, most + 1, (height, width, 3))
            text = " ".join(map(str, levels.ravel()))
            yield f"P3 {most}", f"P3\n# made\n{width} {height}\n{most}\n{text}\n".encode()
            gray = " ".join(map(str, levels[..., 0].ravel()))
            yield f"P2 {most}", f"P2 {width} {height} {most} {gray}".encode()
            wide_type = ">u2" if most > 255 else "u1"
            head = f"P6\n{width} {height} {most}\n".encode()
            yield f"P6 {most}", head + levels.astype(wide_type).tobytes()
            head = f"P5\n{width} {height} #here\n{most}\n".encode()
            yield f"P5 {most}", head + levels[..., 0].astype(wide_type).tobytes()
        bits = "".join(map(str, (values[..., 0] > 128).astype(int).ravel()))
        yield "P1", f"P1 {width} {height}\n{bits}".encode()


def tiff() -> Iterator[tuple[str, bytes]]:
    packings = ("raw", "tiff_lzw", "tiff_adobe_deflate", "packbits")
    for width, height in SIZES:
        for mode in ("1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "I;16"):
            for packing in packings if width == 37 else ("raw", "tiff_lzw"):
                data = encoded(of_mode(mode, width, height), "TIFF", compression=packing)
                yield f"{mode} {width}x{height} {packing}", data
        bits = of_mode("1", width, height)
        yield f"group4 {width}x{height}", encoded(bits, "TIFF", compression="group4")
    yield from written_tiff()


def written_tiff() -> Iterator[tuple[str, bytes]]:
    """Kinds that Pillow can read but not write."""
    rng = np.random.default_rng(9)
    width, height = 50, 37
    for order, bits, samples, tiled, white in (
        ("<", 8, 3, True, False), (">", 8, 3, True, False), ("<", 8, 1, True, False),
        ("<", 16, 3, False, False), (">", 16, 3, False, False), ("<", 16, 4, False, False),
        (">", 16, 1, False, False), ("<", 16, 1, True, False), ("<", 8, 1, False, True),
        ("<", 4, 1, False, False), ("<", 2, 1, False, True), ("<", 16, 4, True, False),
    ):  # fmt: skip
        photometric = 0 if white else 1 if samples == 1 else 2
        name = f"{order}{bits} bits x {samples} tiled={tiled} photometric={photometric}"
        yield name, tiff_file(rng, width, height, order, bits, samples, tiled, photometric)


def tiff_file(
    rng: np.random.Generator,
    width: int,
    height: int,
    order: str,
    bits: int,
    samples: int,
    tiled: bool,
    photometric: int,
    side: int = 16,
) -> bytes:
    """Random samples, stored uncompressed; tiles of 16 x 16, or strips of 5 rows."""
    import struct

    tile_width, tile_height = (side, side) if tiled else (width, 5)
    chunks = []
    for _ in range(0, height, tile_height):
        for _ in range(0, width, tile_width):
            row_bytes = (tile_width * samples * bits + 7) // 8
            chunks.append(rng.bytes(row_bytes * tile_height))
    entries = [(256, 4, [width]), (257, 4, [height]), (258, 3, [bits] * samples), (259, 3, [1])]
    entries += [(262, 3, [photometric]), (277, 3, [samples])]
    offsets, at = [], 8
    for chunk in chunks:
        offsets.append(at)
        at += len(chunk)
    lengths = [len(chunk) for chunk in chunks]
    if tiled:
        entries += [(322, 4, [side]), (323, 4, [side]), (324, 4, offsets), (325, 4, lengths)]
    else:
        entries += [(273, 4, offsets), (278, 4, [tile_height]), (279, 4, lengths)]
    if samples == 4:
        entries.append((338, 3, [2]))
    beside = at
    directory, extra = b"", b""
    for tag, kind, values in sorted(entries):
        packed = struct.pack(f"{order}{len(values)}{'H' if kind == 3 else 'I'}", *values)
        if len(packed) > 4:
            place = struct.pack(order + "I", beside + len(extra))
            extra += packed + b"\0" * (len(packed) % 2)
        else:
            place = packed.ljust(4, b"\0")
        directory += struct.pack(order + "HHI", tag, kind, len(values)) + place
    head = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "I", beside + len(extra))
    count = struct.pack(order + "H", len(entries))
    return head + b"".join(chunks) + extra + count + directory + b"\0\0\0\0"


def gif() -> Iterator[tuple[str, bytes]]:
    for width, height in SIZES:
        for mode in ("1", "L", "P2", "P7", "P"):
            for interlace in (0, 1):
                data = encoded(of_mode(mode, width, height), "GIF", interlace=interlace)
                yield f"{mode} {width}x{height} interlace={interlace}", data
    more = [waves("RGB", 40, 30, seed) for seed in (2, 3)]
    yield "animation", encoded(waves("RGB", 40, 30), "GIF", save_all=True, append_images=more)
    clear = waves("RGBA", 40, 30)
    clear.putalpha(waves("L", 40, 30).point(lambda value: 255 * (value > 100)))
    yield "transparent", encoded(clear, "GIF")
    small = bytearray(encoded(of_mode("P", 30, 20), "GIF"))
    small[6:10] = (50).to_bytes(2, "little") + (40).to_bytes(2, "little")  # a larger canvas
    yield "canvas", bytes(small)


def jpeg2000() -> Iterator[tuple[str, bytes]]:
    for width, height in SIZES:
        for mode in ("L", "LA", "RGB", "RGBA", "I;16"):
            picture = of_mode(mode, width, height)
            yield f"{mode} {width}x{height}", encoded(picture, "JPEG2000")
            yield f"{mode} {width}x{height} j2k", encoded(picture, "JPEG2000", no_jp2=True)
        tiles = {"tile_size": (32, 32), "num_resolutions": 3}
        yield f"tiles {width}", encoded(waves("RGB", width, height), "JPEG2000", **tiles)


def avif() -> Iterator[tuple[str, bytes]]:
    for (width, height), mode in itertools.product(SIZES, ("RGB", "RGBA", "L")):
        for options in ({"quality": 75}, {"quality": 100, "subsampling": "4:4:4"}):
            data = encoded(waves(mode, width, height), "AVIF", **options)
            yield f"{mode} {width}x{height} {options}", data


KINDS = {
    "avif": avif,
    "webp": webp,
    "bmp": bmp,
    "pnm": pnm,
    "tiff": tiff,
    "gif": gif,
    "jpeg2000": jpeg2000,
}
SONAMES = {
    "avif": "libavif.so.15",
    "heif": "libheif.so.1",
    "jpegxl": "libjxl.so.0.7",
    "webp": "libwebp.so.7",
    "tiff": "libtiff.so.6",
    "gif": "libgif.so.7",
    "jpeg2000": "libopenjp2.so.7",
}


def bomb(kind: str) -> bytes:
    """A header of 65,535 x 65,535, or the format's maximum, and few pixels."""
    import struct

    side = 65535
    picture = waves("RGB", 4, 4)
    if kind == "bmp":
        data = bytearray(encoded(picture, "BMP"))
        data[18:26] = struct.pack("<II", side, side)
    elif kind == "pnm":
        return f"P6 {side} {side} 255\n".encode() + bytes(100)
    elif kind == "webp":  # VP8L: 14 bits each
        data = bytearray(encoded(picture, "WebP", lossless=True))
        data[21:25] = struct.pack("<I", 16383 << 14 | 16383)
    elif kind == "tiff":
        data = bytearray(encoded(picture, "TIFF"))
        for tag in (256, 257):
            entry = data.index(struct.pack("<HHI", tag, 4, 1))
            data[entry + 8 : entry + 12] = struct.pack("<I", side)
    elif kind == "gif":
        data = bytearray(encoded(picture, "GIF"))
        data[6:10] = struct.pack("<HH", side, side)
    elif kind == "avif":  # in the box with the size
        data = bytearray(encoded(picture, "AVIF"))
        at = data.index(b"ispe") + 8
        data[at : at + 8] = struct.pack(">II", 16384, 16384)
    elif kind == "jpeg2000":
        data = bytearray(encoded(picture, "JPEG2000", no_jp2=True))
        data[8:16] = struct.pack(">II", side, side)
        data[24:32] = struct.pack(">II", side, side)
    else:
        raise ValueError(kind)
    return bytes(data)


def pillow(data: bytes, mode: str = "RGB") -> np.ndarray[Any, Any]:
    """Pillow's pixels, (C, H, W)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pixels = np.asarray(Image.open(io.BytesIO(data)).convert(mode))
    return pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)


def ours(records: Any, *steps: Any, **options: Any) -> Any:
    """The fields of all records, as one batch of lists; 16 bits by Pillow's rule."""
    source = hr.open(records)
    given = {"batch_size": len(source), "threads": 1, "ragged": "list", "sixteen_bit": "clip"}
    (batch,) = hr.Loader(source, list(steps), **(given | options))
    return batch
