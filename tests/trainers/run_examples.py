# SPDX-License-Identifier: Apache-2.0
"""Runs examples in forked processes, one by one, after importing their trainers; those that need
torchrun on two ranks. Prints the exit codes of each.
"""

import functools
import importlib
import os
import runpy
import sys
from pathlib import Path

from forked import ranks

os.environ.setdefault("KERAS_BACKEND", "torch")
MODULES = (
    *("torch", "transformers", "lightning", "timm", "keras", "grain", "deepspeed"),
    *("torchtitan.components.dataloader", "rfdetr.training", "ultralytics"),
)
for module in MODULES:
    importlib.import_module(module)
sys.modules["deepspeed"].ops.__compatible_ops__.clear()  # it would compile one, for a minute


def run(example: Path) -> None:
    sys.argv = [str(example)]
    runpy.run_path(str(example), run_name="__main__")


for name in sys.argv[1:]:
    path = Path(name)
    first_command = path.read_text().split("`")[1]
    count = 2 if first_command.startswith("torchrun") else 0
    print(f"{path.stem} ended with {ranks(functools.partial(run, path), count)}", flush=True)
