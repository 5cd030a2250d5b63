# SPDX-License-Identifier: Apache-2.0
"""Builds the wheel from the checkout and the output of the previous steps: build/wheels/dist."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from describe import license_expression
from inputs import empty_if_changed, of_engine
from pack import Packed, license_files, pack, unpack
from places import (
    BUNDLED,
    CHECKOUT,
    CODECS,
    DIST,
    ENGINE,
    PLATFORM,
    PREFIX,
    TOOLS,
    WORK,
    cuda_toolkit,
)
from python_headers import copy_headers_of

DEFINED = {
    "HEADRACE_STANDALONE": "ON",
    "HEADRACE_CUDA": "ON",
    "CMAKE_CUDA_COMPILER": cuda_toolkit() / "bin" / "nvcc",
    "CMAKE_CUDA_HOST_COMPILER": shutil.which("g++"),  # nvcc does not know zig's clang
    "HEADRACE_BUNDLED": BUNDLED / "headrace",
    "HEADRACE_CODECS": CODECS,
    "CMAKE_PREFIX_PATH": PREFIX,
    "CMAKE_FIND_USE_CMAKE_SYSTEM_PATH": "OFF",
    "CMAKE_AR": TOOLS / "ar",
    "CMAKE_RANLIB": TOOLS / "ranlib",
}


def state_licenses(wheel: Path) -> None:
    """Lists the licenses of everything inside: pyproject.toml has only that of the sources."""
    files = unpack(wheel)
    (name,) = (name for name in files if name.endswith(".dist-info/METADATA"))
    text = files[name].content.decode()
    expression = license_expression("headrace")
    for old, new in (
        ("License-Expression: Apache-2.0\n", f"License-Expression: {expression}\n"),
        ("License-File: LICENSE\n", license_files(files)),
    ):
        if text.count(old) != 1:
            raise SystemExit(f"{name}: not one line `{old.strip()}`")
        text = text.replace(old, new)
    files[name] = Packed(text.encode())
    pack(files, wheel)


def main() -> None:
    empty_if_changed(ENGINE, of_engine())
    copy_headers_of(sys.executable)
    settings = {
        "build-dir": ENGINE,
        "wheel.py-api": "cp312",
        **{f"cmake.define.{name}": value for name, value in DEFINED.items()},
    }
    raw = WORK / "raw"
    for folder in (raw, DIST):
        shutil.rmtree(folder, ignore_errors=True)
    environment = {**os.environ, "CC": str(TOOLS / "cc"), "CXX": str(TOOLS / "c++")}
    pip = [sys.executable, "-m", "pip", "wheel", "-q", "--no-build-isolation", "--no-deps"]
    options = [f"--config-settings={name}={value}" for name, value in settings.items()]
    subprocess.run([*pip, *options, "-w", raw, CHECKOUT], env=environment, check=True)
    (wheel,) = raw.glob("*.whl")
    # No library has to be copied into it; this checks that, and puts the platform into its name.
    repair = [sys.executable, "-m", "auditwheel", "repair", "--plat", PLATFORM, "--only-plat"]
    subprocess.run([*repair, "-w", DIST, wheel], check=True)
    (wheel,) = DIST.glob("*.whl")
    state_licenses(wheel)


if __name__ == "__main__":
    main()
