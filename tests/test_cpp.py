# SPDX-License-Identifier: Apache-2.0
"""C++ programs outside the checkout: find_package(headrace) in an installed folder, and the batches
that Python gets.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import zlib
from pathlib import Path

import numpy as np
import pytest

import headrace as hr
from headrace import transforms as T

ROOT = Path(__file__).parent.parent
VERSION = re.findall(r"project\(headrace VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())[0]
BUILDS = [ROOT / "build" / name for name in ("release", "install")]


def run(*command: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*map(str, command)], cwd=cwd, capture_output=True, text=True)


def output(*command: object, cwd: Path | None = None) -> str:
    done = run(*command, cwd=cwd)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An installed folder, moved after the installation."""
    built = [build for build in BUILDS if (build / "libheadrace.so").exists()]
    if not built:
        pytest.skip("the C++ library is not built (./dev install, ./dev test)")
    if not shutil.which("cmake"):
        pytest.skip("there is no cmake")
    root = tmp_path_factory.mktemp("cpp")
    output("cmake", "--install", built[0], "--prefix", root / "installed")
    return (root / "installed").rename(root / "moved")


@pytest.fixture(scope="module")
def train(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("data") / "train"
    for number, photo in enumerate(sorted((ROOT / "examples" / "images").glob("*.jpg"))):
        folder = root / ("cat", "dog")[number % 2]
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(photo, folder)
    return root


@pytest.fixture(scope="module")
def feed(prefix: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example, built outside the checkout."""
    root = tmp_path_factory.mktemp("example")
    shutil.copytree(ROOT / "examples" / "cpp", root / "source")
    options = [f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Release"]
    output("cmake", "-S", root / "source", "-B", root / "build", *options)
    output("cmake", "--build", root / "build")
    return root / "build" / "feed"


def test_installed_headers_need_nothing_that_is_not_installed(prefix: Path, tmp_path: Path) -> None:
    include = prefix / "include"
    headers = [path.relative_to(include) for path in sorted(include.rglob("*.h"))]
    assert Path("headrace/loader.h") in headers
    (tmp_path / "all.cc").write_text("".join(f'#include "{each}"\n' for each in headers))
    options = ["-std=c++20", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{include}"]
    output(os.environ.get("CXX", "g++"), *options, tmp_path / "all.cc")


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Two classes of eight photos each."""
    for name in ("one", "two"):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for photo in (ROOT / "examples" / "images").glob("*.jpg"):
            shutil.copy(photo, tmp_path / "photos" / name)
    return tmp_path / "photos"


def test_the_example_prints_batches_and_rates(feed: Path, photos: Path) -> None:
    printed = output(feed, photos, "--batch-size", "6", "--epochs", "2")
    for line in (
        "16 records.*2 classes",
        r"batch 0: image \(6, 3, 224, 224\) float32, label \(6\) int64",
        r"batch 2: image \(4, 3, 224, 224\) float32, label \(4\) int64",
        "epoch 0: Adler-32 [0-9a-f]+",
        "epoch 1: 3 batches, 16 records, [0-9]+ records/s",
    ):
        assert re.search(line, printed), line


def test_the_example_ends_with_the_error_of_a_corrupt_image(feed: Path, photos: Path) -> None:
    (photos / "one" / "broken.jpg").write_text("this is no picture")
    failed = run(feed, photos)
    assert failed.returncode == 3
    assert "broken.jpg" in failed.stderr


def test_the_example_gets_the_batches_that_python_gets(feed: Path, train: Path) -> None:
    expected = 1
    steps = [
        T.RandomResizedCrop(224),
        T.RandomHorizontalFlip(),
        T.ToDtype("float32", scale=True),
        T.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    ]
    for batch in hr.Loader(train, steps, batch_size=3, shuffle=True):
        for name in ("image", "label"):
            expected = zlib.adler32(np.asarray(batch[name]).tobytes(), expected)
    for threads in (1, 3):
        options = ["--batch-size", "3", "--epochs", "1", "--threads", str(threads)]
        printed = output(feed, train, *options)
        assert f"epoch 0: Adler-32 {expected:08x}\n" in printed


def test_the_program_and_the_command_of_the_page_work(
    prefix: Path, train: Path, tmp_path: Path
) -> None:
    page = (ROOT / "docs" / "guide" / "cpp.md").read_text()
    (program,) = re.findall(r"```cpp\n(#include.*?)```", page, re.DOTALL)
    (command,) = re.findall(r"^g\+\+ .*$", page, re.MULTILINE)
    (tmp_path / "program.cpp").write_text(program)
    installed = re.sub(r"~/\.local|\$HOME/\.local", str(prefix), command)
    output("bash", "-c", f"{installed} -Wall -Wextra -Werror", cwd=tmp_path)
    printed = output(tmp_path / "program", cwd=train.parent)
    assert printed == f"4 images of {3 * 224 * 224} bytes\n" * 2

    (train / "cat" / "broken.jpg").write_bytes(b"not an image")
    failed = run(tmp_path / "program", cwd=train.parent)
    (train / "cat" / "broken.jpg").unlink()
    assert failed.returncode == 1
    assert re.match(r"HR03\d\d .*\n(.*\n)*.*broken\.jpg", failed.stderr)


def test_a_library_of_another_version_is_neither_found_nor_loaded(
    prefix: Path, tmp_path: Path
) -> None:
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(other LANGUAGES NONE)\n"
        "find_package(headrace ${WANTED} REQUIRED)\n"
    )
    command = ["cmake", "-S", tmp_path, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={prefix}"]
    output(*command, f"-DWANTED={'.'.join(VERSION.split('.')[:2])}")
    refused = run(*command, "-DWANTED=99.1")
    assert refused.returncode != 0
    assert f"version: {VERSION}" in refused.stderr
    names = output("readelf", "-d", prefix / "lib" / "libheadrace.so")
    assert f"Library soname: [libheadrace.so.{VERSION}]" in names


def test_dev_install_says_how_it_is_called() -> None:
    done = run(ROOT / "dev", "install", "--help")
    assert done.returncode == 2
    assert "usage: ./dev install [PREFIX]" in done.stderr
