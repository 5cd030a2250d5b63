# SPDX-License-Identifier: Apache-2.0
"""hr.decode and hr.imread: one image without a loader, with Pillow's pixels, whole or in a
window."""

from __future__ import annotations

import io
import random
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import headrace as hr

PICTURES = Path(__file__).parent.parent / "examples" / "images"
RESAMPLING = Image.Resampling


def made(name: str, mode: str = "RGB", size: tuple[int, int] = (61, 47), **options: Any) -> bytes:
    pixels = Image.effect_noise(size, 80).convert(mode) if mode != "RGBA" else None
    if pixels is None:
        planes = [Image.effect_noise(size, 60 + 20 * c) for c in range(4)]
        pixels = Image.merge("RGBA", planes)
    file = io.BytesIO()
    pixels.save(file, name, **options)
    return file.getvalue()


FILES = {
    "jpeg": made("jpeg", quality=90),
    "gray jpeg": made("jpeg", "L"),
    "progressive": made("jpeg", progressive=True),
    "png": made("png"),
    "alpha png": made("png", "RGBA"),
    "palette": made("png", "P"),
    "webp": made("webp", lossless=True),
    "tiff": made("tiff", compression="tiff_lzw"),
    "bmp": made("bmp"),
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("mode", ["RGB", "L", "RGBA"])
def test_pixels_equal_those_of_pillow(name: str, mode: str) -> None:
    encoded = FILES[name]
    expected = np.asarray(Image.open(io.BytesIO(encoded)).convert(mode))
    expected = expected.reshape(*expected.shape[:2], -1)
    got = hr.decode(encoded, mode=mode)
    assert got.dtype == np.uint8 and np.array_equal(got, expected)
    planes = hr.decode(memoryview(encoded), mode=mode, layout="CHW")
    assert np.array_equal(planes, expected.transpose(2, 0, 1))


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("filter", ["nearest", "bilinear", "bicubic", "box", "hamming", "lanczos"])
def test_a_window_that_is_resized_equals_pillows_crop_and_resize(name: str, filter: str) -> None:
    encoded, draws = FILES[name], random.Random(name + filter)
    picture = Image.open(io.BytesIO(encoded)).convert("RGB")
    for _ in range(6):
        height, width = draws.randint(1, 47), draws.randint(1, 61)
        top, left = draws.randint(0, 47 - height), draws.randint(0, 61 - width)
        size = draws.randint(1, 90), draws.randint(1, 90)
        crop = picture.crop((left, top, left + width, top + height))
        got = hr.decode(encoded, window=(top, left, height, width))
        assert np.array_equal(got, np.asarray(crop))
        got = hr.decode(encoded, window=(top, left, height, width), size=size, interpolation=filter)
        expected = crop.resize(size[::-1], RESAMPLING[filter.upper()])
        assert np.array_equal(got, np.asarray(expected))


def test_stored_keeps_depth_and_channels() -> None:
    deep = np.arange(6 * 5, dtype=np.uint16).reshape(6, 5) * 2000
    file = io.BytesIO()
    Image.fromarray(deep).save(file, "png")
    got = hr.decode(file.getvalue(), mode="stored")
    assert got.dtype == np.uint16 and np.array_equal(got[..., 0], deep)
    assert hr.decode(FILES["alpha png"], mode="stored").shape == (47, 61, 4)
    assert hr.decode(FILES["gray jpeg"], mode="stored").shape == (47, 61, 1)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_rotation_precedes_the_window_or_is_warned_about(
    orientation: int, recwarn: pytest.WarningsRecorder
) -> None:
    exif = Image.Exif()
    exif[274] = orientation
    encoded = made("jpeg", exif=exif)
    stored = Image.open(io.BytesIO(encoded))
    from PIL import ImageOps

    upright = ImageOps.exif_transpose(stored).crop((3, 5, 30, 40))
    got = hr.decode(encoded, window=(5, 3, 35, 27), exif_orientation=True)
    assert np.array_equal(got, np.asarray(upright))
    assert np.array_equal(hr.decode(encoded, exif_orientation=False), np.asarray(stored))
    assert not recwarn.list
    assert np.array_equal(hr.decode(encoded), np.asarray(stored))
    said = [str(each.message) for each in recwarn.list if each.filename == __file__]
    assert len(said) == (orientation != 1)


@pytest.mark.parametrize(
    "window",
    [(0, 0, 48, 1), (0, 0, 1, 62), (47, 0, 1, 1), (0, 61, 1, 1), (0, 0, 0, 1), (1, 1, 2**30, 1)],
)
def test_a_window_outside_of_the_image_is_refused(window: tuple[int, ...]) -> None:
    with pytest.raises(hr.DataError, match=r"HR0505.* of an image of 47 x 61"):
        hr.decode(FILES["jpeg"], window=window)


@pytest.mark.parametrize(
    "arguments",
    [
        {"mode": "BGR"},
        {"layout": "NCHW"},
        {"interpolation": "linear"},
        {"window": (0, 0, 1)},
        {"window": (-1, 0, 1, 1)},
        {"size": (0, 3)},
        {"size": (3.5, 3)},
        {"strict": "yes"},
        {"exif_orientation": 1},
    ],
)
def test_an_unknown_argument_is_named(arguments: dict[str, Any]) -> None:
    with pytest.raises(hr.ConfigError, match=next(iter(arguments))):
        hr.decode(FILES["png"], **arguments)


def test_invalid_bytes_and_missing_files_are_errors(tmp_path: Path) -> None:
    with pytest.raises(hr.DataError, match="HR0340"):
        hr.decode(b"no image")
    with pytest.raises(hr.StorageError, match="HR0201"):
        hr.imread(tmp_path / "none.jpg")
    cut = tmp_path / "cut.jpg"
    cut.write_bytes(FILES["jpeg"][: len(FILES["jpeg"]) // 2])
    with pytest.raises(hr.DataError) as raised:
        hr.imread(cut, strict=True)
    assert raised.value.where.file == str(cut)
    with pytest.raises(TypeError):
        hr.decode(np.zeros((3, 3), object))
    with pytest.raises(TypeError, match="imread"):  # images from other systems open no file here
        hr.decode(str(PICTURES / "cat.jpg"))  # type: ignore[arg-type, unused-ignore]


def test_a_size_that_exceeds_memory_is_refused() -> None:
    with pytest.raises(hr.Error, match="HR0503"):
        hr.decode(FILES["png"], size=(1 << 30, 1 << 30))


def test_a_file_is_read_like_bytes() -> None:
    path = PICTURES / "cat.jpg"
    expected = np.asarray(Image.open(path).convert("RGB"))
    assert np.array_equal(hr.imread(path), expected)
    assert np.array_equal(hr.imread(bytes(path)), expected)  # type: ignore[arg-type]
    assert np.array_equal(hr.imread(str(path), window=(7, 9, 20, 30)), expected[7:27, 9:39])


def test_threads_decode_in_parallel() -> None:
    expected = {name: hr.decode(encoded) for name, encoded in FILES.items()}
    wrong: list[str] = []

    def decode_all() -> None:
        for _ in range(5):
            wrong.extend(
                name
                for name, encoded in FILES.items()
                if not np.array_equal(hr.decode(encoded), expected[name])
            )

    threads = [threading.Thread(target=decode_all) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_arrays_belong_to_the_caller() -> None:
    first = hr.decode(FILES["jpeg"])
    before = first.copy()
    first[:] = 0
    assert np.array_equal(hr.decode(FILES["jpeg"]), before)
    assert first.flags.writeable
