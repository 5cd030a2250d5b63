# SPDX-License-Identifier: Apache-2.0
"""Builds the libraries of libraries.toml as static ones into build/wheels/prefix."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from places import PREFIX, SOURCES, TOOLS, WORK, libraries

JOBS = os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL", "2")


def cmake(source: Path, *options: str) -> None:
    build = WORK / "libraries" / source.relative_to(SOURCES).parts[0]
    configure = [
        *("cmake", "-S", source, "-B", build, "-G", "Ninja", "-Wno-dev"),
        *(f"-DCMAKE_{name}={TOOLS / tool}" for name, tool in COMPILERS.items()),
        "-DCMAKE_BUILD_TYPE=Release",
        "-DCMAKE_POSITION_INDEPENDENT_CODE=ON",
        "-DCMAKE_POLICY_VERSION_MINIMUM=3.5",
        f"-DCMAKE_PREFIX_PATH={PREFIX}",
        f"-DCMAKE_INSTALL_PREFIX={PREFIX}",
        f"-DCMAKE_INSTALL_LIBDIR={PREFIX}/lib",
        "-DCMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF",
        "-DBUILD_SHARED_LIBS=OFF",
        *options,
    ]
    subprocess.run(configure, check=True)
    subprocess.run(["cmake", "--build", build, "-j", JOBS], check=True)
    subprocess.run(["cmake", "--install", build], check=True)


COMPILERS = {"C_COMPILER": "cc", "CXX_COMPILER": "c++", "AR": "ar", "RANLIB": "ranlib"}


def libjpeg_turbo(source: Path) -> None:
    cmake(source, "-DENABLE_SHARED=OFF", "-DWITH_TURBOJPEG=OFF", "-DREQUIRE_SIMD=ON")


def zlib(source: Path) -> None:
    """By hand: Debian leaves out folders that its CMakeLists.txt wants."""
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
    command = ["make", "-f", "Makefile.unx", f"-j{JOBS}", "lib", "host_cpu=x86_64", "CFLAGS_=-fPIC"]
    tools = [f"CC={TOOLS / 'cc'}", f"AR={TOOLS / 'ar'}", "AS=nasm"]
    subprocess.run([*command, *tools], cwd=source, check=True)
    shutil.copy(source / "bin" / "isa-l.a", PREFIX / "lib" / "libisal.a")
    shutil.copytree(source / "include", PREFIX / "include" / "isa-l", dirs_exist_ok=True)


def xxhash(source: Path) -> None:
    shutil.copy(source / "xxhash.h", PREFIX / "include")


def compile_static(name: str, files: list[Path], *flags: str) -> None:
    folder = WORK / "libraries" / name
    folder.mkdir(parents=True, exist_ok=True)
    command = [TOOLS / "cc", "-c", "-O3", "-fPIC", *flags, *files]
    subprocess.run(command, cwd=folder, check=True)
    archive = PREFIX / "lib" / name
    archive.unlink(missing_ok=True)
    subprocess.run([TOOLS / "ar", "rcs", archive, *sorted(folder.glob("*.o"))], check=True)


RECIPES: dict[str, Callable[[Path], None]] = {
    "libjpeg-turbo": libjpeg_turbo,
    "zlib": zlib,
    "libpng": libpng,
    "zstd": zstd,
    "isa-l": isa_l,
    "xxhash": xxhash,
}


def main() -> None:
    for folder in ("include", "lib", "built"):
        (PREFIX / folder).mkdir(parents=True, exist_ok=True)
    for name, library in libraries().items():
        stamp = PREFIX / "built" / name
        if stamp.exists() and stamp.read_text() == library["sha256"]:
            continue
        print(f"== {name} {library['upstream']}", flush=True)
        RECIPES[name](SOURCES / name)
        stamp.write_text(library["sha256"])


if __name__ == "__main__":
    main()
