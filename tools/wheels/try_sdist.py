# SPDX-License-Identifier: Apache-2.0
"""Builds a wheel from the archive of the sources, installs it, and reads images with it:
build/wheels/from-sdist. With this machine's compiler and libraries, and without kernels for GPUs.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from places import CHECKOUT, DIST, WORK

FOLDER = WORK / "from-sdist"
READ = """
import sys
import headrace
assert headrace.__file__.startswith(sys.argv[1]), headrace.__file__
assert headrace.open(sys.argv[2])[0]["image"].ndim == 3
"""


def python(*arguments: str | Path, **variables: str) -> None:
    environment = {**os.environ, **variables}
    subprocess.run([sys.executable, *arguments], cwd=FOLDER, env=environment, check=True)


def main() -> None:
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    (archive,) = DIST.glob("headrace-*.tar.gz")
    pip = ("-m", "pip", "-q")
    options = ("--no-build-isolation", "--config-settings=cmake.define.HEADRACE_CUDA=OFF")
    python(*pip, "wheel", "--no-deps", *options, "-w", FOLDER, archive)
    (wheel,) = FOLDER.glob("headrace-*.whl")
    site = FOLDER / "site"
    python(*pip, "install", "--no-deps", "--target", site, wheel)
    python("-c", READ, site, CHECKOUT / "examples" / "images", PYTHONPATH=str(site))


if __name__ == "__main__":
    main()
