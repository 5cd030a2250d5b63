# SPDX-License-Identifier: Apache-2.0
"""Where the steps of `./dev wheels` leave what they make, and the table of libraries."""

from __future__ import annotations

from pathlib import Path
from typing import TypedDict

import tomllib

HERE = Path(__file__).resolve().parent
GLIBC = "2.28"  # what a wheel needs at least
WORK = HERE.parent.parent / "build" / "wheels"
SOURCES = WORK / "sources"  # archives, and each unpacked in a folder with the library's name
PREFIX = WORK / "prefix"  # headers and static libraries
TOOLS = WORK / "tools"  # cc, c++, ar, ranlib
BUNDLED = WORK / "bundled"  # licenses and the SBOM


class Library(TypedDict):
    package: str
    version: str
    suite: str
    upstream: str
    sha256: str
    license: str
    texts: list[str]


def libraries() -> dict[str, Library]:
    return tomllib.loads((HERE / "libraries.toml").read_text())  # type: ignore[return-value]
