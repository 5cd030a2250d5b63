# SPDX-License-Identifier: Apache-2.0
"""Exact pixels: ``mode=`` equals Pillow's convert() of a file, or its stored values; anything else
is an error, never another value."""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from picture_kinds import KINDS, encoded, of_mode, ours, pillow, waves
from PIL import Image

import headrace as hr
from headrace import transforms as T


def stored(data: bytes, *steps: Any, **options: Any) -> np.ndarray[Any, Any]:
    """The image as stored in its file."""
    batch = ours([{"image": data}], *steps, mode="stored", sixteen_bit="error", **options)
    return np.asarray(batch.image[0])


def png(pixels: np.ndarray[Any, Any], color_type: int, transparent: bytes = b"") -> bytes:
    """(H, W, C) samples of 8 or 16 bits, without filters."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return (
            struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        )

    height, width = pixels.shape[:2]
    bits = 8 * pixels.dtype.itemsize
    rows = pixels.astype(pixels.dtype.newbyteorder(">")).reshape(height, -1)
    body = b"".join(b"\0" + row.tobytes() for row in rows)
    head = struct.pack(">IIBBBBB", width, height, bits, color_type, 0, 0, 0)
    extra = chunk(b"tRNS", transparent) if transparent else b""
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + extra
        + chunk(b"IDAT", zlib.compress(body))
        + chunk(b"IEND", b"")
    )


def tiff(
    pixels: np.ndarray[Any, Any],
    *,
    planes: bool = False,
    tile: int = 0,
    photometric: int = 1,
    extra: int = 0,
) -> bytes:
    """Of (C, H, W) uint8, uint16 or float32, uncompressed, in strips of 7 rows or square tiles.

    photometric: 1 gray, 2 RGB; extra: the meaning of additional channels (0 unspecified, 1
    premultiplied alpha, 2 alpha).
    """
    count, height, width = pixels.shape
    bits = 8 * pixels.dtype.itemsize
    parts: list[bytes] = []
    groups = [pixels[c : c + 1] for c in range(count)] if planes else [pixels]
    for group in groups:
        if tile:
            padded = np.pad(group, ((0, 0), (0, -height % tile), (0, -width % tile)))
            for y in range(0, padded.shape[1], tile):
                for x in range(0, padded.shape[2], tile):
                    block = padded[:, y : y + tile, x : x + tile]
                    parts.append(np.ascontiguousarray(block.transpose(1, 2, 0)).tobytes())
        else:
            parts += [
                np.ascontiguousarray(group[:, y : y + 7].transpose(1, 2, 0)).tobytes()
                for y in range(0, height, 7)
            ]
    body, offsets = b"", []
    for part in parts:
        offsets.append(8 + len(body))
        body += part
    arrays: list[tuple[int, int, list[int]]] = [
        (256, 4, [width]),
        (257, 4, [height]),
        (258, 3, [bits] * count),
        (259, 3, [1]),
        (262, 3, [photometric]),
        (277, 3, [count]),
        (284, 3, [2 if planes else 1]),
        (339, 3, [3 if pixels.dtype.kind == "f" else 1] * count),
    ]
    if tile:
        arrays += [(322, 4, [tile]), (323, 4, [tile])]
        arrays += [(324, 4, offsets), (325, 4, [len(part) for part in parts])]
    else:
        arrays += [(278, 4, [7]), (273, 4, offsets), (279, 4, [len(part) for part in parts])]
    colors = 3 if photometric == 2 else 1
    if count > colors:
        arrays.append((338, 3, [extra] * (count - colors)))
    entries = b""
    for tag, kind, values in sorted(arrays):
        packed = struct.pack(f"<{len(values)}{'H' if kind == 3 else 'I'}", *values)
        if len(packed) > 4:
            at = 8 + len(body)
            body += packed
            packed = struct.pack("<I", at)
        entries += struct.pack("<HHI", tag, kind, len(values)) + packed.ljust(4, b"\0")
    at = 8 + len(body)
    directory = struct.pack("<H", len(arrays)) + entries + bytes(4)
    return b"II*\0" + struct.pack("<I", at) + body + directory


@pytest.mark.parametrize("mode", ["L", "RGBA", "RGB"])
@pytest.mark.parametrize("kind", [*KINDS, "png", "jpeg"])
def test_a_mode_equals_pillows_convert(kind: str, mode: str) -> None:
    if kind == "jpeg":
        named = [(m, encoded(of_mode(m, 37, 23), "JPEG")) for m in ("L", "RGB", "CMYK")] + [
            ("progressive", encoded(waves("RGB", 50, 31), "JPEG", progressive=True))
        ]
    elif kind == "png":
        modes = ("1", "L", "LA", "P", "P7", "RGB", "RGBA")
        named = [
            (m, encoded(of_mode(m, w, h), "PNG")) for m in modes for w, h in ((37, 23), (1, 1))
        ]
    else:
        wide = ("I;16", "I ", "P2 300", "P2 65535", "P5 300", "P5 65535")
        named = [(n, d) for n, d in KINDS[kind]() if mode != "RGBA" or not n.startswith(wide)]
    if kind == "tiff":  # 8-bit RGB with a fourth sample of undefined meaning: Pillow's mode is RGBX
        named = [(n, d) for n, d in named if Image.open(io.BytesIO(d)).mode != "RGBX"]
    batch = ours([{"image": data} for _, data in named], mode=mode)
    for (name, data), got in zip(named, batch.image, strict=True):
        assert np.array_equal(np.asarray(got), pillow(data, mode)), (kind, name)


def test_transparent_entries_and_colors_of_a_png_are_alpha() -> None:
    rng = np.random.default_rng(3)
    palette = waves("RGB", 37, 23).quantize(40)
    entries = bytes(rng.integers(0, 256, 30, np.uint8))  # fewer than the palette's entries
    data = encoded(palette, "PNG", transparency=entries)
    assert np.array_equal(ours([{"image": data}], mode="RGBA").image[0], pillow(data, "RGBA"))
    assert np.array_equal(stored(data), pillow(data, "RGBA"))
    few = rng.integers(0, 4, (23, 37, 3), np.uint8)
    for pixels, color_type, key in (
        (few, 2, struct.pack(">HHH", 1, 2, 3)),
        (few[..., :1], 0, struct.pack(">H", 2)),
    ):
        data = png(pixels, color_type, key)
        got = np.asarray(ours([{"image": data}], mode="RGBA").image[0])
        assert np.array_equal(got, pillow(data, "RGBA"))
        assert 0 < (got[3] == 0).mean() < 1
        assert len(stored(data)) == pixels.shape[2]  # a transparent color is not a channel


def test_a_transparent_index_of_a_gif_is_alpha() -> None:
    picture = waves("RGB", 37, 23).quantize(16)
    data = encoded(picture, "GIF", transparency=3)
    got = np.asarray(ours([{"image": data}], mode="RGBA").image[0])
    assert np.array_equal(got, pillow(data, "RGBA")) and (got[3] == 0).any()


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_a_png_is_delivered_as_stored(channels: int, dtype: type) -> None:
    rng = np.random.default_rng(channels)
    pixels = rng.integers(0, np.iinfo(dtype).max + 1, (23, 37, channels), dtype)
    got = stored(png(pixels, (0, 4, 2, 6)[channels - 1]))
    assert got.dtype == dtype and np.array_equal(got, pixels.transpose(2, 0, 1))


def test_an_interlaced_sixteen_bit_png_is_delivered_as_stored() -> None:
    cv2 = pytest.importorskip("cv2")  # Pillow only supports it for writing
    pixels = np.random.default_rng(1).integers(0, 65536, (23, 37, 3), np.uint16)
    ok, data = cv2.imencode(".png", pixels)
    assert ok
    assert np.array_equal(stored(data.tobytes())[::-1], pixels.transpose(2, 0, 1))


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
@pytest.mark.parametrize("channels", [1, 2, 3, 4, 5, 16])
def test_a_tiff_is_delivered_as_stored(channels: int, dtype: type) -> None:
    rng = np.random.default_rng(channels)
    pixels = (
        rng.normal(0, 300, (channels, 33, 50))
        if dtype is np.float32
        else rng.integers(0, np.iinfo(dtype).max + 1, (channels, 33, 50))
    ).astype(dtype)
    for layout in ({}, {"planes": True}, {"tile": 16}, {"planes": True, "tile": 16}):
        data = tiff(pixels, **layout)
        got = stored(data)
        assert got.dtype == dtype and np.array_equal(got, pixels), layout
        part = stored(data, T.CenterCrop((10, 20)))
        assert np.array_equal(part, pixels[:, 12:22, 15:35]), layout


@pytest.mark.parametrize("extra", [0, 1, 2])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_extra_channels_of_a_tiff_are_delivered_as_stored(dtype: type, extra: int) -> None:
    rng = np.random.default_rng(extra)
    pixels = rng.integers(0, np.iinfo(dtype).max + 1, (4, 33, 50)).astype(dtype)
    for layout in ({}, {"planes": True}, {"tile": 16}):
        data = tiff(pixels, photometric=2, extra=extra, **layout)
        assert np.array_equal(stored(data), pixels), layout
        if dtype is np.uint8 and extra == 0:
            assert np.array_equal(ours([{"image": data}]).image[0], pixels[:3])


def test_ambiguous_images_are_refused_with_a_suitable_mode() -> None:
    for pixels in (np.zeros((5, 9, 9), np.uint8), np.zeros((1, 9, 9), np.float32)):
        with pytest.raises(hr.Error, match=r'(?s)HR0347.*mode="stored"'):
            ours([{"image": tiff(pixels)}])


@pytest.mark.parametrize("kind", ["pnm", "tiff", "bmp", "gif", "webp"])
def test_other_formats_are_delivered_as_stored(kind: str) -> None:
    for name, data in KINDS[kind]():
        picture = Image.open(io.BytesIO(data))
        if picture.mode in ("CMYK", "RGBX"):
            continue
        has_alpha = "transparency" in picture.info
        mode = {"P": "RGBA" if has_alpha else "RGB", "1": "L", "I": "I;16"}.get(
            picture.mode, picture.mode
        )
        expected = np.asarray(picture if mode == "I;16" else picture.convert(mode))
        expected = expected[None] if expected.ndim == 2 else expected.transpose(2, 0, 1)
        got = stored(data)
        if kind in ("bmp", "gif") and picture.mode in ("1", "L"):
            got = got[:1]  # their grays are stored as a palette
        if got.dtype == np.uint16 and expected.dtype == np.uint8:  # Pillow has no such mode
            exact = kind == "tiff"
            got = got >> 8 if exact else (got / 65535 * 255).round().astype(np.uint8)
            assert np.abs(got.astype(int) - expected).max() <= (not exact), name
        else:
            assert np.array_equal(got, expected), name


def test_a_jpeg_is_delivered_with_its_channels() -> None:
    gray, colors = encoded(waves("L", 37, 23), "JPEG"), encoded(waves("RGB", 37, 23), "JPEG")
    assert np.array_equal(stored(gray), pillow(gray, "L"))
    assert np.array_equal(stored(colors), pillow(colors))
    with pytest.raises(hr.Error, match=r"HR0134.*CMYK"):
        stored(encoded(waves("CMYK", 37, 23), "JPEG"))


def test_inks_of_a_tiff_are_not_colors_and_alpha() -> None:
    data = encoded(waves("CMYK", 37, 23), "TIFF")
    assert np.array_equal(ours([{"image": data}]).image[0], pillow(data))
    with pytest.raises(hr.Error, match=r"HR0134.*CMYK"):
        stored(data)


def test_images_of_another_form_than_the_first_are_bad_records() -> None:
    gray, colors = encoded(waves("L", 9, 9), "PNG"), encoded(waves("RGB", 9, 9), "PNG")
    source = hr.open([{"image": gray}, {"image": colors}, {"image": gray}])
    crop = [T.CenterCrop(9)]
    loader = hr.Loader(source, crop, batch_size=3, mode="stored", on_error="skip")
    (batch,) = loader
    assert batch.image.shape == (2, 1, 9, 9)
    with pytest.raises(hr.Error, match=r"(?s)HR0129.*\(3, \?, \?\).*\(1, \?, \?\)"):
        list(hr.Loader(source, crop, batch_size=3, mode="stored"))


def test_the_first_readable_image_determines_the_stored_form() -> None:
    wide = png(np.full((9, 9, 1), 700, np.uint16), 0)
    source = hr.open([{"image": b"\x89PNG\r\n\x1a\n"}, {"image": wide}])
    crop = [T.CenterCrop(9)]
    (batch,) = hr.Loader(source, crop, batch_size=2, mode="stored", on_error="skip")
    assert batch.image.dtype == np.uint16 and (batch.image == 700).all()
    with pytest.raises(hr.DataError, match=r"(?s)HR0134.*record 0"):
        hr.Loader(hr.open([{"image": b"\x89PNG\r\n\x1a\n"}]), crop, batch_size=1, mode="stored")


def test_masks_of_sixteen_bits_keep_their_ids() -> None:
    ids = np.random.default_rng(2).integers(0, 65536, (23, 37, 1), np.uint16)
    record = {"image": encoded(waves("RGB", 37, 23), "PNG"), "mask": png(ids, 0)}
    with pytest.raises(hr.Error, match="HR0386"):
        ours([record], sixteen_bit="error")
    batch = ours([record], T.RandomHorizontalFlip(1), mode="stored", sixteen_bit="error")
    assert np.array_equal(batch.mask[0], ids.transpose(2, 0, 1)[..., ::-1])


def test_a_folder_in_every_mode(tmp_path: Path) -> None:
    pixels = np.random.default_rng(2).integers(0, 65536, (23, 37, 4), np.uint16)
    for number in range(5):
        (tmp_path / "cat").mkdir(exist_ok=True)
        (tmp_path / "cat" / f"{number}.png").write_bytes(png(pixels, 6))
    expected = (pixels >> 8).astype(np.uint8).transpose(2, 0, 1)
    for mode, want in (
        ("RGB", expected[:3]),
        ("RGBA", expected),
        ("stored", pixels.transpose(2, 0, 1)),
    ):
        loader = hr.Loader(tmp_path, [T.CenterCrop((23, 37))], batch_size=5, mode=mode)
        for _epoch in range(2):
            (batch,) = loader
            assert (batch.image == want).all() and batch.image.dtype == want.dtype
    with pytest.raises(hr.ConfigError, match="must be 'RGB' or"):
        hr.Loader(tmp_path, mode="rgba")


@pytest.mark.parametrize("mode", ["L", "RGBA", "stored"])
def test_a_mode_without_encoded_images_is_refused(mode: str) -> None:
    arrays = hr.open([{"image": np.zeros((3, 9, 9), np.uint8), "label": 1}])
    with pytest.raises(hr.ConfigError, match="HR0137"):
        hr.Loader(arrays, [T.CenterCrop(9)], batch_size=1, mode=mode)
    both = hr.open([{"image": encoded(waves("L", 9, 9), "PNG"), "label": 1}])
    with pytest.raises(hr.ConfigError, match="HR0137"):
        hr.Loader(both, batch_size=1, mode=mode, fields=["label"])


def test_unused_images_are_not_read() -> None:
    good, bad = encoded(waves("L", 9, 9), "PNG"), b"\x89PNG\r\n\x1a\n"
    source = hr.open([{"image": good, "view": bad}], kinds={"view": "image"})
    (batch,) = hr.Loader(source, [T.CenterCrop(9)], batch_size=1, mode="stored", fields=["image"])
    assert batch.image.shape == (1, 1, 9, 9)
    with pytest.raises(hr.DataError, match=r"HR0134.*view"):
        hr.Loader(source, [T.CenterCrop(9)], batch_size=1, mode="stored")


def test_images_that_others_are_derived_from_are_read() -> None:
    gray = hr.open([{"image": encoded(waves("L", 9, 9), "PNG")}])
    views = [T.CenterCrop(9), T.Fork("image", a=[], b=[T.RandomHorizontalFlip(1)])]
    (batch,) = hr.Loader(gray, views, batch_size=1, mode="stored", fields=["b"])
    assert batch.b.shape == (1, 1, 9, 9)


def test_an_unreadable_first_file_is_reported_as_such(tmp_path: Path) -> None:
    (tmp_path / "cat").mkdir()
    for number in range(2):
        (tmp_path / "cat" / f"{number}.png").write_bytes(encoded(waves("L", 9, 9), "PNG"))
    source = hr.open(tmp_path)
    (tmp_path / "cat" / "0.png").unlink()
    with pytest.raises(hr.StorageError, match="HR0201"):
        hr.Loader(source, [T.CenterCrop(9)], batch_size=1, mode="stored")


def test_a_row_index_is_used_through_a_view(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "cat").mkdir()
    for number in range(4):
        data = encoded(waves("L", 200, 150), "JPEG")
        (tmp_path / "cat" / f"{number}.jpg").write_bytes(data)
    source = hr.open(tmp_path / "cat")
    hr.index(source)
    part = hr.Loader(source[2:], [T.CenterCrop(20)], batch_size=2, mode="stored")
    (batch,) = part
    assert batch.image.shape == (2, 1, 20, 20)
    assert part.stats().index["used"] == 2
