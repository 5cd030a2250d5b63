# SPDX-License-Identifier: Apache-2.0
"""Uninitialized memory is never delivered: a damaged image of any codec gives the
same pixels, or the same error, whatever was in memory before it."""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import pickle
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from picture_kinds import KINDS, encoded, ours, waves

import headrace as hr
from headrace import _core

ROOT = Path(__file__).parent.parent
# Fills memory that is allocated and freed, without free lists that would escape it.
DIRT = ("glibc.malloc.perturb={}:glibc.malloc.tcache_count=0", (90, 165))


def seeds(kind: str) -> list[bytes]:
    """Small images of a codec."""
    folder = ROOT / "fuzz" / kind
    found = [path.read_bytes() for path in sorted(folder.iterdir())] if folder.is_dir() else []
    if kind in KINDS:
        found += [data for _, data in KINDS[kind]()]
    if kind in ("jpeg", "png"):
        found += [encoded(waves("RGB", 64, 48), kind.upper(), quality=80)]
    if kind == "jpeg":
        found += [encoded(waves(mode, 70, 50), "JPEG", progressive=True) for mode in ("L", "RGB")]
    if kind == "heif":
        plugin = pytest.importorskip("pillow_heif")
        plugin.register_heif_opener()
        found += [encoded(waves("RGB", side, 67), "HEIF", quality=60) for side in (64, 130)]
    return [data for data in found if len(data) < 40_000]


def damaged(kind: str) -> list[bytes]:
    """With one or two changed bytes, or truncated; few of HEIF are still images."""
    rng = np.random.default_rng(11)
    kept = seeds(kind)
    out = []
    for number in range((150 if kind == "heif" else 60) if kept else 0):
        data = bytearray(kept[rng.integers(len(kept))])
        for _ in range(rng.integers(1, 3) if number % 4 else 0):
            data[int(len(data) * rng.random())] = int(rng.integers(256))
        if number % 4 == 0:
            del data[int(len(data) * (1 - rng.random() ** 3)) :]
        out.append(bytes(data))
    return out


def outcome(data: bytes, repair: bool) -> str:
    try:
        options = {"damaged": "repair"} if repair else {}
        batch = ours([{"image": data}], max_pixels=1 << 22, **options)
    except hr.Error as error:
        return error.code
    return hashlib.md5(np.asarray(batch.image[0]).tobytes()).hexdigest()


def outcomes(path: Path, backwards: bool) -> list[str]:
    files = pickle.loads(path.read_bytes())
    order = range(len(files))
    found = {}
    for number in reversed(order) if backwards else order:
        found[number] = outcome(files[number], repair=True) + outcome(files[number], repair=False)
    return [found[number] for number in order]


@pytest.mark.parametrize("kind", sorted(set(_core.media()["image"]["formats"]) - {"dense_jpeg"}))
def test_damage_gives_the_same_result_for_any_memory_contents(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "files"
    path.write_bytes(pickle.dumps(damaged(kind)))
    runs = []
    for backwards, byte in enumerate(DIRT[1]):
        done = subprocess.run(
            [sys.executable, __file__, str(path), str(backwards)],
            env={**os.environ, "GLIBC_TUNABLES": DIRT[0].format(byte)},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # libjxl prints messages to it
            text=True,
            check=True,
        )
        runs.append(json.loads(done.stdout))
    differing = [number for number, (a, b) in enumerate(zip(*runs, strict=True)) if a != b]
    assert differing == []
    decoded = sum(not each.startswith("HR") for each in runs[0])
    assert decoded > 0, "the files say nothing about pixels"


@pytest.mark.parametrize("cut", [0.4, 0.6, 0.9])
def test_heif_that_ends_early_or_has_other_bytes_is_an_error(cut: float) -> None:
    """libheif returns the existing blocks, and for the others the previous contents of memory."""
    pytest.importorskip("pillow_heif").register_heif_opener()
    data = encoded(waves("RGB", 200, 120), "HEIF", quality=70)
    assert ours([{"image": data}]).image[0].shape == (3, 120, 200)
    broken = bytearray(data)
    begin = int(len(data) * cut)
    broken[begin : begin + 8] = bytes(8)
    with pytest.raises(hr.DataError, match=r"HR034[56]"):
        ours([{"image": bytes(broken)}])


if __name__ == "__main__":
    print(json.dumps(outcomes(Path(sys.argv[1]), sys.argv[2] == "1")))


def test_other_users_of_libde265_keep_its_default_allocator() -> None:
    """Our planes have user data; the library's own have none."""
    plugin = pytest.importorskip("pillow_heif")
    av = pytest.importorskip("av")
    plugin.register_heif_opener()
    assert outcome(encoded(waves("RGB", 64, 64), "HEIF", quality=60), repair=False).islower()
    encoder = av.CodecContext.create("libx265", "w")
    encoder.width, encoder.height, encoder.pix_fmt = 64, 64, "yuv420p"
    encoder.time_base = Fraction(1, 25)
    encoder.options = {"x265-params": "log-level=none:sao=1"}
    frame = av.VideoFrame.from_ndarray(np.asarray(waves("RGB", 64, 64)), "rgb24")
    packets = [*encoder.encode(frame.reformat(format="yuv420p")), *encoder.encode(None)]
    stream = b"".join(bytes(packet) for packet in packets)
    library = ctypes.CDLL("libde265.so.0")
    for name in ("new_decoder", "get_next_picture", "get_image_plane_user_data"):
        getattr(library, f"de265_{name}").restype = ctypes.c_void_p
    decoder = ctypes.c_void_p(library.de265_new_decoder())
    library.de265_push_data(decoder, stream, len(stream), ctypes.c_int64(0), None)
    library.de265_flush_data(decoder)
    for _ in range(20):  # a unit of the stream each
        assert library.de265_decode(decoder, ctypes.byref(ctypes.c_int())) == 0
    picture = ctypes.c_void_p(library.de265_get_next_picture(decoder))
    assert picture and library.de265_get_image_plane_user_data(picture, 0) is None
    library.de265_free_decoder(decoder)
