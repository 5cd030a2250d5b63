# SPDX-License-Identifier: Apache-2.0
"""Images are rotated upright as by ImageOps.exif_transpose, for every format with a tag; and a
sideways image is never delivered without a warning."""

from __future__ import annotations

import io
import json
import struct
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from picture_kinds import encoded, ours, waves
from PIL import Image, ImageOps
from PIL.PngImagePlugin import PngInfo

import headrace as hr
from headrace import transforms as T

PICTURE = waves("RGB", 24, 15)
SMOOTH = Image.merge(
    "RGB", [Image.linear_gradient("L").rotate(90 * i).resize((24, 16)) for i in range(3)]
)  # whose colors change slowly enough for subsampled chroma


def exif(orientation: int, order: str = "<", kind: int = 3, magic: int = 42) -> bytes:
    """A TIFF structure with the single tag, as in Exif."""
    value = struct.pack(order + {1: "B3x", 3: "H2x", 4: "I"}[kind], orientation)
    head = (b"II" if order == "<" else b"MM") + struct.pack(order + "HI", magic, 8)
    return head + struct.pack(order + "HHHI", 1, 0x112, kind, 1) + value + bytes(4)


def exif_without_the_tag() -> bytes:
    return b"II*\0" + struct.pack("<I", 8) + struct.pack("<HHHI", 1, 0x100, 3, 1) + bytes(8)


def xmp(orientation: int, element: bool = False) -> bytes:
    said = f"<tiff:Orientation>{orientation}</tiff:Orientation>"
    return (said if element else f'<a tiff:Orientation="{orientation}"/>').encode()


def jpeg(**options: Any) -> bytes:
    return encoded(PICTURE, "JPEG", quality=95, **options)


def with_jpeg_segment(body: bytes) -> bytes:
    data = jpeg()
    return data[:2] + b"\xff\xe1" + struct.pack(">H", len(body) + 2) + body + data[2:]


def with_png_chunk(kind: bytes, body: bytes, after_pixels: bool = False) -> bytes:
    data = encoded(PICTURE, "PNG")
    at = data.index(b"IEND") - 4 if after_pixels else 33
    crc = struct.pack(">I", zlib.crc32(kind + body))
    return data[:at] + struct.pack(">I", len(body)) + kind + body + crc + data[at:]


def with_webp_chunk(name: bytes, body: bytes, flag: int) -> bytes:
    data = encoded(PICTURE, "WebP", lossless=True)
    head = struct.pack("<I", flag)
    size = (PICTURE.width - 1).to_bytes(3, "little") + (PICTURE.height - 1).to_bytes(3, "little")
    extended = b"VP8X" + struct.pack("<I", 10) + head + size
    chunk = name + struct.pack("<I", len(body)) + body + b"\0" * (len(body) % 2)
    inside = b"WEBP" + extended + data[12:] + chunk
    return b"RIFF" + struct.pack("<I", len(inside)) + inside


def raw_profile(orientation: int) -> bytes:
    """As ImageMagick writes Exif into a PNG: lines of hexadecimal digits."""
    body = b"Exif\0\0" + exif(orientation)
    digits = body.hex()
    lines = "\n".join(digits[i : i + 72] for i in range(0, len(digits), 72))
    return f"\nexif\n{len(body):8}\n{lines}\n".encode()


def itxt(text: bytes, compressed: bool) -> bytes:
    head = b"XML:com.adobe.xmp\0" + (b"\1\0" if compressed else b"\0\0") + b"\0\0"
    return head + (zlib.compress(text) if compressed else text)


NAME = b"Raw profile type exif\0"
FORMS: dict[str, Callable[[int], bytes]] = {
    "jpeg": lambda n: with_jpeg_segment(b"Exif\0\0" + exif(n)),
    "jpeg, high byte first": lambda n: with_jpeg_segment(b"Exif\0\0" + exif(n, ">")),
    "jpeg, as four bytes": lambda n: with_jpeg_segment(b"Exif\0\0" + exif(n, kind=4)),
    "jpeg, named twice": lambda n: with_jpeg_segment(b"Exif\0\0Exif\0\0" + exif(n)),
    "jpeg, number in the other order": lambda n: with_jpeg_segment(
        b"Exif\0\0" + exif(n, magic=42 << 8)
    ),
    "jpeg, xmp": lambda n: jpeg(xmp=xmp(n)),
    "jpeg, xmp as an element": lambda n: jpeg(xmp=xmp(n, element=True)),
    "jpeg, xmp beside exif without the tag": lambda n: jpeg(
        xmp=xmp(n), exif=b"Exif\0\0" + exif_without_the_tag()
    ),
    "jpeg, exif before xmp": lambda n: jpeg(xmp=xmp(9 - n), exif=b"Exif\0\0" + exif(n)),
    "png": lambda n: with_png_chunk(b"eXIf", exif(n)),
    "png, named": lambda n: with_png_chunk(b"eXIf", b"Exif\0\0" + exif(n, ">")),
    "png, after the pixels": lambda n: with_png_chunk(b"eXIf", exif(n), after_pixels=True),
    "png, raw profile": lambda n: with_png_chunk(b"tEXt", NAME + raw_profile(n)),
    "png, raw profile, compressed": lambda n: with_png_chunk(
        b"zTXt", NAME + b"\0" + zlib.compress(raw_profile(n))
    ),
    "png, raw profile after the pixels": lambda n: with_png_chunk(
        b"zTXt", NAME + b"\0" + zlib.compress(raw_profile(n)), after_pixels=True
    ),
    "png, text": lambda n: with_png_chunk(b"tEXt", b"exif\0" + exif(n)),
    "png, xmp": lambda n: with_png_chunk(b"iTXt", itxt(xmp(n), compressed=False)),
    "png, xmp, compressed": lambda n: with_png_chunk(b"iTXt", itxt(xmp(n), compressed=True)),
    "webp": lambda n: with_webp_chunk(b"EXIF", exif(n), 8),
    "webp, named": lambda n: with_webp_chunk(b"EXIF", b"Exif\0\0" + exif(n, ">"), 8),
    "webp, xmp": lambda n: with_webp_chunk(b"XMP ", xmp(n), 4),
    "tiff": lambda n: encoded(PICTURE, "TIFF", tiffinfo={274: n}),
    "tiff, high byte first": lambda n: encoded(PICTURE, "TIFF", big_tiff=True, tiffinfo={274: n}),
    "tiff, xmp": lambda n: encoded(PICTURE, "TIFF", tiffinfo={700: xmp(n)}),
    "avif": lambda n: encoded(PICTURE, "AVIF", quality=100, exif=b"Exif\0\0" + exif(n)),
    "avif, xmp": lambda n: encoded(PICTURE, "AVIF", quality=100, xmp=xmp(n)),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_orientation_tag_that_pillow_reads_rotates_as_in_pillow(form: str) -> None:
    turned = 0
    for orientation in range(0, 10):
        data = FORMS[form](orientation)
        stored = Image.open(io.BytesIO(data))
        expected = np.asarray(ImageOps.exif_transpose(stored).convert("RGB")).transpose(2, 0, 1)
        got = np.asarray(ours([{"image": data}], exif_orientation=True).image[0])
        assert got.shape == expected.shape, orientation
        assert np.abs(got.astype(int) - expected).max() <= ("avif" in form), orientation
        turned += expected.shape[1:] == (24, 15)
    assert turned == 4  # 5 to 8: the test would detect an ignored orientation


@pytest.mark.parametrize("kind", ["heif", "jpegxl"])
def test_formats_rotated_by_pillows_plugins_are_upright(kind: str) -> None:
    plugin = pytest.importorskip("pillow_heif" if kind == "heif" else "pillow_jxl")
    if kind == "heif":
        plugin.register_heif_opener()
    options: dict[str, Any] = {"quality": 95} if kind == "heif" else {"lossless": True}
    for orientation in range(1, 9):
        data = encoded(
            SMOOTH,
            "HEIF" if kind == "heif" else "JXL",
            exif=b"Exif\0\0" + exif(orientation),
            **options,
        )
        stored = Image.open(io.BytesIO(data))
        expected = np.asarray(ImageOps.exif_transpose(stored).convert("RGB")).transpose(2, 0, 1)
        got = np.asarray(ours([{"image": data}], exif_orientation=True).image[0])
        assert got.shape == expected.shape, orientation
        assert np.abs(got.astype(int) - expected).max() <= 3, orientation


def test_orientation_of_another_type_is_ignored_as_in_pillow() -> None:
    data = with_jpeg_segment(b"Exif\0\0" + exif(6, ">", kind=1))
    assert ImageOps.exif_transpose(Image.open(io.BytesIO(data))).size == (24, 15)
    assert ours([{"image": data}], exif_orientation=True).image[0].shape == (3, 15, 24)


def test_a_decompression_bomb_in_png_text_is_ignored() -> None:
    bomb = with_png_chunk(b"zTXt", NAME + b"\0" + zlib.compress(bytes(1 << 26)))
    assert ours([{"image": bomb}], exif_orientation=True).image[0].shape == (3, 15, 24)


def on_its_side(folder: Path) -> Path:
    path = folder / "a.png"
    path.write_bytes(with_png_chunk(b"eXIf", exif(6)))
    return path


def test_a_sideways_image_is_warned_about_once_and_counted(tmp_path: Path) -> None:
    source = hr.records(image=[str(on_its_side(tmp_path))] * 3)
    with pytest.warns(
        hr.Warning, match=r"require a rotation or flip.*exif_orientation=True"
    ) as told:
        loader = hr.Loader(source, [T.Resize((8, 8))], batch_size=1)
        assert len(list(loader)) == 3
        assert len(list(loader)) == 3
    assert len(told) == 1
    assert loader.stats()["exif_ignored"] == 6


@pytest.mark.parametrize("said", [True, False])
def test_an_explicit_choice_gives_no_warning(said: bool, tmp_path: Path) -> None:
    source = hr.records(image=[str(on_its_side(tmp_path))])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loader = hr.Loader(source, batch_size=1, exif_orientation=said, ragged="list")
        (batch,) = loader
    assert batch.image[0].shape[1:] == ((24, 15) if said else (15, 24))
    assert loader.stats()["exif_ignored"] == 0


def test_a_warning_turned_into_an_error_loses_no_batch(tmp_path: Path) -> None:
    source = hr.records(image=[str(on_its_side(tmp_path))] * 2, number=[0, 1])
    loader = hr.Loader(source, [T.Resize((8, 8))], batch_size=1)
    batches = iter(loader)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(hr.Warning):
            next(batches)
    assert [int(batch.number[0]) for batch in loader] == [0, 1]


def annotated(folder: Path, width: int, height: int, box: bool = True) -> Path:
    """COCO annotations of an image that is stored rotated, 24 wide and 15 high."""
    rows = [{"id": 1, "image_id": 7, "category_id": 1, "bbox": [1, 2, 6, 10]}]
    images = [{"id": 7, "file_name": on_its_side(folder).name, "width": width, "height": height}]
    path = folder / "instances.json"
    categories = [{"id": 1, "name": "x"}]
    path.write_text(
        json.dumps({"images": images, "annotations": rows if box else [], "categories": categories})
    )
    return path


def first(path: Path, *, check_sizes: bool = True, **options: Any) -> Any:
    source = hr.coco(str(path), images=str(path.parent), check_sizes=check_sizes)
    return next(iter(hr.Loader(source, batch_size=1, ragged="list", **options)))


@pytest.mark.filterwarnings("ignore:.*rotated or mirrored")
def test_annotations_of_the_upright_image_are_refused_on_the_stored_one(tmp_path: Path) -> None:
    path = annotated(tmp_path, 15, 24)
    with pytest.raises(hr.DataError, match=r"(?s)24 x 15.*for 15 x 24.*exif_orientation=True"):
        first(path)
    assert first(path, exif_orientation=True).image[0].shape == (3, 24, 15)


def test_annotations_of_the_stored_image_are_refused_on_the_upright_one(tmp_path: Path) -> None:
    path = annotated(tmp_path, 24, 15)
    with pytest.raises(hr.DataError, match=r"(?s)15 x 24.*for 24 x 15.*exif_orientation=False"):
        first(path, exif_orientation=True)
    assert first(path, exif_orientation=False).image[0].shape == (3, 15, 24)


def test_annotations_of_an_image_of_another_size_are_refused(tmp_path: Path) -> None:
    path = annotated(tmp_path, 48, 30)
    with pytest.raises(hr.DataError, match=r"(?s)HR0140.*for 48 x 30.*check_sizes=False"):
        first(path, exif_orientation=False)
    assert first(path, exif_orientation=False, fields=("image",)).image[0].shape == (3, 15, 24)
    assert first(path, exif_orientation=False, check_sizes=False).image[0].shape == (3, 15, 24)


def test_a_contradicting_size_is_also_found_in_the_cache(tmp_path: Path) -> None:
    source = hr.coco(str(annotated(tmp_path, 48, 30)), images=str(tmp_path))
    options = {"cache": "1 MiB", "exif_orientation": False, "on_error": "skip"}
    loader = hr.Loader(source, [T.Resize((8, 8))], batch_size=1, ragged="list", **options)
    for _ in range(2):
        with pytest.raises(hr.DataError, match="all 1 records"):
            list(loader)


def test_an_image_without_annotations_may_have_any_size(tmp_path: Path) -> None:
    path = annotated(tmp_path, 48, 30, box=False)
    assert first(path, exif_orientation=False).image[0].shape == (3, 15, 24)


def test_pillows_png_text_equals_that_written_by_the_test() -> None:
    """PngInfo writes the same as the functions above."""
    info = PngInfo()
    info.add_text("Raw profile type exif", raw_profile(6).decode(), zip=True)
    data = encoded(PICTURE, "PNG", pnginfo=info)
    assert np.asarray(ours([{"image": data}], exif_orientation=True).image[0]).shape == (3, 24, 15)
