# SPDX-License-Identifier: Apache-2.0
"""Storage of plug-ins: its paths work wherever local ones do, and what it returns is checked."""

from __future__ import annotations

import io
import itertools
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from built_plugins import EXAMPLES, compiled, needs_compiler
from PIL import Image

import headrace as hr
from headrace import transforms as T

pytestmark = needs_compiler

CASES = Path(__file__).parent / "plugin_storage_cases.c"
_numbers = itertools.count()


def image(number: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(number).integers(0, 256, (3, 12, 17), dtype=np.uint8)


def png(number: int) -> bytes:
    out = io.BytesIO()
    Image.fromarray(image(number).transpose(1, 2, 0)).save(out, "PNG")
    return out.getvalue()


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """train/a/0.png ... train/b/7.png, train.tar, train.csv, and train.pack."""
    root = tmp_path_factory.mktemp("data")
    for number in range(8):
        path = root / "train" / "ab"[number // 4] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(png(number))
    with tarfile.open(root / "train.tar", "w") as tar:
        for number in range(8):
            info = tarfile.TarInfo(f"{number}.png")
            info.size = len(png(number))
            tar.addfile(info, io.BytesIO(png(number)))
    rows = [f"train/{'ab'[n // 4]}/{n}.png,{n}\n" for n in range(8)]
    (root / "train.csv").write_text("image,label\n" + "".join(rows))
    hr.pack(hr.open(root / "train"), root / "train.pack")
    return root


def storage(root: Path, folder: Path, **definitions: object) -> tuple[Any, str]:
    """The plug-in of plugin_storage_cases.c, and how its paths begin."""
    name = f"mine{next(_numbers)}"
    given = {"PLUGIN": f'"{name}"', "SCHEME": f'"{name}"', "ROOT": f'"{root}"', **definitions}
    flags = [f"-D{key}={value}" for key, value in given.items()]
    plugin = hr.load_plugin(compiled(CASES, folder / f"lib{name}.so", *flags))
    return plugin, f"{name}://"


def images_of(source: Any, **options: Any) -> list[np.ndarray[Any, Any]]:
    loader = hr.Loader(source, [], batch_size=3, ragged="list", **options)
    return [np.array(each) for batch in loader for each in batch.image]


def opened(begin: str) -> dict[str, Any]:
    paths = [f"{begin}train/{'ab'[n // 4]}/{n}.png" for n in range(8)]
    return {
        "folder": hr.open(f"{begin}train"),
        "tar": hr.open(f"{begin}train.tar"),
        "manifest": hr.open(f"{begin}train.csv"),
        "pack": hr.open(f"{begin}train.pack"),
        "records": hr.records(image=paths),
        "pattern": hr.open(f"{begin}*.tar"),
    }


@pytest.mark.parametrize("read", ["read_all", "read_few", "read_late"])
def test_folders_tars_manifests_and_packs_are_read(data: Path, tmp_path: Path, read: str) -> None:
    plugin, begin = storage(data, tmp_path, READ=read)
    assert plugin.storages == (begin.removesuffix("://"),)
    for name, source in opened(begin).items():
        for threads in (1, 4):
            got = images_of(source, threads=threads)
            assert len(got) == 8, name
            for number, each in enumerate(got):
                assert np.array_equal(each, image(number)), (name, number)
    assert hr.open(f"{begin}train").classes == ["a", "b"]
    assert np.array_equal(hr.open(f"{begin}train.csv").column("label"), np.arange(8))


def test_shuffled_epochs_read_by_many_threads(data: Path, tmp_path: Path) -> None:
    _, begin = storage(data, tmp_path, READ="read_late")
    steps = [T.RandomCrop((5, 5))]
    for source, local in (("train", "train"), ("train.tar", "train.tar")):
        loaders = [
            hr.Loader(hr.open(path), steps, batch_size=2, threads=3, shuffle=True, seed=4)
            for path in (begin + source, data / local)
        ]
        for _ in range(3):
            for theirs, ours in zip(*loaders, strict=True):
                assert np.array_equal(np.asarray(theirs.image), np.asarray(ours.image))


def test_temporary_errors_are_retried(data: Path, tmp_path: Path) -> None:
    _, begin = storage(data, tmp_path, READ="third_time")
    got = images_of(hr.records(image=[f"{begin}train/a/{n}.png" for n in range(4)]))
    assert all(np.array_equal(each, image(n)) for n, each in enumerate(got))


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        ({"READ": "never"}, hr.StorageError, "HR0204(.|\n)*could not read it: 503 slow down"),
        ({"READ": "never"}, hr.StorageError, "tried 4 times"),
        ({"READ": "forbidden"}, hr.StorageError, "HR0202(.|\n)*403 forbidden"),
        ({"READ": "fails"}, hr.StorageError, "HR0204(.|\n)*the license has expired"),
        ({"READ": "bad_record"}, hr.DataError, "HR0574(.|\n)*the checksum differs"),
        ({"READ": "unknown_code"}, hr.ConfigError, "HR0575(.|\n)*returned the status 77"),
        ({"READ": "says_more"}, hr.ConfigError, "HR0575(.|\n)*reported that it wrote"),
        ({"STATUS": "too_long"}, hr.DataError, "HR0205(.|\n)*expected"),
        ({"STATUS": "endless"}, hr.ConfigError, "HR0575(.|\n)*a size of 18446744073709551615"),
        ({"STATUS": "other_kind"}, hr.ConfigError, "HR0575(.|\n)*the kind 9"),
        ({"CREATE": "refuses"}, hr.ConfigError, "HR0573(.|\n)*no credentials"),
    ],
)
def test_errors_name_path_and_plugin(
    data: Path, tmp_path: Path, change: dict[str, str], kind: Any, message: str
) -> None:
    plugin, begin = storage(data, tmp_path, **change)
    with pytest.raises(kind, match=message) as error:
        images_of(hr.records(image=[f"{begin}train/a/0.png"]), threads=1)
    if error.value.code in ("HR0573", "HR0574", "HR0575"):
        assert f"plug-in {plugin.name}" in str(error.value)
    if error.value.code != "HR0573":
        assert f"{begin}train/a/0.png" in str(error.value)


def test_a_missing_file_is_an_error_of_its_record(data: Path, tmp_path: Path) -> None:
    _, begin = storage(data, tmp_path)
    paths = [f"{begin}train/a/{n}.png" for n in (0, 9, 1)]
    with pytest.raises(hr.StorageError, match=r"HR0201(.|\n)*train/a/9\.png"):
        images_of(hr.records(image=paths))
    kept = images_of(hr.records(image=paths), on_error="skip")
    assert len(kept) == 2
    with pytest.raises(hr.Error, match="HR0402"):
        hr.open(f"{begin}valid")


def test_a_changed_file_is_an_error(data: Path, tmp_path: Path) -> None:
    _, begin = storage(data, tmp_path, STATUS="changing")
    with pytest.raises(hr.Error, match="HR0208"):
        images_of(hr.open(f"{begin}train.tar"))


@pytest.mark.parametrize(
    ("lister", "entry"),
    [("with_slash", "../a"), ("parent", r"\.\."), ("null_name", ""), ("no_kind", "of the kind 0")],
)
def test_invalid_entries_are_refused(data: Path, tmp_path: Path, lister: str, entry: str) -> None:
    plugin, begin = storage(data, tmp_path, LIST=lister)
    with pytest.raises(hr.ConfigError, match=f"HR0575(.|\n)*{entry}(.|\n)*{plugin.name}"):
        hr.open(f"{begin}train")


def test_a_listing_larger_than_memory_is_not_the_plugins_exception(tmp_path: Path) -> None:
    flags = [f'-D{name}="endless"' for name in ("PLUGIN", "SCHEME")]
    flags += [f'-DROOT="{tmp_path}"', "-DLIST=no_end", "-fno-asynchronous-unwind-tables"]
    library = compiled(CASES, tmp_path / "libendless.so", *flags)
    code = (
        "import resource, sys, headrace as hr\n"
        "hr.load_plugin(sys.argv[1])\n"
        "pages = int(open('/proc/self/statm').read().split()[0])\n"
        "most = pages * resource.getpagesize() + (256 << 20)\n"
        "resource.setrlimit(resource.RLIMIT_AS, (most, most))\n"
        "try: hr.open('endless://')\n"
        "except MemoryError: print('out of memory')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(library)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "out of memory\n"), done.stderr


def test_a_storage_may_lack_listings(data: Path, tmp_path: Path) -> None:
    _, begin = storage(data, tmp_path, LIST="NULL")
    assert len(images_of(hr.open(f"{begin}train.tar"))) == 8
    with pytest.raises(hr.StorageError, match="has no listings"):
        hr.open(f"{begin}train")


@pytest.mark.parametrize(
    ("read", "message"),
    [
        ("writes_more", "wrote up to 1 bytes past its output"),
        ("writes_less", "left 3 of"),
        ("says_more", "reported that it wrote"),
    ],
)
def test_a_check_finds_invalid_writes_of_a_read(
    data: Path, tmp_path: Path, read: str, message: str
) -> None:
    plugin, begin = storage(data, tmp_path, READ=read)
    hr.load_plugin(plugin.path, check=True)
    with pytest.raises(hr.ConfigError, match=f"HR0575(.|\n)*{message}"):
        images_of(hr.records(image=[f"{begin}train/a/0.png"]))


def test_a_checked_storage_reads_the_same(data: Path, tmp_path: Path) -> None:
    plugin, begin = storage(data, tmp_path, READ="read_few")
    hr.load_plugin(plugin.path, check=True)
    for name, source in opened(begin).items():
        for number, each in enumerate(images_of(source)):
            assert np.array_equal(each, image(number)), name


@pytest.mark.parametrize(
    ("crash", "use", "call", "path"),
    [
        ("READ=crashes", "hr.open('boom://train/a/0.png')[0]", "read()", "train/a/0.png"),
        (
            "STATUS=crash",
            "hr.open('boom://train/a/0.png')",
            "get_status()",
            "train/a/0.png",
        ),
        ("LIST=list_crashes", "hr.open('boom://train')", "list()", "train"),
    ],
)
def test_a_crash_is_named(
    data: Path, tmp_path: Path, crash: str, use: str, call: str, path: str
) -> None:
    flags = ['-DPLUGIN="boom"', '-DSCHEME="boom"', f'-DROOT="{data}"', f"-D{crash}"]
    library = compiled(CASES, tmp_path / "libboom.so", *flags)
    code = f"import sys, headrace as hr\nhr.load_plugin(sys.argv[1], check=True)\n{use}"
    done = subprocess.run(
        [sys.executable, "-c", code, str(library)], capture_output=True, text=True, check=False
    )
    assert done.returncode == -6
    assert f"Headrace: SIGABRT in {call} of the storage boom" in done.stderr
    assert f"boom://{path}" in done.stderr


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"SCHEME": '"s3"', "EXAMPLE": '"s3://a"'}, "there already is a storage s3://"),
        ({"SCHEME": '"file"'}, "there already is a storage file://"),
        ({"SCHEME": '"a_b"'}, 'the scheme "a_b" must consist of'),
        ({"EXAMPLE": '"train"'}, "its example does not begin with"),
        ({"READ": "NULL"}, "read is NULL"),
        ({"STATUS": "NULL"}, "get_status is NULL"),
        ({"FLAGS": "1"}, "flags has unknown bits"),
        ({"MORE": ",{.scheme = SCHEME}"}, "there already is a storage"),
    ],
)
def test_invalid_storages_are_refused(
    data: Path, tmp_path: Path, change: dict[str, str], message: str
) -> None:
    with pytest.raises(hr.ConfigError, match=f"HR0572(.|\n)*{message}"):
        storage(data, tmp_path, **change)


@pytest.fixture(scope="module")
def split(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return hr.load_plugin(
        compiled(EXAMPLES / "split.c", tmp_path_factory.mktemp("split") / "libsplit.so")
    )


def test_the_example_joins_files_in_parts(split: Any, data: Path, tmp_path: Path) -> None:
    for path in (data / "train.tar", *sorted((data / "train").glob("*/*.png"))):
        target = tmp_path / path.relative_to(data)
        target.parent.mkdir(parents=True, exist_ok=True)
        step = path.stat().st_size // 3
        subprocess.run(
            ["split", "-d", "-a", "3", "-b", str(step), str(path), f"{target}."], check=True
        )
    assert not list(tmp_path.glob("**/*.png"))
    for source in (hr.open(f"split://{tmp_path}/train"), hr.open(f"split://{tmp_path}/train.tar")):
        for number, each in enumerate(images_of(source)):
            assert np.array_equal(each, image(number))
    os.truncate(tmp_path / "train" / "a" / "0.png.001", 1)
    with pytest.raises(hr.DataError):
        images_of(hr.open(f"split://{tmp_path}/train"))
