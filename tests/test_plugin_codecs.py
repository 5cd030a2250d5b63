# SPDX-License-Identifier: Apache-2.0
"""Image codecs of plug-ins: used like built-in ones, checked, and named in errors."""

from __future__ import annotations

import io
import itertools
import json
import struct
import subprocess
import sys
import tarfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from built_plugins import EXAMPLES, compiled, needs_compiler
from PIL import Image
from processes import run_command

import headrace as hr
from headrace import transforms as T

pytestmark = needs_compiler

CASES = Path(__file__).parent / "plugin_codec_cases.c"
_numbers = itertools.count()


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(EXAMPLES / "qoi.c", tmp_path_factory.mktemp("qoi") / "libqoi.so")


@pytest.fixture(scope="module")
def qoi(library: Path) -> Any:
    return hr.load_plugin(library)


def picture(number: int, mode: str = "RGB", size: tuple[int, int] = (37, 23)) -> Image.Image:
    """With runs, small and large differences, and colors that come again."""
    rng = np.random.default_rng(number)
    channels = len(mode)
    waves = np.add.outer(np.arange(size[1]) // 3, np.arange(size[0]) // 2)[:, :, None] * 3
    values = waves + rng.integers(0, 2, (size[1], size[0], channels)) * rng.integers(0, 40)
    values[: size[1] // 3] = rng.integers(0, 256, channels)
    values[-1:] = rng.integers(0, 256, (1, size[0], channels))
    return Image.fromarray(values.astype(np.uint8), mode)


def encoded(image: Image.Image) -> bytes:
    out = io.BytesIO()
    image.save(out, "QOI")
    return out.getvalue()


def case(folder: Path, **definitions: object) -> tuple[Any, bytes]:
    """The plug-in of plugin_codec_cases.c with these definitions, and the magic of its files."""
    name = f"r{next(_numbers):03}"
    given = {"PLUGIN": f'"{name}"', "SUFFIX": f'".{name}"', **definitions}
    flags = [f"-D{key}={value}" for key, value in given.items()]
    plugin = hr.load_plugin(compiled(CASES, folder / f"lib{name}.so", *flags))
    return plugin, name.encode()


def raw(magic: bytes, samples: np.ndarray[Any, Any], flags: int = 0) -> bytes:
    height, width, channels = samples.shape
    bits = 8 * samples.dtype.itemsize
    return magic + struct.pack("5B3x", width, height, channels, bits, flags) + samples.tobytes()


def samples(channels: int, dtype: str = "uint8") -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(channels)
    if dtype == "float32":
        return rng.normal(size=(19, 31, channels)).astype(np.float32)
    return rng.integers(0, np.iinfo(dtype).max + 1, (19, 31, channels)).astype(dtype)


@pytest.mark.parametrize("mode", ["RGB", "RGBA"])
@pytest.mark.parametrize("size", [(1, 1), (37, 23), (200, 150)])
def test_pixels_equal_pillows(qoi: Any, mode: str, size: tuple[int, int]) -> None:
    for number in range(4):
        image = picture(number, mode, size)
        data = encoded(image)
        assert np.array_equal(hr.decode(data, mode="stored"), np.asarray(image))
        for wanted in ("RGB", "L", "RGBA"):
            expected = np.atleast_3d(np.asarray(Image.open(io.BytesIO(data)).convert(wanted)))
            assert np.array_equal(hr.decode(data, mode=wanted).reshape(expected.shape), expected)


def test_windows_are_slices(qoi: Any) -> None:
    image = picture(3)
    got = hr.decode(encoded(image), window=(5, 7, 11, 13))
    assert np.array_equal(got, np.asarray(image)[5:16, 7:20])


def test_folders_tars_lists_and_packs_use_the_codec(qoi: Any, tmp_path: Path) -> None:
    images = [picture(i) for i in range(6)]
    folder = tmp_path / "train"
    for i, image in enumerate(images):
        path = folder / f"{'ab'[i % 2]}" / f"{i}.qoi"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encoded(image))
    with tarfile.open(tmp_path / "train.tar", "w") as tar:
        for i, image in enumerate(images):
            for suffix, data in (("qoi", encoded(image)), ("cls", b"1")):
                info = tarfile.TarInfo(f"{i}.{suffix}")
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    source = hr.open(folder)
    assert len(source) == 6 and source.classes == ["a", "b"]
    hr.pack(source, tmp_path / "train.pack")
    paths = [str(folder / "ab"[i % 2] / f"{i}.qoi") for i in range(6)]
    by_class = [images[i] for i in (0, 2, 4, 1, 3, 5)]
    for opened, expected in (
        (source, by_class),
        (hr.open(tmp_path / "train.tar"), images),
        (hr.open(tmp_path / "train.pack"), by_class),
        (hr.records(image=paths), images),
        (hr.open([{"image": encoded(image)} for image in images]), images),
    ):
        (batch,) = hr.Loader(opened, [], batch_size=6, ragged="list")
        for got, image in zip(batch.image, expected, strict=True):
            assert np.array_equal(np.asarray(got).transpose(1, 2, 0), np.asarray(image))


def test_the_command_line_uses_the_codec(library: Path, tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    for i in range(3):
        (tmp_path / "images" / f"{i}.qoi").write_bytes(encoded(picture(i)))
    option = ["--plugin", str(library)]
    listed = run_command(*option, "formats", "qoi", "--json")
    assert json.loads(listed.stdout)["suffixes"] == [".qoi"]
    assert "From the plug-in qoi 1.0." in json.loads(listed.stdout)["doc"]
    to = ("-o", tmp_path / "out.tar", "--to", "tar")
    done = run_command(*option, "convert", tmp_path / "images", *to)
    assert done.returncode == 0, done.stderr
    with tarfile.open(tmp_path / "out.tar") as tar:
        assert sum(name.endswith(".qoi") for name in tar.getnames()) == 3
    absent = run_command("--plugin", tmp_path / "no.so", "formats")
    assert absent.returncode == 2 and "HR0576" in absent.stderr


def test_damage_is_an_error_of_its_record(qoi: Any) -> None:
    data = encoded(picture(1))
    records = [{"image": each} for each in (data, data[:40], data[:-8], data[:9], data)]
    with pytest.raises(hr.DataError, match=r"HR0345(.|\n)*no valid qoi image: it ends in row") as e:
        list(hr.Loader(hr.open(records), [], batch_size=1, threads=1, ragged="list"))
    assert "plug-in qoi" in str(e.value) and "record 1" in str(e.value)
    kept = hr.Loader(hr.open(records), [], batch_size=1, on_error="skip", ragged="list")
    assert sum(len(batch.image) for batch in kept) == 2


def test_a_header_of_too_many_pixels_allocates_nothing(qoi: Any) -> None:
    bomb = b"qoif" + struct.pack(">II2B", 1 << 30, 1 << 30, 4, 0) + bytes(8)
    with pytest.raises(hr.Error, match="HR0310"):
        hr.decode(bomb)


@pytest.mark.parametrize("flags", ["0", "HEADRACE_WINDOWS"])
@pytest.mark.parametrize("check", [False, True])
def test_all_channel_counts_and_dtypes_are_decoded(tmp_path: Path, flags: str, check: bool) -> None:
    plugin, magic = case(tmp_path, FLAGS=flags)
    if check:
        hr.load_plugin(plugin.path, check=True)
    window = (3, 5, 7, 11)
    for channels, dtype in itertools.product((1, 2, 3, 4, 5, 16), ("uint8", "uint16", "float32")):
        values = samples(channels, dtype)
        data = raw(magic, values)
        assert np.array_equal(hr.decode(data, mode="stored").reshape(values.shape), values)
        part = hr.decode(data, mode="stored", window=window)
        assert np.array_equal(part.reshape(7, 11, channels), values[3:10, 5:16])
        if channels > 4 or dtype == "float32":
            with pytest.raises(hr.UnsupportedError, match="HR0347"):
                hr.decode(data)
        elif dtype == "uint16" and channels == 1:
            with pytest.raises(hr.UnsupportedError, match="HR0386"):
                hr.decode(data)
        else:
            high = values if dtype == "uint8" else (values >> 8).astype(np.uint8)
            colors = high[:, :, :1].repeat(3, 2) if channels < 3 else high[:, :, :3]
            assert np.array_equal(hr.decode(data), colors)
            opaque = np.full((19, 31, 1), 255, np.uint8)
            alpha = high[:, :, -1:] if channels in (2, 4) else opaque
            assert np.array_equal(hr.decode(data, mode="RGBA"), np.concatenate([colors, alpha], 2))


def test_inks_and_channels_without_colors(tmp_path: Path) -> None:
    _, magic = case(tmp_path)
    values = samples(4)
    image = Image.frombytes("CMYK", (31, 19), values.tobytes())
    assert np.array_equal(hr.decode(raw(magic, values, 1)), np.asarray(image.convert("RGB")))
    with pytest.raises(hr.UnsupportedError, match="4 uint8 channels"):
        hr.decode(raw(magic, values, 2))
    assert np.array_equal(hr.decode(raw(magic, values, 2), mode="stored"), values)


def test_many_threads_decode_their_windows(tmp_path: Path) -> None:
    _, magic = case(tmp_path, FLAGS="HEADRACE_WINDOWS")
    values = [samples(3) + np.uint8(i) for i in range(64)]
    records = [{"image": raw(magic, v), "second": v.transpose(2, 0, 1)} for v in values]
    source = hr.open(records, kinds={"second": "image"})
    steps = [T.RandomCrop((9, 14)), T.RandomHorizontalFlip()]
    for batch in hr.Loader(source, steps, batch_size=16, threads=4, shuffle=True, seed=3):
        assert np.array_equal(np.asarray(batch.image), np.asarray(batch.second))


@pytest.mark.parametrize(
    ("lie", "message"),
    [
        ({"HEADER": "no_width"}, "an image of 0 x 19 pixels"),
        ({"HEADER": "minus_height"}, "an image of 31 x -5 pixels"),
        ({"HEADER": "many_channels"}, "17 channels"),
        ({"HEADER": "other_dtype"}, "a dtype other than"),
        ({"HEADER": "many_bits"}, "9 bits for samples of 8"),
        ({"HEADER": "upside_down"}, "the orientation 9"),
        ({"HEADER": "new_flags"}, "unknown flags"),
        ({"HEADER": "cmyk_of_three"}, "HEADRACE_CMYK for an image without"),
        ({"HEADER": "hungry"}, "18446744073709551615 working_bytes"),
        ({"HEADER": "growing"}, "two sizes for one file"),
        ({"HEADER": "header_status"}, r"read_header\(\) returned the status 77"),
        ({"DECODE": "ends_the_run"}, "the dongle was removed"),
        ({"DECODE": "writes_past"}, r"decode\(\) wrote past its output of 1767 bytes"),
        ({"CREATE": "no_create"}, "no license"),
    ],
)
def test_contract_violations_end_the_run_and_name_the_plugin(
    tmp_path: Path, lie: dict[str, str], message: str
) -> None:
    plugin, magic = case(tmp_path, **lie)
    source = hr.open([{"image": raw(magic, samples(3))}] * 4)
    with pytest.raises(hr.ConfigError, match=f"HR057[35](.|\n)*{message}") as error:
        list(hr.Loader(source, [], batch_size=2, on_error="skip", ragged="list"))
    assert f"plug-in {plugin.name}" in str(error.value)


def test_a_huge_header_is_an_error_of_its_record(tmp_path: Path) -> None:
    _, magic = case(tmp_path, HEADER="huge")
    with pytest.raises(hr.Error, match="HR0310"):
        hr.decode(raw(magic, samples(3)))


def test_a_check_finds_unwritten_rows(tmp_path: Path) -> None:
    plugin, magic = case(tmp_path, DECODE="leaves_a_row")
    hr.load_plugin(plugin.path, check=True)
    with pytest.raises(hr.ConfigError, match="left 93 of 1767 bytes of its output unwritten"):
        hr.decode(raw(magic, samples(3)))


@pytest.mark.parametrize(
    ("crash", "call"), [("CREATE=crash_create", ""), ("DECODE=crashes", "decode() of the codec")]
)
def test_a_crash_is_named(tmp_path: Path, crash: str, call: str) -> None:
    library = compiled(CASES, tmp_path / "libboom.so", '-DPLUGIN="boom"', f"-D{crash}")
    code = (
        "import sys, headrace as hr\n"
        "hr.load_plugin(sys.argv[1], check=True)\n"
        "hr.decode(b'boom' + bytes([2, 1, 1, 8]) + bytes(6))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(library)], capture_output=True, text=True, check=False
    )
    assert done.returncode == -6
    assert f"Headrace: SIGABRT in {call or 'create() of the codec'} boom" in done.stderr


def signed(text: str, more: str = "") -> dict[str, str]:
    return {"SIGNATURE": f'{{.bytes=(const uint8_t*)"{text}",.length=4{more}}}'}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"PLUGIN": '"png"'}, 'there already is a codec "png"'),
        ({"PLUGIN": '"a-b"'}, 'the codec "a-b" must be named by a-z, 0-9 and _'),
        ({"SUFFIX": '"raw"'}, r'the suffix "raw" must be \. and 1 to 7'),
        ({"SUFFIX": '".RAW"'}, r'the suffix ".RAW" must be'),
        ({"SUFFIX": '".mp3"'}, r'the suffix ".mp3" is one of audio'),
        ({"FLAGS": "64"}, "flags has unknown bits"),
        ({"DECODE": "NULL"}, "decode is NULL"),
        (signed(r"\x89PNG\r\n\x1a\n", "+4"), "it has the same signature as the codec png"),
        (signed("fLaC"), "it has the same signature as audio clips"),
        (signed("a", "-3"), "has 8 bits, but must have at least 16"),
        (signed("abcd", ",.offset=13"), "first 16"),
        (signed("abcd", ",.offset=4294967295u"), "first 16"),
        ({"SIGNATURE": "{.length=4}"}, "a signature's bytes are NULL"),
    ],
)
def test_invalid_codecs_are_refused(tmp_path: Path, change: dict[str, str], message: str) -> None:
    with pytest.raises(hr.ConfigError, match=f"HR0572(.|\n)*{message}"):
        case(tmp_path, **change)


def test_plugins_are_loaded_while_images_are_decoded(tmp_path: Path) -> None:
    out = io.BytesIO()
    picture(1).save(out, "PNG")
    data, expected = out.getvalue(), np.asarray(picture(1))
    stop = threading.Event()

    def decode() -> int:
        count = 0
        while not stop.is_set() or count == 0:
            assert np.array_equal(hr.decode(data), expected)
            count += 1
        return count

    with ThreadPoolExecutor(3) as pool:
        running = [pool.submit(decode) for _ in range(3)]
        try:
            for _ in range(5):
                _, magic = case(tmp_path)
                assert np.array_equal(hr.decode(raw(magic, samples(3))), samples(3))
        finally:
            stop.set()
        assert all(each.result() > 0 for each in running)


def test_two_plugins_of_one_signature_are_refused(tmp_path: Path) -> None:
    _, magic = case(tmp_path)
    with pytest.raises(hr.ConfigError, match=f"the same signature as the codec {magic.decode()}"):
        case(tmp_path, MAGIC=f'"{magic.decode()}"')


def test_masks_of_a_signature_count_bits(tmp_path: Path) -> None:
    case(tmp_path, **signed("?k?g", r',.mask=(const uint8_t*)"\x00\xff\x00\xff"'))
    values = samples(3)
    assert np.array_equal(hr.decode(raw(b"akxg", values)), values)
    with pytest.raises(hr.DataError, match="HR0340"):
        hr.decode(raw(b"akxh", values))


def test_a_plugin_lists_its_codecs(qoi: Any) -> None:
    assert qoi.codecs == ("qoi",) and qoi.transforms == ()
    assert repr(qoi) == "<plug-in qoi 1.0: qoi>"
