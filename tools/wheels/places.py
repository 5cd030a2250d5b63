# SPDX-License-Identifier: Apache-2.0
"""The output folders of the steps of `./dev wheels`, and the table of libraries."""

from __future__ import annotations

import hashlib
import sysconfig
from pathlib import Path
from typing import NotRequired, TypedDict

import tomllib

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parent.parent
WHEELS = ("headrace", "headrace-media")
GLIBC = "2.28"  # the minimum version for a wheel
PLATFORM = f"manylinux_{GLIBC.replace('.', '_')}_x86_64"
WORK = CHECKOUT / "build" / "wheels"
SOURCES = WORK / "sources"  # archives, and each unpacked in a folder with the library's name
PREFIX = WORK / "prefix"  # headers and static libraries
PYTHON_HEADERS = WORK / "python-headers"  # python_headers.py
CODECS = WORK / "codecs"  # shared libraries, as they are in headrace/lib
MEDIA = WORK / "media"  # headers and shared libraries of FFmpeg
TOOLS = WORK / "tools"  # cc, c++, ar, ranlib
SAMPLES = WORK / "samples"  # files of each codec, to try the wheels with
ENGINE = WORK / "py"  # objects of the engine and the module
DIST = WORK / "dist"  # the wheels
BUNDLED = WORK / "bundled"  # by wheel, licenses and the SBOM
NVIDIA = Path(sysconfig.get_path("purelib")) / "nvidia"  # packages of tools/requirements/cuda.txt


class Library(TypedDict):
    package: str
    version: str
    suite: str
    upstream: str
    sha256: str
    license: str
    texts: list[str]
    needs: NotRequired[list[str]]
    wheels: NotRequired[list[str]]


def libraries(wheel: str = "") -> dict[str, Library]:
    """Those inside this wheel; without its name, all."""
    table: dict[str, Library] = tomllib.loads((HERE / "libraries.toml").read_text())
    if not wheel:
        return table
    return {name: each for name, each in table.items() if wheel in each.get("wheels", ["headrace"])}


def lgpl_libraries(wheel: str) -> dict[str, Library]:
    return {name: each for name, each in libraries(wheel).items() if "LGPL" in each["license"]}


def archive_if_fetched(library: Library) -> Path | None:
    """The archive with the pinned checksum."""
    for archive in SOURCES.glob(f"{library['package']}_*.orig.tar.*"):
        if hashlib.sha256(archive.read_bytes()).hexdigest() == library["sha256"]:
            return archive
    return None


def archive_of(library: Library) -> Path:
    """REQUIRES: fetch.py has run."""
    archive = archive_if_fetched(library)
    assert archive, library
    return archive


def cuda_toolkit() -> Path:
    """The folder with nvcc and CUDA's run time."""
    (nvcc,) = NVIDIA.glob("cu*/bin/nvcc")
    return nvcc.parent.parent
