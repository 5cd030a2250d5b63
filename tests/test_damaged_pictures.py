# SPDX-License-Identifier: Apache-2.0
"""Promise: missing pixels of a damaged file are reported, and never made up.

Each test is named for what a user saw.
"""

from __future__ import annotations

import io
import json
import os
import struct
import subprocess
import sys
import tempfile
import warnings
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageOps

import headrace as hr
from headrace import transforms as T


def photo(width: int = 160, height: int = 128, **options: Any) -> bytes:
    rng = np.random.default_rng(5)
    small = rng.integers(0, 256, (height // 8, width // 8, 3), dtype=np.uint8)
    out = io.BytesIO()
    Image.fromarray(small).resize((width, height)).save(out, "JPEG", quality=90, **options)
    return out.getvalue()


def folder(path: Path, files: dict[str, bytes]) -> Path:
    path.mkdir()
    for name, data in files.items():
        (path / name).write_bytes(data)
    return path


def cut(data: bytes, share: float) -> bytes:
    return data[: int(len(data) * share)]


def run(*arguments: str, **more: Any) -> subprocess.CompletedProcess[str]:
    code = "from headrace.cli import main; main()"
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, **more)


def loaded(source: Any, steps: Any = (), **options: Any) -> hr.Loader:
    return hr.Loader(source, steps, **{"batch_size": 1, "threads": 1, "ragged": "list", **options})


def batches(loader: hr.Loader) -> list[Any]:
    return list(loader)


def pillow_refuses(data: bytes) -> bool:
    try:
        Image.open(io.BytesIO(data)).load()
    except OSError:
        return True
    return False


# Missing rows.


@pytest.mark.parametrize("options", [{}, {"progressive": True}, {"subsampling": 0}])
@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_a_truncated_jpeg_is_a_bad_record(
    tmp_path: Path, options: dict[str, Any], share: float
) -> None:
    data = cut(photo(**options), share)
    assert pillow_refuses(data)
    pictures = folder(tmp_path / "d", {"a.jpg": photo(), "b.jpg": data})
    with pytest.raises(hr.DataError, match="HR0385"):
        batches(loaded(pictures, batch_size=2))
    skipping = loaded(pictures, batch_size=2, on_error="skip")
    assert [len(batch.image) for batch in skipping] == [1]
    assert skipping.stats()["bad_records"] == 1
    with pytest.raises(hr.DataError, match="HR0385"):
        hr.open(pictures)[1]


def test_repair_delivers_libjpegs_pixels_and_warns_once(tmp_path: Path) -> None:
    data = cut(photo(), 0.5)
    pictures = folder(tmp_path / "d", {"a.jpg": data, "b.jpg": photo()})
    loader = loaded(pictures, damaged="repair")
    for epoch in range(2):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            images = [batch.image[0] for batch in loader]
        assert [str(w.message).split(" had")[0] for w in told] == [f"1 image of epoch {epoch}"]
    assert loader.stats()["repaired"] == 2
    from PIL import ImageFile

    ImageFile.LOAD_TRUNCATED_IMAGES = True
    try:
        expected = np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))
    finally:
        ImageFile.LOAD_TRUNCATED_IMAGES = False
    assert np.array_equal(images[0].transpose(1, 2, 0), expected)


def test_a_crop_of_intact_rows_is_delivered(tmp_path: Path) -> None:
    whole = photo(160, 320)
    pictures = folder(tmp_path / "d", {"a.jpg": cut(whole, 0.7)})
    steps = [T.CenterCrop((64, 160))]
    (batch,) = loaded(pictures, steps)
    expected = np.asarray(Image.open(io.BytesIO(whole)))[128:192]
    assert np.array_equal(batch.image[0].transpose(1, 2, 0), expected)


@pytest.mark.parametrize("level", ["fast", "dense", "none"])
def test_every_form_gives_the_same_verdict(tmp_path: Path, level: str) -> None:
    files = {f"{i}.jpg": cut(photo(160, 256), 0.3 + 0.1 * i) for i in range(8)}
    pictures = folder(tmp_path / "d", files)
    hr.pack(pictures, tmp_path / "p.hrpack", level)

    def verdicts(source: Any, **options: Any) -> list[int]:
        loader = loaded(
            source,
            [T.RandomCrop((96, 64))],
            batch_size=4,
            on_error="skip",
            seed=3,
            threads=2,
            error_budget=1.0,
            **options,
        )
        for _ in range(2):
            batches(loader)
        return sorted((bad["epoch"], bad["record"]) for bad in loader.quarantine)

    expected = verdicts(pictures, index=False)
    assert 0 < len(expected) < 16
    assert verdicts(tmp_path / "p.hrpack") == expected
    assert verdicts(pictures, index="auto") == expected
    assert verdicts(pictures, index="auto") == expected  # with the learned index


def test_a_truncated_image_is_judged_the_same_when_resident(tmp_path: Path) -> None:
    files = {f"{i}.jpg": photo(160, 256) for i in range(6)}
    files["6.jpg"] = cut(photo(160, 256), 0.6)
    pictures = folder(tmp_path / "d", files)

    def digest(resident: bool | str) -> list[Any]:
        options: dict[str, Any] = {"batch_size": 7, "on_error": "skip", "seed": 1, "threads": 2}
        steps = [T.RandomCrop((96, 64))]
        loader = loaded(pictures, steps, resident=resident, error_budget=1.0, **options)
        return [[batch.image.tobytes() for batch in loader] for _ in range(6)]

    assert digest("auto") == digest(False)
    with pytest.raises(hr.Error, match="record 6 lacks rows"):
        digest(True)


def test_damage_that_decoders_repair_is_reported(tmp_path: Path) -> None:
    data = bytearray(photo(restart_marker_blocks=4))
    del data[data.index(b"\xff\xd2") + 6 : data.index(b"\xff\xd3")]
    pictures = folder(tmp_path / "d", {"a.jpg": bytes(data)})
    loader = loaded(pictures)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        batches(loader)
    assert len(told) == 1 and "damage that the decoder repaired" in str(told[0].message)
    stepped = loaded(pictures, [lambda image: image])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        batches(stepped)
    assert stepped.stats()["repaired"] == loader.stats()["repaired"] == 1


def test_strict_and_repair_contradict_each_other(pictures: Path) -> None:
    with pytest.raises(hr.ConfigError, match="strict=True rejects"):
        loaded(pictures, strict=True, damaged="repair")


# Values that do not fit in eight bits.


def png16(values: np.ndarray[Any, Any]) -> bytes:
    out = io.BytesIO()
    Image.fromarray(values.astype(np.uint16)).save(out, "PNG")
    return out.getvalue()


def test_sixteen_bit_images_are_not_clipped_to_255(tmp_path: Path) -> None:
    values = np.arange(0, 65536, 128, dtype=np.uint16).reshape(16, 32)
    pictures = folder(tmp_path / "d", {"a.png": png16(values)})
    with pytest.raises(hr.Error, match=r"(?s)HR0386.*high_byte"):
        batches(loaded(pictures))
    for choice, expected in (("high_byte", values >> 8), ("clip", np.minimum(values, 255))):
        (batch,) = loaded(pictures, sixteen_bit=choice)
        assert np.array_equal(batch.image[0], np.broadcast_to(expected, (3, 16, 32)))


@pytest.mark.parametrize(
    "value",
    [
        Image.fromarray(np.full((4, 5), 300, np.int32)),
        {"mask": np.full((1, 4, 5), 0.5, np.float64)},
    ],
    ids=["I", "float64"],
)
def test_wide_images_from_python_are_not_clipped(value: Any) -> None:
    with pytest.raises(hr.ConfigError, match="HR0685"):
        hr.open([value])


@pytest.mark.parametrize(
    "value",
    [
        Image.fromarray(np.full((4, 5), 300, np.uint16)),
        Image.fromarray(np.full((4, 5), 0.5, np.float32)),
    ],
    ids=["I;16", "F"],
)
def test_wide_images_of_pillow_keep_their_values(value: Image.Image) -> None:
    (batch,) = hr.Loader(hr.open([value]), batch_size=1)
    assert np.array_equal(batch.image[0, 0], np.asarray(value))
    assert batch.image.dtype == np.asarray(value).dtype


def test_a_mask_of_wide_integers_does_not_wrap_around() -> None:
    mask = np.zeros((4, 5), np.int64)
    assert hr.open([{"mask": mask + 255}])[0]["mask"].max() == 255
    with pytest.raises(hr.ConfigError, match="HR0685"):
        hr.open([{"mask": mask + 300}])
    source = hr.open([{"mask": mask}, {"mask": mask + 300}, {"mask": mask}])
    loader = loaded(source, batch_size=3, on_error="skip")
    assert [len(batch.mask) for batch in loader] == [2]


# Formats without a codec.


def test_a_file_that_no_codec_reads_is_named(tmp_path: Path) -> None:
    pictures = folder(tmp_path / "d", {"a.jpg": photo(), "c.webp": b"8BPS" + bytes(24)})
    source = hr.open(pictures)
    with pytest.raises(hr.DataError, match=r"(?s)HR0340.*Photoshop document"):
        source[1]


def test_a_jpeg_without_a_marker_after_its_first_is_refused_as_in_pillow(tmp_path: Path) -> None:
    data = photo()
    pictures = folder(tmp_path / "d", {"a.jpg": data[:2] + b"\0" + data[2:]})
    with pytest.raises(OSError, match="cannot identify"):
        Image.open(pictures / "a.jpg")
    with pytest.raises(hr.DataError, match="signature of a JPEG"):
        hr.open(pictures)[0]


def test_one_unreadable_file_does_not_stop_a_folder() -> None:
    code = (
        "import os, sys, warnings, headrace as hr\n"
        "if os.geteuid() == 0: os.setuid(65534)\n"  # permissions do not bind root
        "with warnings.catch_warnings(record=True) as told:\n"
        "    warnings.simplefilter('always')\n"
        "    print(len(hr.open(sys.argv[1])), told[0].message)\n"
    )
    with tempfile.TemporaryDirectory() as root:
        os.chmod(root, 0o755)
        pictures = folder(Path(root) / "d", {"a.jpg": photo(), "notes": b"x" * 100})
        os.chmod(pictures / "notes", 0)
        command = [sys.executable, "-c", code, str(pictures)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("1 1 file in "), done.stderr
    assert "could not be read" in done.stdout


# Epochs without a batch.


def test_an_epoch_with_only_bad_records_is_an_error(tmp_path: Path) -> None:
    pictures = folder(tmp_path / "d", {f"{i}.jpg": b"no picture" for i in range(5)})
    loader = loaded(pictures, batch_size=2, on_error="skip")
    with pytest.raises(hr.DataError, match=r"(?s)HR0785.*all 5 records"):
        batches(loader)


def test_a_batch_larger_than_the_dataset_is_not_dropped_silently(pictures: Path) -> None:
    with pytest.raises(hr.ConfigError, match='last_batch="drop" drops every batch'):
        loaded(pictures, batch_size=10_000, last_batch="drop")


@pytest.mark.parametrize("to", ["tar", "folder", "pack"])
def test_convert_fails_if_a_record_is_not_an_image(tmp_path: Path, to: str) -> None:
    pictures = folder(tmp_path / "d", {"a.jpg": photo(), "b.jpg": b"<html>not found</html>"})
    done = run("convert", str(pictures), "-o", str(tmp_path / "out"), "--to", to, "--json")
    assert done.returncode == 3, done.stderr
    report = json.loads(done.stdout)
    assert report["unusable_count"] == 1
    assert report["unusable"][0]["record"] == 1
    said = run("convert", str(pictures), "-o", str(tmp_path / "out2"), "--to", to)
    assert said.returncode == 3 and "1 are not images" in said.stdout


# Scans, levels, orientation.


def test_scan_continues_after_four_decompression_bombs(tmp_path: Path) -> None:
    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    def bomb(side: int) -> bytes:
        pixels = zlib.compress(bytes(1 + side * 3) * side, 9)
        head = chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0))
        return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")

    files = {f"{i}.png": bomb(4000) for i in range(4)}
    files |= {"x.jpg": cut(photo(), 0.5), "y.png": bomb(6000), "z.jpg": photo()}
    pictures = folder(tmp_path / "d", files)
    script = (
        "import headrace as hr, sys\n"
        "from headrace.cli.scan import find_bad_records\n"
        "original = hr.Loader\n"
        "hr.Loader = lambda *a, **k: original(*a, memory_limit='192 MiB', **k)\n"
        'bad, _ = find_bad_records(hr.open(sys.argv[1]), {"threads": 2}, quiet=True)\n'
        "print([(entry['record'], entry['code']) for entry in bad])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(pictures)], capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "[(4, 'HR0385'), (5, 'HR0707')]", done.stderr


def test_an_unknown_simd_level_is_a_command_line_error(pictures: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "HEADRACE_SIMD": "banana"}
    for arguments in (
        ["scan", str(pictures)],
        ["info", str(pictures)],
        ["pack", str(pictures), "-o", str(tmp_path / "x.hrpack")],
        ["bench", str(pictures), "--epochs", "1"],
    ):
        done = run(*arguments, env=environment)
        assert done.returncode in (2, 4), (arguments, done.returncode, done.stderr)
        assert "HEADRACE_SIMD" in done.stderr and "banana" in done.stderr, done.stderr


@pytest.mark.parametrize("form", ["attribute", "element"])
@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_an_orientation_only_in_xmp_is_respected(tmp_path: Path, form: str, kind: str) -> None:
    said = (
        '<rdf:Description tiff:Orientation="6"/>'
        if form == "attribute"
        else "<tiff:Orientation>6</tiff:Orientation>"
    )
    packet = f"<x:xmpmeta>{said}</x:xmpmeta>".encode()
    picture = Image.open(io.BytesIO(photo(64, 48)))
    out = io.BytesIO()
    if kind == "PNG":
        from PIL.PngImagePlugin import PngInfo

        info = PngInfo()
        info.add_itxt("XML:com.adobe.xmp", packet.decode())
        picture.save(out, "PNG", pnginfo=info)
    else:
        picture.save(out, "JPEG", xmp=packet)
    name = f"a.{kind.lower()}"
    pictures = folder(tmp_path / "d", {name: out.getvalue()})
    expected = np.asarray(ImageOps.exif_transpose(Image.open(pictures / name)))
    assert expected.shape == (64, 48, 3)
    (batch,) = loaded(pictures, exif_orientation=True)
    assert np.array_equal(batch.image[0].transpose(1, 2, 0), expected)


def test_trace_works_with_bfloat16(pictures: Path) -> None:
    steps = [T.Resize((8, 8)), T.ToDtype("bfloat16", scale=True)]
    loader = loaded(pictures, steps)
    stages = loader.trace(0)
    last = stages[-1].values["image"]
    assert last.dtype == np.float32 and last.shape == (3, 8, 8)
    assert np.allclose(last, stages[-2].values["image"] / 255, atol=1 / 128)


def test_a_thin_image_resized_by_its_longer_edge_keeps_a_pixel(tmp_path: Path) -> None:
    out = io.BytesIO()
    Image.new("RGB", (300, 1), (9, 8, 7)).save(out, "PNG")
    pictures = folder(tmp_path / "d", {"a.png": out.getvalue()})
    (batch,) = loaded(pictures, [T.Resize(None, max_size=100)], ragged="list")
    assert batch.image[0].shape == (3, 1, 100)
