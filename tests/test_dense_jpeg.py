# SPDX-License-Identifier: Apache-2.0
"""The owner of a dense pack can extract the files following the specification, without Headrace."""

from __future__ import annotations

import io
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dense_jpeg_reader import DenseJpeg
from jpeg_reader import decode_baseline
from pack_reader import PackReader
from PIL import Image

import headrace as hr


def jpeg(size: tuple[int, int], mode: str = "RGB", noise: int = 40, **options: Any) -> bytes:
    rng = np.random.default_rng(sum(size))
    width, height = size
    channels = len(mode)
    wave = np.add.outer(np.arange(height) * 3, np.arange(width) * 2)[..., None] % 200
    pixels = wave + rng.integers(0, noise, (height, width, channels))
    image = Image.fromarray(pixels.astype(np.uint8).squeeze(), mode)
    out = io.BytesIO()
    image.save(out, "jpeg", **options)
    return out.getvalue()


def with_size(file: bytes, width: int, height: int) -> bytes:
    """Fewer samples in the same MCUs: blocks beyond the edge are treated like any other."""
    at = file.index(b"\xff\xc0")
    size = height.to_bytes(2, "big") + width.to_bytes(2, "big")
    return file[: at + 5] + size + file[at + 9 :]


FILES = {
    "usual": jpeg((50, 37)),
    "edges": with_size(jpeg((64, 64)), 49, 50),
    "optimized": jpeg((50, 37), optimize=True, quality=95),
    "gray": jpeg((41, 30), mode="L"),
    "444": jpeg((41, 30), subsampling=0),
    "422": jpeg((41, 30), subsampling=1, progressive=True),
    "cmyk": jpeg((41, 30), mode="CMYK", progressive=True),
    "progressive": jpeg((90, 61), progressive=True, quality=60),
    "refined": jpeg((200, 150), noise=3, progressive=True, quality=99),
    "restart": jpeg((90, 61), restart_marker_blocks=2),
    "progressive restart": jpeg((90, 61), progressive=True, restart_marker_blocks=3),
    "trailing": jpeg((33, 20)) + b"behind\xff\xd9",
    "comment": jpeg((33, 20), comment=b"a comment" * 100),
    "large": jpeg((160, 200), noise=200, quality=97, progressive=True),
    "large and usual": jpeg((160, 200), noise=200, quality=97),
}


@pytest.fixture(scope="module")
def dense(tmp_path_factory: pytest.TempPathFactory) -> dict[str, DenseJpeg]:
    place = tmp_path_factory.mktemp("dense")
    (place / "files").mkdir()
    for name, file in FILES.items():
        (place / "files" / f"{name}.jpg").write_bytes(file)
    hr.pack(place / "files", place / "pack", level="dense")
    pack = PackReader(place / "pack")
    image = next(i for i, field in enumerate(pack.fields) if field.encoded)
    out = {}
    for number, key in enumerate(pack.keys):
        assert pack.form(number, image) == 2, key
        stored = pack.record(number)[pack.fields[image].name]
        out[Path(key.decode()).stem] = DenseJpeg(stored)
    assert out.keys() == FILES.keys()
    return out


@pytest.mark.parametrize("name", FILES)
def test_the_original_follows_from_the_specification(
    name: str, dense: dict[str, DenseJpeg]
) -> None:
    assert dense[name].original() == FILES[name]


@pytest.mark.parametrize("name", FILES)
def test_the_jpeg_inside_has_the_pixels_of_the_original(
    name: str, dense: dict[str, DenseJpeg]
) -> None:
    inside, original = (Image.open(io.BytesIO(data)) for data in (dense[name].jpeg, FILES[name]))
    assert inside.mode == original.mode
    assert np.array_equal(np.asarray(inside), np.asarray(original))


def test_the_row_index_locates_the_rows(dense: dict[str, DenseJpeg]) -> None:
    for name in ("large", "large and usual"):
        file = dense[name].jpeg
        begin = file.index(b"\xff\xda")
        begin += 2 + int.from_bytes(file[begin + 2 : begin + 4], "big")
        picture, mcus = decode_baseline(file)
        rows = dense[name].rows()
        firsts = mcus[:: picture.mcus_wide]
        assert len(rows) == len(firsts)
        for (byte, bit, predictors, entries), (place, dc) in zip(rows, firsts, strict=True):
            before = file[begin:byte]
            assert 8 * (len(before) - before.count(b"\xff\x00")) + bit == place
            assert list(predictors) == dc
            first = mcus.index((place, dc))
            for mcu, entry_bit, entry_dc in entries:
                assert mcus[first + mcu] == (place - bit + entry_bit, list(entry_dc))
        places = [0, *(entry[1] for entry in rows[0][3])]
        assert len(places) > 1
        assert all(8192 <= after - before < 16384 for before, after in pairwise(places))
