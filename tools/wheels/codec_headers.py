# SPDX-License-Identifier: Apache-2.0
"""Copies the headers of libraries that are opened at run time into build/wheels/prefix.

They are Debian's, installed by ./dev. Their folders cannot be searched where they are: beside them
lie those of this machine's C library, which is another one than a wheel is built for.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from places import PREFIX

PACKAGES = (
    *("libwebp-dev", "libtiff-dev", "libgif-dev", "libopenjp2-7-dev", "libavif-dev"),
    *("libheif-dev", "libde265-dev", "libjxl-dev", "libflac-dev", "libmpg123-dev"),
    *("libogg-dev", "libvorbis-dev", "libopus-dev", "libopusfile-dev"),
)
FOLDERS = (Path("/usr/include/x86_64-linux-gnu"), Path("/usr/include"))


def main() -> None:
    command = ["dpkg-query", "-L", *PACKAGES]
    files = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    for file in sorted(map(Path, set(files))):
        for folder in FOLDERS:
            if file.is_relative_to(folder) and file.suffix == ".h":
                copy = PREFIX / "include" / file.relative_to(folder)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, copy)
                break


if __name__ == "__main__":
    main()
