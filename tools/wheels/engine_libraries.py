# SPDX-License-Identifier: Apache-2.0
"""Recipes of the libraries that are linked into the module, by their names in libraries.toml."""

from __future__ import annotations

import shutil
from pathlib import Path

from building import JOBS, cmake, compile_static, run
from places import PREFIX, TOOLS


def libjpeg_turbo(source: Path) -> None:
    cmake(source, "-DENABLE_SHARED=OFF", "-DWITH_TURBOJPEG=OFF", "-DREQUIRE_SIMD=ON")


def zlib(source: Path) -> None:
    """By hand: Debian's archive lacks folders that its CMakeLists.txt needs."""
    files = sorted(source.glob("*.c"))
    compile_static("libz.a", files, "-DHAVE_UNISTD_H", "-D_LARGEFILE64_SOURCE=1")
    for header in ("zlib.h", "zconf.h"):
        shutil.copy(source / header, PREFIX / "include")


def libpng(source: Path) -> None:
    cmake(source, "-DPNG_SHARED=OFF", "-DPNG_TESTS=OFF", "-DPNG_TOOLS=OFF")


def zstd(source: Path) -> None:
    options = ("SHARED", "PROGRAMS", "TESTS")
    cmake(
        source / "build" / "cmake",
        *(f"-DZSTD_BUILD_{option}=OFF" for option in options),
        "-DZSTD_LEGACY_SUPPORT=OFF",
    )


def isa_l(source: Path) -> None:
    tools = [f"CC={TOOLS / 'cc'}", f"AR={TOOLS / 'ar'}", "AS=nasm"]
    build = [
        "make",
        "-B",
        "-f",
        "Makefile.unx",
        f"-j{JOBS}",
        "lib",
        "host_cpu=x86_64",
        "CFLAGS_=-fPIC",
    ]
    run(*build, *tools, cwd=source)
    shutil.copy(source / "bin" / "isa-l.a", PREFIX / "lib" / "libisal.a")
    shutil.copytree(source / "include", PREFIX / "include" / "isa-l", dirs_exist_ok=True)


def xxhash(source: Path) -> None:
    shutil.copy(source / "xxhash.h", PREFIX / "include")


RECIPES = {
    "libjpeg-turbo": libjpeg_turbo,
    "zlib": zlib,
    "libpng": libpng,
    "zstd": zstd,
    "isa-l": isa_l,
    "xxhash": xxhash,
}
