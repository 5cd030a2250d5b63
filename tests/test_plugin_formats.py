# SPDX-License-Identifier: Apache-2.0
"""Formats of plug-ins: opened by hr.open from any storage, and their claims about records are
checked."""

from __future__ import annotations

import io
import itertools
import json
import struct
import subprocess
import sys
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

CASES = Path(__file__).parent / "plugin_format_cases.c"
_numbers = itertools.count()
WORDS = ["", "a", "bc", "day", "seven12", "x", "yz"]


def records(words: list[str] = WORDS) -> bytes:
    each = [bytes([len(word)]) + word.encode().ljust(7, b"\x2a") for word in words]
    return b"".join(each)


def case(folder: Path, **definitions: object) -> tuple[Any, str]:
    """The plug-in of plugin_format_cases.c, and a file of its format."""
    name = f"words_{next(_numbers):03}"
    given = {"PLUGIN": f'"{name}"', **definitions}
    flags = [f"-D{key}={value}" for key, value in given.items()]
    plugin = hr.load_plugin(compiled(CASES, folder / f"lib{name}.so", *flags))
    (folder / f"{name}.dat").write_bytes(name.encode() + records())
    return plugin, str(folder / f"{name}.dat")


def words_of(source: Any, **options: Any) -> list[str]:
    loader = hr.Loader(source, [], batch_size=3, fields="word", **options)
    return [word for batch in loader for word in batch.word]


@pytest.mark.parametrize("check", [False, True])
def test_fields_of_records_are_read(tmp_path: Path, check: bool) -> None:
    plugin, path = case(tmp_path)
    if check:
        hr.load_plugin(plugin.path, check=True)
    source = hr.open(path)
    assert len(source) == 7 and plugin.formats[0] in repr(source)
    for i, word in enumerate(WORDS):
        record = source[i]
        assert record["word"] == word
        assert np.array_equal(record["rest"], np.full(7 - len(word), 42, np.uint8))
        assert record["twice"].dtype == np.int32 and record["twice"].tolist() == [2 * len(word), i]
        assert record["length"] == len(word)
    assert source.column("length").tolist() == [len(word) for word in WORDS]
    points = hr.open(path, kinds={"twice": "keypoints"})
    assert "twice keypoints" in repr(points) and points[1]["twice"].tolist() == [2, 1]
    for threads in (1, 4):
        assert words_of(source, threads=threads) == WORDS
    shuffled = hr.Loader(source, [], batch_size=1, fields="word", shuffle=True, seed=1)
    assert sorted(word for batch in shuffled for word in batch.word) == sorted(WORDS)


def test_arguments_are_passed_and_documented(tmp_path: Path) -> None:
    plugin, path = case(tmp_path)
    (name,) = plugin.formats
    function = getattr(plugin, name)
    assert words_of(function(path, skip=2)) == WORDS[2:]
    assert words_of(hr.open(path, format=name, skip=6)) == WORDS[6:]
    assert "Records to leave out." in function.__doc__
    assert f"From the plug-in {name} 1.0." in function.__doc__
    with pytest.raises(hr.ConfigError, match="HR0104"):
        hr.open(path, skip=10)
    assert hr.open(path).fingerprint != hr.open(path, skip=1).fingerprint


def test_folders_and_other_storage(tmp_path: Path) -> None:
    plugin, path = case(tmp_path)
    name = plugin.formats[0]
    folder = tmp_path / f"folder-of-{name}"
    folder.mkdir()
    for number in range(3):
        (folder / f"{number}.dat").write_bytes(name.encode() + records(WORDS[number:]))
    assert words_of(hr.open(folder)) == [*WORDS, *WORDS[1:], *WORDS[2:]]
    storage = compiled(EXAMPLES / "split.c", tmp_path / "libsplit.so")
    hr.load_plugin(storage)
    data = Path(path).read_bytes()
    (tmp_path / "parts.000").write_bytes(data[:19])
    (tmp_path / "parts.001").write_bytes(data[19:])
    assert words_of(hr.open(f"split://{tmp_path}/parts")) == WORDS


def test_damage_is_an_error_of_its_record(tmp_path: Path) -> None:
    plugin, path = case(tmp_path)
    data = Path(path).read_bytes()
    begin = len(plugin.formats[0])
    Path(path).write_bytes(data[: begin + 8] + b"\x63" + data[begin + 9 :] + b"\x01")
    source = hr.open(path)
    assert len(source) == 8
    with pytest.raises(hr.DataError, match=f"HR0581(.|\n)*a word of 99(.|\n)*{path}"):
        words_of(source)
    assert words_of(source, on_error="skip") == ["", *WORDS[2:]]


@pytest.mark.parametrize(
    ("lie", "message"),
    [
        ({"OPEN": "far_record"}, "the record 7 with 8 bytes from 1000 on"),
        ({"OPEN": "huge_record"}, "a record is at byte 18446744073709551615"),
        ({"OPEN": "same_column"}, 'two columns are called "word"'),
        ({"OPEN": "unnamed"}, 'a column is called "a b"'),
        ({"OPEN": "other_kind"}, 'the column "kind" has the kind 3'),
        ({"OPEN": "many_axes"}, 'the column "shape" has an invalid dtype or shape'),
        ({"OPEN": "nothing"}, "added no column or no file"),
        ({"OPEN": "gets_no_status"}, r"HR0575(.|\n)*get_status\(\) was called without a path"),
        ({"OPEN": "lists_nothing"}, r"HR0575(.|\n)*list\(\) was called without a path"),
        ({"OPEN": "reads_nothing"}, r"HR0575(.|\n)*read\(\) was called without a path"),
        ({"OPEN": "fails"}, "HR0575(.|\n)*no license"),
        ({"OPEN": "damaged"}, "HR0582(.|\n)*its table is damaged"),
        ({"OPEN": "rejects"}, "HR0573(.|\n)*skip is too large"),
        ({"PARSE": "beyond"}, '100 bytes of the field "word" that are neither in the record'),
        ({"PARSE": "before"}, "neither in the record"),
        ({"PARSE": "elsewhere"}, "neither in the record"),
        ({"PARSE": "null_data"}, "neither in the record"),
        ({"PARSE": "endless"}, "neither in the record"),
        ({"PARSE": "other_shape"}, 'an invalid shape of the field "twice"'),
        ({"PARSE": "more_than_shape"}, '7 bytes for the field "rest", whose shape has 8'),
        ({"PARSE": "negative_shape"}, 'an invalid shape of the field "rest"'),
        ({"PARSE": "writes_past"}, 'wrote past the memory of the field "twice"'),
        ({"PARSE": "other_cell"}, "allocates memory for the cell 9"),
        ({"PARSE": "stops"}, "HR0575(.|\n)*the key has expired"),
    ],
)
def test_contract_violations_are_errors_that_name_the_plugin(
    tmp_path: Path, lie: dict[str, str], message: str
) -> None:
    plugin, path = case(tmp_path, **lie)
    with pytest.raises(hr.ConfigError, match=message) as error:
        source = hr.open(path)
        list(hr.Loader(source, [], batch_size=1, on_error="skip", ragged="list"))
    assert f"plug-in {plugin.name}" in str(error.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    _, path = case(tmp_path, OPEN="missing_file")
    with pytest.raises(hr.StorageError, match=r"HR0201(.|\n)*/nothing/there"):
        hr.open(path)


def test_a_read_error_is_reported_as_a_storage_error(tmp_path: Path) -> None:
    _, path = case(tmp_path, OPEN="reads_far")
    with pytest.raises(hr.DataError, match=f"HR0205(.|\n)*{path}"):
        hr.open(path)


class Interrupted:
    """Local files with fsspec's interface, whose user presses Ctrl-C when a path that ends with
    ".more" is requested."""

    protocol = "interrupted"

    def _strip_protocol(self, path: str) -> str:
        return path

    def invalidate_cache(self, path: str) -> None:
        pass

    def info(self, path: str) -> dict[str, Any]:
        if path.endswith(".more"):
            raise KeyboardInterrupt
        return {"type": "file", "size": Path(path).stat().st_size, "mtime": 1.0}

    def cat_file(self, path: str, start: int | None, end: int | None) -> bytes:
        return Path(path).read_bytes()[start:end]


@pytest.mark.parametrize("call", ["gets_status_more", "lists_more", "reads_more"])
def test_an_interrupt_while_opening_is_raised(tmp_path: Path, call: str) -> None:
    plugin, path = case(tmp_path, OPEN=call)
    with pytest.raises(KeyboardInterrupt):
        hr.open(path, format=plugin.formats[0], filesystem=Interrupted())


@pytest.mark.parametrize("size", [2**64 - 1, 2**64 - 64, 2**63, 2**62])
def test_a_field_larger_than_memory_is_refused(tmp_path: Path, size: int) -> None:
    _, path = case(tmp_path, PARSE="allocates", BYTES=f"{size}u")
    with pytest.raises(hr.ResourceLimitError, match=f'HR0411.*the field "twice" has {size} bytes'):
        hr.open(path)[1]


def test_a_field_larger_than_the_limit_is_refused(tmp_path: Path) -> None:
    _, path = case(tmp_path, PARSE="allocates", BYTES=1 << 28)
    source = hr.open(path)
    loader = hr.Loader(source, [], batch_size=1, memory_limit="64 MiB", ragged="list")
    message = f'HR0411.*the field "twice" has {1 << 28} bytes, but the limit is [0-9,]+'
    with pytest.raises(hr.ResourceLimitError, match=f"{message}(.|\n)*record 0"):
        next(iter(loader))


def test_a_check_finds_a_changed_record(tmp_path: Path) -> None:
    plugin, path = case(tmp_path, PARSE="no_utf8")
    hr.load_plugin(plugin.path, check=True)
    with pytest.raises(hr.ConfigError, match=r"parse\(\) changed its input"):
        hr.open(path)[1]


@pytest.mark.parametrize(
    ("crash", "call"),
    [("RECOGNIZES=crashes", "recognizes()"), ("PARSE=parse_crashes", "parse()")],
)
def test_a_crash_is_named(tmp_path: Path, crash: str, call: str) -> None:
    library = compiled(CASES, tmp_path / "libboom.so", '-DPLUGIN="boom"', f"-D{crash}")
    (tmp_path / "a.dat").write_bytes(b"boom" + records())
    code = (
        "import sys, headrace as hr\n"
        "hr.load_plugin(sys.argv[1], check=True)\n"
        "hr.open(sys.argv[2])[0]"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(library), str(tmp_path / "a.dat")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == -6
    assert f"Headrace: SIGABRT in {call} of the format boom" in done.stderr


def test_built_in_formats_are_tried_first(tmp_path: Path) -> None:
    """Otherwise a plug-in that recognizes every path would open those of other formats."""
    flags = ['-DPLUGIN="greedy"', "-DRECOGNIZES=everything"]
    library = compiled(CASES, tmp_path / "libgreedy.so", *flags)
    (tmp_path / "files.csv").write_text("image,label\na.png,1\n")
    Image.new("RGB", (3, 2)).save(tmp_path / "a.png")
    np.save(tmp_path / "numbers.npy", np.arange(6))
    (tmp_path / "unknown.xyz").write_bytes(b"greedy" + records())
    code = (
        "import sys, headrace as hr\n"
        "hr.load_plugin(sys.argv[1])\n"
        "print(*(repr(hr.open(path)).split()[1] for path in sys.argv[2:]))"
    )
    paths = [str(tmp_path / name) for name in ("numbers.npy", "files.csv", "unknown.xyz")]
    done = subprocess.run(
        [sys.executable, "-c", code, str(library), *paths], capture_output=True, text=True
    )
    assert done.stdout == "npy list greedy\n", done.stderr


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"FORMAT": '"tfrecord"'}, 'there already is a format "tfrecord"'),
        ({"FORMAT": '"Words"'}, "must be named like a function"),
        ({"PARSE": "NULL"}, "parse is NULL"),
        ({"RECOGNIZES": "NULL"}, "recognizes is NULL"),
        ({"PARAM": '"kinds"'}, 'its parameter "kinds" is one of hr.open'),
    ],
)
def test_invalid_formats_are_refused(tmp_path: Path, change: dict[str, str], message: str) -> None:
    with pytest.raises(hr.ConfigError, match=f"HR0572(.|\n)*{message}"):
        case(tmp_path, **change)


def frames(images: list[bytes]) -> bytes:
    parts = [struct.pack("<i", 10 - i) + image for i, image in enumerate(images)]
    ends = np.cumsum([16 + 8 * len(parts) + len(parts[0]), *map(len, parts[1:])])
    table = ends.astype("<u8").tobytes()
    return b"FRAMES1\n" + struct.pack("<Q", len(parts)) + table + b"".join(parts)


def test_the_example_reads_images_and_labels(tmp_path: Path) -> None:
    library = compiled(EXAMPLES / "frames.c", tmp_path / "libframes.so")
    hr.load_plugin(library, check=True)
    rng = np.random.default_rng(0)
    pixels = [rng.integers(0, 256, (20, 30, 3), dtype=np.uint8) for _ in range(12)]
    encoded = []
    for each in pixels:
        out = io.BytesIO()
        Image.fromarray(each).save(out, "PNG")
        encoded.append(out.getvalue())
    path = tmp_path / "train.frames"
    path.write_bytes(frames(encoded))
    source = hr.open(path)
    for _ in range(2):
        loader = hr.Loader(source, [T.CenterCrop((20, 30))], batch_size=4, shuffle=True, seed=2)
        for batch in loader:
            for image, label in zip(batch.image, batch.label, strict=True):
                expected = pixels[10 - int(label)].transpose(2, 0, 1)
                assert np.array_equal(np.asarray(image), expected)
    hr.pack(source, tmp_path / "train.pack")
    assert np.array_equal(hr.open(tmp_path / "train.pack")[3]["image"], source[3]["image"])
    info = run_command("--plugin", library, "info", path, "--json")
    assert json.loads(info.stdout)["records"] == 12, info.stderr
    listed = run_command("--plugin", library, "formats", "frames")
    assert "From the plug-in frames 1.0." in listed.stdout
    path.write_bytes(b"FRAMES1\n" + struct.pack("<Q", 1 << 60))
    with pytest.raises(hr.ConfigError, match=r"HR0582(.|\n)*more records than fit"):
        hr.open(path)
