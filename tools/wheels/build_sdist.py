# SPDX-License-Identifier: Apache-2.0
"""Packs the sources for `pip install` on machines that the wheels do not support:
build/wheels/dist.
"""

from __future__ import annotations

import os

from places import CHECKOUT, DIST
from scikit_build_core import build


def main() -> None:
    os.chdir(CHECKOUT)  # where the build's interface (PEP 517) expects its caller
    build.build_sdist(str(DIST))


if __name__ == "__main__":
    main()
