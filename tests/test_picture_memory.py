# SPDX-License-Identifier: Apache-2.0
"""The memory for decoding an image is known from its header: large images in small files take no
more, a header and a coded image of different sizes cost nothing, and memory_limit holds.

The growth of the process is measured, so each kind runs in a separate process."""

from __future__ import annotations

import functools
import json
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from picture_kinds import KINDS, bomb, encoded, of_mode, waves
from PIL import Image
from timing import with_attempts

MIB = 1 << 20
ALL_KINDS = [*KINDS, "heif", "jpegxl"]
NAMES = {"pnm": "PPM", "jpeg2000": "JPEG2000", "heif": "HEIF", "jpegxl": "JXL"}

PROGRAM = """
import ctypes, json, sys
import headrace as hr
from headrace import transforms as T

def kib(name):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(name))

def run(paths, steps, **options):
    given = {"threads": 1, "batch_size": 1, "sixteen_bit": "clip"}
    with hr.Loader(hr.records(image=paths), steps, **(given | options)) as loader:
        return sum(len(batch.image) for batch in loader), loader.stats().memory_peak

run([sys.argv[1]], [T.Resize((32, 32))])
found = []
for case in json.loads(sys.argv[2]):
    steps = [T.CenterCrop(case["crop"])] if case.get("crop") else []
    ctypes.CDLL(None).malloc_trim(0)
    before = kib("VmRSS")
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # VmHWM begins again
    records, peak, code = 0, 0, ""
    try:
        records, peak = run(case["paths"], [*steps, T.Resize((32, 32))], **case.get("options", {}))
    except hr.Error as error:
        code = error.code
    growth = (kib("VmHWM") - before) * 1024
    found.append({"records": records, "peak": peak, "code": code, "growth": growth})
print(json.dumps(found))
"""


def report(tmp_path: Path, kind: str, *cases: dict[str, Any]) -> list[dict[str, Any]]:
    tiny = tmp_path / "tiny"
    tiny.write_bytes(picture(kind, Image.new("RGB", (16, 16), (9, 70, 130))))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tiny), json.dumps(cases)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout))


def picture(kind: str, image: Image.Image, **options: Any) -> bytes:
    """An image of this kind, with the fastest encoder settings."""
    if kind == "heif":
        pytest.importorskip("pillow_heif").register_heif_opener()
        options = {"quality": 20, "enc_params": {"preset": "ultrafast"}} | options
    if kind == "jpegxl":
        pytest.importorskip("pillow_jxl")
        options = {"lossless": True, "effort": 1} | options
    if kind == "avif":
        options = {"quality": 20, "speed": 10} | options
    if kind == "gif":
        image = image.quantize(4)
    if kind == "webp":
        options = {"lossless": True, "method": 0} | options
    if kind == "tiff":
        options = {"compression": "tiff_adobe_deflate"} | options
    return encoded(image, NAMES.get(kind, kind.upper()), **options)


@functools.cache
def large(kind: str, side: int) -> list[bytes]:
    """Images of one color, of 10^4 pixels per byte if the format can."""
    one = Image.new("RGB", (side, side), (9, 70, 130))
    files = [picture(kind, one), picture(kind, waves("RGB", 400, 300))]
    if kind == "webp":
        files += [picture(kind, one, lossless=False), picture(kind, one.convert("RGBA"))]
    if kind == "jpeg2000":  # a code-block takes as much memory as its samples, and a tile far more
        files.append(picture(kind, one, codeblock_size=(4, 4)))
        files.append(picture(kind, one.crop((0, 0, 500, 500)), tile_size=(8, 8)))
    if kind == "jpegxl":
        files.append(picture(kind, one, lossless=False))
    if kind in ("avif", "heif"):
        files.append(picture(kind, waves("RGBA", 900, 700)))
    return files


def stored(tmp_path: Path, files: list[bytes]) -> list[str]:
    paths = [tmp_path / str(number) for number in range(len(files))]
    for path, data in zip(paths, files, strict=True):
        path.write_bytes(data)
    return [str(path) for path in paths]


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_decoding_takes_no_more_than_was_reserved(kind: str, tmp_path: Path) -> None:
    """The reservation is what the gate counts; malloc and the loader use some additional memory."""
    side = 1300 if kind == "jpeg2000" else 2400
    paths = stored(tmp_path, large(kind, side))
    cases = [{"paths": [path], "crop": crop} for path in paths for crop in (None, 280)]
    cases += [{"paths": paths[:1], "crop": side - 10}]

    def check() -> None:
        for case, got in zip(cases, report(tmp_path, kind, *cases), strict=True):
            assert got["records"] == 1, (case, got)
            mapped = Path(case["paths"][0]).stat().st_size  # pages of the file, owned by the system
            assert got["growth"] <= got["peak"] + mapped + 8 * MIB, (case, got)

    with_attempts(check)


@pytest.mark.parametrize("kind", ["avif", "heif", "jpegxl", "jpeg2000", "webp"])
def test_large_images_wait_for_each_other_under_a_small_limit(kind: str, tmp_path: Path) -> None:
    """A record may take a third of the limit or more, and four threads would use it all at once."""
    side, number = (1300, 2) if kind == "jpeg2000" else (2400, 0)
    paths = stored(tmp_path, [large(kind, side)[number]])
    alone = report(tmp_path, kind, {"paths": paths})[0]["peak"]
    limit = 3 * alone
    options = {"threads": 6, "batch_size": 4, "memory_limit": limit}

    def check() -> None:
        (got,) = report(tmp_path, kind, {"paths": paths * 8, "options": options})
        assert got["records"] == 8, got
        assert got["peak"] <= limit
        assert got["growth"] <= 1.05 * limit

    with_attempts(check)


def bits(*fields: tuple[int, int]) -> bytes:
    """(value, bits), the lowest bits first."""
    value = at = 0
    for number, count in fields:
        value |= number << at
        at += count
    return value.to_bytes((at + 7) // 8, "little")


def of_size(kind: str, side: int) -> bytes:
    """An image whose header has this size, in all places where its format stores it."""
    if kind == "heif":
        data = bytearray(picture(kind, waves("RGB", 64, 64)))
        at = data.index(b"ispe") + 8
        data[at : at + 8] = struct.pack(">II", side, side)
        return bytes(data)
    if kind == "jpegxl":  # not small; both sides in 18 or 30 bits; everything else at its default
        size = (3, 2), (side - 1, 30)
        return b"\xff\x0a" + bits((0, 1), *size, (0, 3), *size, (1, 1), (1, 1), (1, 1)) + bytes(64)
    return bomb(kind)


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_a_header_of_the_largest_size_allocates_nothing(kind: str, tmp_path: Path) -> None:
    """Neither if the cap is below it, nor if memory_limit is the only limit."""
    sides = [65535] + ([1 << 30] if kind == "jpegxl" else [])
    paths = stored(tmp_path, [of_size(kind, side) for side in sides])
    open_cap = {"max_pixels": 1 << 62, "memory_limit": 256 * MIB}
    cases = [{"paths": [path], "options": o} for path in paths for o in ({}, open_cap)]
    for case, got in zip(cases, report(tmp_path, kind, *cases), strict=True):
        assert got["code"].startswith("HR"), (case, got)
        assert got["growth"] < 8 * MIB, (case, got)


def test_a_coded_image_larger_than_its_container_is_not_decoded(tmp_path: Path) -> None:
    for kind in ("avif", "heif"):
        data = bytearray(picture(kind, Image.new("RGB", (2000, 2000), (9, 70, 130))))
        at = data.index(b"ispe") + 8
        data[at : at + 8] = struct.pack(">II", 16, 16)
        (got,) = report(tmp_path, kind, {"paths": stored(tmp_path, [bytes(data)])})
        assert got["code"] in ("HR0345", "HR0348"), (kind, got)
        assert got["growth"] < 8 * MIB, (kind, got)


def test_a_huge_layer_is_not_rendered_for_a_small_image(tmp_path: Path) -> None:
    layered = Path(__file__).parent.parent / "fuzz/jpegxl/layer-of-4000x4000"
    (got,) = report(tmp_path, "jpegxl", {"paths": [str(layered)]})
    assert got["code"] == "HR0348"


def jpeg2000(image: Image.Image, changes: dict[int, int], **options: Any) -> bytes:
    """With these bytes of COD changed: 5 is the high byte of the number of layers."""
    data = bytearray(encoded(image, "JPEG2000", no_jp2=True, **options))
    at = data.index(b"\xff\x52")
    for place, value in changes.items():
        data[at + place] = value
    return bytes(data)


def test_precincts_of_one_sample_are_not_all_allocated(tmp_path: Path) -> None:
    """They took 400 bytes each."""
    one = Image.new("RGB", (1200, 1200), (9, 70, 130))
    data = encoded(one, "JPEG2000", no_jp2=True, precinct_size=(128, 128), codeblock_size=(4, 4))
    at = data.index(b"\xff\x52")
    levels = data[at + 9]
    sizes = at + 14
    tiny = data[:sizes] + bytes([0x11] * (levels + 1)) + data[sizes + levels + 1 :]
    layers = jpeg2000(one, {6: 255, 7: 255})
    cases = [{"paths": [path]} for path in stored(tmp_path, [tiny, layers])]
    for got in report(tmp_path, "jpeg2000", *cases):
        assert got["code"] in ("HR0346", "HR0348"), got
        assert got["growth"] < 8 * MIB, got


def test_memory_is_reserved_for_modes_with_more_bytes_per_pixel(tmp_path: Path) -> None:
    for kind, mode in (("webp", "RGBA"), ("avif", "RGBA"), ("jpeg2000", "RGBA"), ("tiff", "CMYK")):
        paths = stored(tmp_path, [picture(kind, of_mode(mode, 1000, 700))])
        (got,) = report(tmp_path, kind, {"paths": paths})
        assert got["records"] == 1, (kind, got)
        mapped = Path(paths[0]).stat().st_size
        assert got["growth"] <= got["peak"] + mapped + 8 * MIB, (kind, got)
