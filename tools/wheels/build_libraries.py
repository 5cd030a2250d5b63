# SPDX-License-Identifier: Apache-2.0
"""Builds the libraries of libraries.toml as static ones into build/wheels/prefix.

Each is built again from the start when its archive, its recipe, the compilers or a library that it
needs has changed.
"""

from __future__ import annotations

import shutil

from building import folder_of
from inputs import RECIPES, of_library
from places import PREFIX, SOURCES, libraries


def main() -> None:
    for folder in ("include", "lib", "built"):
        (PREFIX / folder).mkdir(parents=True, exist_ok=True)
    for name, library in libraries().items():
        stamp, wanted = PREFIX / "built" / name, of_library(name)
        if stamp.exists() and stamp.read_text() == wanted:
            continue
        print(f"== {name} {library['upstream']}", flush=True)
        stamp.unlink(missing_ok=True)
        # Files of a newer archive may well be older than the objects of the one before.
        shutil.rmtree(folder_of(SOURCES / name), ignore_errors=True)
        RECIPES[name](SOURCES / name)
        stamp.write_text(wanted)


if __name__ == "__main__":
    main()
