# SPDX-License-Identifier: Apache-2.0
"""Fills version and checksum of an sdist into the conda recipe.

    python tools/conda/write_recipe.py [SDIST] [FOLDER]

SDIST: by default the one of `./dev wheels`. Writes FOLDER/recipe.yaml (build/conda).
"""

from __future__ import annotations

import hashlib
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILD = HERE.parent.parent / "build"


def filled(sdist: Path) -> str:
    """The recipe for a source archive, whose name has the version."""
    found = re.fullmatch(r"headrace-([0-9.]+[0-9])\.tar\.gz", sdist.name)
    if found is None:
        sys.exit(f"{sdist}: not an sdist of headrace (headrace-VERSION.tar.gz)")
    text = (HERE / "recipe.yaml").read_text()
    checksum = hashlib.sha256(sdist.read_bytes()).hexdigest()
    return text.replace("{version}", found[1]).replace("{sha256}", checksum)


def main() -> None:
    given = [Path(word) for word in sys.argv[1:]]
    built = sorted((BUILD / "wheels" / "dist").glob("headrace-*.tar.gz"))
    if not given and not built:
        sys.exit("no sdist in build/wheels/dist: ./dev wheels makes it, or name another one")
    folder = given[1] if len(given) > 1 else BUILD / "conda"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "recipe.yaml").write_text(filled(given[0] if given else built[-1]))
    print(folder / "recipe.yaml")


if __name__ == "__main__":
    main()
