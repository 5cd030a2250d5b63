# SPDX-License-Identifier: Apache-2.0
"""Builds the wheel from the checkout with what the steps before have left: build/wheels/dist."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from places import BUNDLED, GLIBC, HERE, PREFIX, TOOLS, WORK

PLATFORM = f"manylinux_{GLIBC.replace('.', '_')}_x86_64"
DEFINED = {
    "HEADRACE_STANDALONE": "ON",
    "HEADRACE_CUDA": "OFF",
    "HEADRACE_BUNDLED": BUNDLED,
    "CMAKE_PREFIX_PATH": PREFIX,
    "CMAKE_FIND_USE_CMAKE_SYSTEM_PATH": "OFF",
    "CMAKE_AR": TOOLS / "ar",
    "CMAKE_RANLIB": TOOLS / "ranlib",
}


def main() -> None:
    settings = {
        "build-dir": WORK / "py",
        "wheel.py-api": "cp312",
        **{f"cmake.define.{name}": value for name, value in DEFINED.items()},
    }
    raw, dist = WORK / "raw", WORK / "dist"
    for folder in (raw, dist):
        shutil.rmtree(folder, ignore_errors=True)
    environment = {**os.environ, "CC": str(TOOLS / "cc"), "CXX": str(TOOLS / "c++")}
    pip = [sys.executable, "-m", "pip", "wheel", "-q", "--no-build-isolation", "--no-deps"]
    options = [f"--config-settings={name}={value}" for name, value in settings.items()]
    checkout = HERE.parent.parent
    subprocess.run([*pip, *options, "-w", raw, checkout], env=environment, check=True)
    (wheel,) = raw.glob("*.whl")
    # Nothing is left to carry along; this checks that, and gives the wheel the platform's name.
    repair = [sys.executable, "-m", "auditwheel", "repair", "--plat", PLATFORM, "--only-plat"]
    subprocess.run([*repair, "-w", dist, wheel], check=True)


if __name__ == "__main__":
    main()
