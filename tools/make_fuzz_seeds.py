#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes small valid inputs for the fuzz targets to FOLDER/NAME/, the initial corpus of NAME_fuzz.

    python tools/make_fuzz_seeds.py build/fuzz/seeds

fuzz/NAME/ in the repository was grown from these: each target ran for some minutes on both, then
`NAME_fuzz -merge=1 fuzz/NAME build/fuzz/corpus/NAME` kept inputs that reach more code. They are
defined in tools/fuzz_seeds/, one module per family.

Needs NumPy, Pillow, h5py, lmdb and torch (./dev test installs them).
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from pathlib import Path

import fuzz_seeds

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))  # writers of records


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    seeds = {}
    for module in pkgutil.iter_modules(fuzz_seeds.__path__, "fuzz_seeds."):
        seeds |= importlib.import_module(module.name).SEEDS
    for name in sorted(seeds):  # pictures draw random numbers in this order
        folder = Path(sys.argv[1], name)
        folder.mkdir(parents=True, exist_ok=True)
        for number, content in enumerate(seeds[name]()):
            (folder / f"{number:03}").write_bytes(content)


if __name__ == "__main__":
    main()
