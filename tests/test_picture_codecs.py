# SPDX-License-Identifier: Apache-2.0
"""Exact pixels: an image of any supported kind equals Pillow 13's, whole and in windows; an
unreadable one is an error of its record, never a wrong pixel."""

from __future__ import annotations

import ctypes
import ctypes.util
import lzma
import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import picture_kinds
import pytest
from picture_kinds import KINDS, encoded, ours, pillow, waves

import headrace as hr
from headrace import _core
from headrace import transforms as T

ROOT = Path(__file__).parent.parent
ERRORS = ("HR0340", "HR0345", "HR0346", "HR0347", "HR0348")


def codes_of(data: bytes) -> str:
    """The code of the error from reading the image; empty if it gives pixels."""
    try:
        ours([{"image": data}])
    except hr.Error as error:
        return error.code
    return ""


@pytest.mark.parametrize("kind", KINDS)
def test_every_image_equals_pillows_rgb(kind: str) -> None:
    named = list(KINDS[kind]())
    batch = ours([{"image": data} for _, data in named])
    for (name, data), got in zip(named, batch.image, strict=True):
        assert np.array_equal(np.asarray(got), pillow(data)), name


@pytest.mark.parametrize("kind", KINDS)
def test_a_window_is_the_slice_of_the_image(kind: str) -> None:
    """Both are cropped alike, as fields of one record."""
    records = [
        {"image": data, "second": pillow(data)}
        for _, data in KINDS[kind]()
        for _ in range(4)
        if pillow(data).shape[2] > 30
    ]
    source = hr.open(records, kinds={"second": "image"})
    loader = hr.Loader(
        source,
        [T.RandomCrop((9, 14)), T.RandomHorizontalFlip()],
        batch_size=len(source),
        threads=2,
        sixteen_bit="clip",
        seed=7,
    )
    for _ in range(4):
        (batch,) = loader
        same = (np.asarray(batch.image) == np.asarray(batch.second)).all(axis=(1, 2, 3))
        assert same.all(), np.flatnonzero(~same)


@pytest.mark.parametrize("kind", KINDS)
def test_a_truncated_image_is_an_error_or_complete(kind: str) -> None:
    rng = np.random.default_rng(5)
    text = ("P1", "P2", "P3")  # whose last number may be truncated
    named = [(name, data) for name, data in KINDS[kind]() if not name.startswith(text)]
    for number in rng.permutation(len(named))[:8]:
        name, data = named[number]
        for cut in {0, 1, *(len(data) * i // 8 for i in range(8)), len(data) - 1}:
            code = codes_of(data[:cut])
            if not code:
                assert np.array_equal(
                    np.asarray(ours([{"image": data[:cut]}]).image[0]), pillow(data)
                ), (name, cut)
            else:
                assert code in ERRORS, (name, cut, code)


@pytest.mark.parametrize("kind", KINDS)
def test_mutated_images_are_errors_or_images(kind: str) -> None:
    rng = np.random.default_rng(6)
    named = [data for _, data in KINDS[kind]() if len(data) < 20_000]
    for _ in range(80):
        data = bytearray(named[rng.integers(len(named))])
        for _ in range(rng.integers(1, 6)):
            data[int(len(data) * rng.random() ** 2)] = int(rng.integers(256))
        try:
            ours([{"image": bytes(data)}], max_pixels=1 << 22)
        except hr.Error as error:
            assert error.code in (*ERRORS, "HR0310"), error


@pytest.mark.parametrize("kind", KINDS)
def test_a_header_with_a_false_size_allocates_nothing(kind: str) -> None:
    with pytest.raises(hr.Error, match="HR0310"):
        ours([{"image": picture_kinds.bomb(kind)}], max_pixels=1 << 26)


def test_a_bitmap_mask_keeps_its_indices() -> None:
    picture = picture_kinds.of_mode("P7", 37, 23)
    got = hr.open([{"mask": encoded(picture, "BMP")}])[0]["mask"]
    assert np.array_equal(got, np.asarray(picture)[None])


def test_a_mask_with_colors_is_refused() -> None:
    with pytest.raises(hr.DataError, match="HR0121"):
        ours([{"mask": encoded(waves("RGB", 9, 9), "WebP")}])


@pytest.mark.parametrize("kind", ["BMP", "WebP", "PPM", "TIFF", "GIF", "AVIF"])
def test_a_folder_of_all_codecs_is_read_without_warnings(
    kind: str, tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    for number in range(3):
        path = tmp_path / "cat" / f"{number}.{kind.lower()}"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(encoded(waves("RGB", 20 + number, 20), kind))
    source = hr.open(tmp_path)
    assert [source[i]["image"].shape for i in range(3)] == [(3, 20, 20 + i) for i in range(3)]
    assert not recwarn.list


def test_sixteen_bit_gray_is_refused_without_an_option() -> None:
    data = dict(picture_kinds.pnm())["I 37x23"]
    with pytest.raises(hr.Error, match=r"(?s)HR0386.*high_byte"):
        ours([{"image": data}], sixteen_bit="error")
    got = np.asarray(ours([{"image": data}], sixteen_bit="high_byte").image[0])
    values = np.asarray(picture_kinds.wide(37, 23))
    assert np.array_equal(got, np.broadcast_to(values >> 8, (3, *values.shape)))


def test_a_page_number_beyond_the_file_is_an_error() -> None:
    with pytest.raises(hr.DataError, match=r"HR0349.*page 2 was requested.*count is 1"):
        ours([{"image": encoded(waves("RGB", 9, 9), "PNG")}], page=2)


def libraries() -> dict[str, str]:
    found = {name: _core.codec_library(name) for name in _core.media()["image"]["formats"]}
    return {name: package for name, (package, _, _) in found.items() if package}


@pytest.mark.parametrize("kind", sorted(libraries()))
def test_a_missing_library_is_named_with_its_package(kind: str, tmp_path: Path) -> None:
    """The loader searches LD_LIBRARY_PATH first, and finds no library in an empty file."""
    folder, pictures = tmp_path / "lib", tmp_path / "pictures"
    folder.mkdir()
    pictures.mkdir()
    for soname in picture_kinds.SONAMES.values():
        (folder / soname).touch()
    suffix = _core.media()["image"]["formats"][kind]["suffixes"][0]
    (pictures / f"a{suffix}").write_bytes(next((ROOT / "fuzz" / kind).iterdir()).read_bytes())
    code = (
        "import sys, warnings, headrace as hr\n"
        "with warnings.catch_warnings(record=True) as told:\n"
        "    warnings.simplefilter('always')\n"
        "    source = hr.open(sys.argv[1])\n"
        "    print(told[0].message)\n"
        "try:\n"
        "    source[0]\n"
        "except hr.Error as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(pictures)],
        env={**os.environ, "LD_LIBRARY_PATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert f"1 {suffix} of 1 image" in done.stdout, done
    assert "HR0344" in done.stdout
    assert f"apt-get install {libraries()[kind]}" in done.stdout


def test_formats_lists_what_a_codec_needs() -> None:
    from headrace.cli.app import application
    from typer.testing import CliRunner

    for name, package in libraries().items():
        told: Any = CliRunner().invoke(application(), ["formats", name])
        assert told.exit_code == 0
        assert f"{package}, installed" in " ".join(told.output.split())


def test_a_page_of_a_tiff_equals_that_of_pillow() -> None:
    pages = [waves("RGB", 20 + i, 30 - i, seed=i) for i in range(3)]
    data = encoded(pages[0], "TIFF", save_all=True, append_images=pages[1:], compression="tiff_lzw")
    for number, page in enumerate(pages):
        got = np.asarray(ours([{"image": data}], page=number).image[0])
        assert np.array_equal(got, np.asarray(page).transpose(2, 0, 1))
    with pytest.raises(hr.DataError, match=r"HR0349.*count is 3"):
        ours([{"image": data}], page=3)


@pytest.mark.parametrize("mode", ["F", "I"])
def test_a_tiff_of_floats_or_wide_integers_is_refused(mode: str) -> None:
    """Pillow's convert() would clip them to 0..255."""
    data = encoded(waves("L", 9, 7).convert(mode), "TIFF")
    with pytest.raises(hr.Error, match="HR0347"):
        ours([{"image": data}])


def test_a_fax_that_is_damaged_or_ends_early_is_an_error() -> None:
    """libtiff reports success, and leaves the remaining rows with the previous contents of its
    memory."""
    bits = waves("L", 64, 48).convert("1")
    data = encoded(bits, "TIFF", compression="group4")
    assert ours([{"image": data}]).image[0].shape == (3, 48, 64)
    directory = int.from_bytes(data[4:8], "little")
    tags = {
        int.from_bytes(data[at : at + 2], "little"): at + 8
        for at in range(directory + 2, directory + 2 + 12 * data[directory], 12)
    }
    taller = bytearray(data)
    for tag in (257, 278):  # ImageLength, RowsPerStrip
        taller[tags[tag]] += 40
    damaged = bytearray(data)
    strip = int.from_bytes(data[tags[273] : tags[273] + 4], "little")
    damaged[strip + 20 : strip + 28] = bytes(8)
    for bad in (taller, damaged):
        with pytest.raises(hr.DataError, match=r"HR034[56]"):
            ours([{"image": bytes(bad)}])


def test_a_tiff_is_rotated_on_request() -> None:
    for orientation in range(1, 9):
        data = encoded(waves("RGB", 12, 7), "TIFF", tiffinfo={274: orientation})
        got = np.asarray(ours([{"image": data}], exif_orientation=True).image[0])
        assert np.array_equal(got, pillow(data)), orientation


def test_strict_checks_tiff_checksums_that_libtiff_skips() -> None:
    """It stops inflating when a strip has its rows; the checksum comes after any data that
    follows."""
    data = bytearray(encoded(waves("RGB", 64, 48), "TIFF", compression="tiff_adobe_deflate"))
    directory = int.from_bytes(data[4:8], "little")
    tags = {
        int.from_bytes(data[at : at + 2], "little"): at + 8
        for at in range(directory + 2, directory + 2 + 12 * data[directory], 12)
    }
    for tag in (257, 278):  # ImageLength, RowsPerStrip
        data[tags[tag]] -= 8
    strip, length = (int.from_bytes(data[tags[tag] :][:4], "little") for tag in (273, 279))
    for damage in (1, 4):
        damaged = data.copy()
        damaged[strip + length - damage] ^= 1
        for strict in (False, True):
            assert ours([{"image": bytes(data)}], strict=strict).image[0].shape == (3, 40, 64)
        assert ours([{"image": bytes(damaged)}]).image[0].shape == (3, 40, 64)
        with pytest.raises(hr.DataError, match=r"HR0345.*checksum"):
            ours([{"image": bytes(damaged)}], strict=True)


def gray_tiff(rows: np.ndarray, strip: bytes, compression: int) -> bytes:
    """One strip, unchanged."""
    height, width = rows.shape
    tags = {256: width, 257: height, 258: 8, 259: compression, 262: 1, 273: 122, 277: 1}
    tags |= {278: height, 279: len(strip)}
    fields = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags.items())
    return struct.pack("<2sHIH", b"II", 42, 8, len(tags)) + fields + bytes(4) + strip


def zstd_with_sum(data: bytes) -> bytes:
    library = ctypes.CDLL(ctypes.util.find_library("zstd") or "libzstd.so.1")
    library.ZSTD_createCCtx.restype = ctypes.c_void_p
    library.ZSTD_compress2.restype = ctypes.c_size_t
    context, out = ctypes.c_void_p(library.ZSTD_createCCtx()), ctypes.create_string_buffer(9999)
    library.ZSTD_CCtx_setParameter(context, 201, 1)  # ZSTD_c_checksumFlag
    room, size = ctypes.c_size_t(len(out)), ctypes.c_size_t(len(data))
    written = library.ZSTD_compress2(context, out, room, data, size)
    library.ZSTD_freeCCtx(context)
    return out.raw[:written]


def test_zstandard_and_lzma_checksums_in_a_tiff() -> None:
    """libtiff verifies its own checksum if a strip ends with its rows; otherwise strict=True
    verifies Zstandard's."""
    rows = np.arange(40 * 32, dtype=np.uint32).reshape(40, 32).astype(np.uint8)

    def shown(strip: bytes, compression: int, height: int = 40, strict: bool = False) -> Any:
        data = gray_tiff(rows[:height], strip, compression)
        return np.asarray(ours([{"image": data}], strict=strict).image[0])[0]

    zstd, xz = zstd_with_sum(rows.tobytes()), lzma.compress(rows.tobytes(), check=lzma.CHECK_CRC32)
    index = 4 * (1 + int.from_bytes(xz[-8:-4], "little"))
    for strip, compression, place in (
        (zstd, 50000, len(zstd) - 2),
        (xz, 34925, len(xz) - 12 - index - 2),
    ):
        damaged = bytearray(strip)
        damaged[place] ^= 1
        for strict in (False, True):
            np.testing.assert_array_equal(shown(strip, compression, strict=strict), rows)
            with pytest.raises(hr.DataError, match="HR0345"):
                shown(bytes(damaged), compression, strict=strict)
        if compression == 50000:
            for height in (40, 32):
                np.testing.assert_array_equal(
                    shown(strip, compression, height, True), rows[:height]
                )
                with pytest.raises(hr.DataError, match=r"HR0345"):
                    shown(bytes(damaged), compression, height, True)
                with pytest.raises(hr.DataError, match=r"HR0345.*lacks its checksum"):
                    shown(strip[:-2], compression, height, True)
            np.testing.assert_array_equal(shown(bytes(damaged), compression, 32), rows[:32])


def test_jpeg_in_a_tiff_equals_libjpegs(tmp_path: Path) -> None:
    data = encoded(waves("RGB", 130, 67), "TIFF", compression="jpeg", quality=80)
    difference = np.abs(np.asarray(ours([{"image": data}]).image[0]).astype(int) - pillow(data))
    assert difference.max() <= 1


def test_lossy_jpeg2000_equals_pillows_within_a_level() -> None:
    for width, height in picture_kinds.SIZES:
        data = encoded(
            waves("RGB", width, height),
            "JPEG2000",
            irreversible=True,
            quality_mode="rates",
            quality_layers=[8],
        )
        got = np.asarray(ours([{"image": data}]).image[0]).astype(int)
        assert np.abs(got - pillow(data)).max() <= 1


@pytest.mark.parametrize(("kind", "bound"), [("heif", 2), ("jpegxl", 2)])
def test_formats_of_pillow_plugins_equal_their_rgb(kind: str, bound: int) -> None:
    """For lossy images, versions of the library round differently."""
    if kind == "heif":
        pytest.importorskip("pillow_heif").register_heif_opener()
    else:
        pytest.importorskip("pillow_jxl")
    for mode in ("RGB", "RGBA", "L"):
        for width, height in picture_kinds.SIZES[2:]:
            options: dict[str, Any] = {"quality": 80} if kind == "heif" else {"lossless": True}
            data = encoded(
                waves(mode, width, height), "HEIF" if kind == "heif" else "JXL", **options
            )
            got = np.asarray(ours([{"image": data}]).image[0]).astype(int)
            difference = np.abs(got - pillow(data)).max()
            assert difference <= (bound if kind == "heif" else 0), (mode, width, height, difference)


@pytest.mark.parametrize("kind", ["heif", "jpegxl"])
def test_a_damaged_image_of_any_kind_is_an_error_or_an_image(kind: str) -> None:
    rng = np.random.default_rng(8)
    kept = [path.read_bytes() for path in sorted((ROOT / "fuzz" / kind).iterdir())]
    for _ in range(60):
        data = bytearray(kept[rng.integers(len(kept))])
        for _ in range(rng.integers(1, 6)):
            data[int(len(data) * rng.random())] = int(rng.integers(256))
        del data[int(len(data) * (1 - rng.random() ** 4)) :]
        assert codes_of(bytes(data)) in ("", *ERRORS)


def test_the_corpus_equals_pillows_rgb() -> None:
    """Every image that Pillow reads gives its pixels here, or is rejected by name."""
    root = os.environ.get("HEADRACE_TEST_DATA")
    if not root:
        pytest.skip("HEADRACE_TEST_DATA names no corpus")
    different, read = [], 0
    for kind in (
        "webp",
        "other/avif",
        "other/bmp",
        "other/gif",
        "other/jp2",
        "other/pnm",
        "other/tiff",
    ):
        for path in sorted((Path(root) / kind).rglob("*.*")):
            data = path.read_bytes()
            try:
                expected = pillow(data)
            except Exception:  # of many types
                continue
            try:
                got = np.asarray(
                    ours([{"image": data}], exif_orientation=kind == "other/tiff").image[0]
                )
            except hr.Error as error:
                assert error.code in (*ERRORS, "HR0386"), (path, error)
                continue
            read += 1
            same = got.shape == expected.shape
            close = same and np.abs(got.astype(int) - expected).max() <= (kind == "other/jp2")
            if not close:
                different.append(path.name)
    assert read > 100
    assert different == []
