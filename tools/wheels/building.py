# SPDX-License-Identifier: Apache-2.0
"""Builds one library with the compilers of a wheel, as a static one, into build/wheels/prefix.

Each function and datum has its own section, so that a linked file contains only those that it uses.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from places import PREFIX, SOURCES, TOOLS, WORK

JOBS = os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL", "2")
SECTIONS = ("-ffunction-sections", "-fdata-sections")
COMPILERS = {"C_COMPILER": "cc", "CXX_COMPILER": "c++", "AR": "ar", "RANLIB": "ranlib"}


def run(*command: str | Path, cwd: Path | None = None) -> None:
    subprocess.run(command, cwd=cwd, check=True)


def folder_of(source: Path) -> Path:
    return WORK / "libraries" / source.relative_to(SOURCES).parts[0]


def cmake(source: Path, *options: str, target: str = "install") -> Path:
    """Configures with these options and builds the target; returns the folder it was built in."""
    build = folder_of(source)
    flags = " ".join(SECTIONS)
    run(
        *("cmake", "-S", source, "-B", build, "-G", "Ninja", "-Wno-dev"),
        *(f"-DCMAKE_{name}={TOOLS / tool}" for name, tool in COMPILERS.items()),
        *(f"-DCMAKE_{language}_FLAGS={flags}" for language in ("C", "CXX")),
        "-DCMAKE_BUILD_TYPE=Release",
        "-DCMAKE_POSITION_INDEPENDENT_CODE=ON",
        "-DCMAKE_POLICY_VERSION_MINIMUM=3.5",
        f"-DCMAKE_PREFIX_PATH={PREFIX}",
        f"-DCMAKE_INSTALL_PREFIX={PREFIX}",
        f"-DCMAKE_INSTALL_LIBDIR={PREFIX}/lib",
        "-DCMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF",
        "-DBUILD_SHARED_LIBS=OFF",
        "-DBUILD_TESTING=OFF",
        *options,
    )
    run("cmake", "--build", build, "-j", JOBS, "--target", target)
    return build


def compile_static(
    name: str, files: list[Path], *flags: str | Path, special: dict[str, list[str]] | None = None
) -> None:
    """The files as prefix/lib/NAME; those whose name ends with a key of `special` by its flags."""
    folder = WORK / "libraries" / name
    shutil.rmtree(folder, ignore_errors=True)  # objects of files that are no longer compiled
    folder.mkdir(parents=True)
    rest = list(files)
    for ending, more in {**(special or {}), "": []}.items():
        group = [file for file in rest if file.stem.endswith(ending)]
        rest = [file for file in rest if file not in group]
        run(TOOLS / "cc", "-c", "-O3", "-fPIC", *SECTIONS, *flags, *more, *group, cwd=folder)
    archive = PREFIX / "lib" / name
    archive.unlink(missing_ok=True)
    run(TOOLS / "ar", "rcs", archive, *sorted(folder.glob("*.o")))
