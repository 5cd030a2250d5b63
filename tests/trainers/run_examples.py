# SPDX-License-Identifier: Apache-2.0
"""Runs examples in forked processes, one by one, after importing their trainers. Prints
the exit code of each.
"""

import functools
import importlib
import os
import runpy
import sys
from pathlib import Path

from forked import ranks

os.environ.setdefault("KERAS_BACKEND", "torch")
for module in ("torch", "transformers", "lightning", "timm", "keras", "grain"):
    importlib.import_module(module)


def run(example: Path) -> None:
    sys.argv = [str(example)]
    runpy.run_path(str(example), run_name="__main__")


for name in sys.argv[1:]:
    path = Path(name)
    (code,) = ranks(functools.partial(run, path), 0)
    print(f"{path.stem} ended with {code}", flush=True)
