# SPDX-License-Identifier: Apache-2.0
"""Promise: a folder that cannot be listed completely is an error, not a smaller dataset."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import headrace as hr

# Listing folders named "failing" stops after a few entries, as with a bad disk or network.
SHIM = r"""
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <unistd.h>

static int seen = 0;
static DIR* last = 0;

static void* one(DIR* folder, const char* name) {
  void* (*real)(DIR*) = dlsym(RTLD_NEXT, name);
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", dirfd(folder));
  ssize_t length = readlink(link, path, sizeof path - 1);
  path[length > 0 ? length : 0] = 0;
  if (!strstr(path, "/failing")) return real(folder);
  if (folder != last) { last = folder; seen = 0; }
  if (++seen > 4) { errno = EIO; return 0; }
  return real(folder);
}
struct dirent* readdir(DIR* folder) { return one(folder, "readdir"); }
struct dirent64* readdir64(DIR* folder) { return one(folder, "readdir64"); }
"""

OPENED = """
import json, sys
import headrace as hr
try:
    print(json.dumps(["opened", len(hr.open(sys.argv[1]))]))
except hr.Error as error:
    print(json.dumps(["refused", error.code]))
"""


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc") or pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("shim")
    (folder / "shim.c").write_text(SHIM)
    library = folder / "shim.so"
    command = [compiler, "-shared", "-fPIC", "-o", str(library), str(folder / "shim.c"), "-ldl"]
    subprocess.run(command, check=True)
    return library


def tars(folder: Path, pictures: Path) -> None:
    hr.convert(pictures, folder / "shards", "tar", shards=6)
    for path in (folder / "shards").glob("*.tar"):
        path.rename(folder / path.name)
    shutil.rmtree(folder / "shards")


def idx(folder: Path, pictures: Path) -> None:
    for split in ("train", "t10k", "a", "b", "c"):
        header = bytes([0, 0, 8, 3]) + np.array([2, 3, 3], ">i4").tobytes()
        (folder / f"{split}-images-idx3-ubyte").write_bytes(header + bytes(18))


def npy(folder: Path, pictures: Path) -> None:
    for number in range(8):
        np.save(folder / f"{number}.npy", np.zeros((2, 2), np.float32))


def classes_of_npy(folder: Path, pictures: Path) -> None:
    for name in "abcdefgh":
        (folder / name).mkdir()
        np.save(folder / name / "x.npy", np.zeros((2, 2), np.float32))


def photos(folder: Path, pictures: Path) -> None:
    for path in pictures.glob("*/*.png"):
        shutil.copy(path, folder / path.name)


@pytest.mark.parametrize("pattern", ["", "*"])
@pytest.mark.parametrize("make", [tars, idx, npy, classes_of_npy, photos])
def test_an_incomplete_listing_is_an_error(
    shim: Path, pictures: Path, tmp_path: Path, make: Callable[[Path, Path], None], pattern: str
) -> None:
    if pattern and make is not tars:
        return  # of shards only
    folder = tmp_path / "failing"
    folder.mkdir()
    make(folder, pictures)
    whole = tmp_path / "whole"
    shutil.copytree(folder, whole)

    def opened(path: Path) -> tuple[str, object]:
        command = [sys.executable, "-c", OPENED, str(path / pattern) if pattern else str(path)]
        environment = {**os.environ, "LD_PRELOAD": str(shim)}
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        first, second = json.loads(ended.stdout)
        return first, second

    assert opened(folder) == ("refused", "HR0204")
    kind, answer = opened(whole)
    assert kind == "opened" or make is idx, answer  # which has several splits


def test_a_dangling_link_does_not_prevent_a_listing(pictures: Path, tmp_path: Path) -> None:
    tars(tmp_path, pictures)
    (tmp_path / "notes").symlink_to(tmp_path / "nowhere")
    assert len(hr.open(tmp_path)) == 23
