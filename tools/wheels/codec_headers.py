# SPDX-License-Identifier: Apache-2.0
"""Copies the headers of libheif and libde265, which a wheel does not contain but opens where the
system has them, into build/wheels/prefix.

They are Debian's, installed by ./dev. Their folders cannot be searched where they are: they also
contain the headers of this machine's C library, which differs from the one a wheel is built for.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from places import PREFIX

ROOTS = ("/usr/include", "/usr/include/x86_64-linux-gnu")


def main() -> None:
    for name in ("libheif", "libde265"):
        (found,) = (Path(root) for root in ROOTS if (Path(root) / name).is_dir())
        shutil.copytree(found / name, PREFIX / "include" / name, dirs_exist_ok=True)


if __name__ == "__main__":
    main()
