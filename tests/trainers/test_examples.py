# SPDX-License-Identifier: Apache-2.0
"""Every example of a trainer runs unmodified, and cleans up."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from forked import output_of

os.environ.setdefault("KERAS_BACKEND", "torch")
MODULES = ("transformers", "lightning", "timm", "keras", "grain", "deepspeed")
for name in (*MODULES, "torchtitan", "rfdetr", "ultralytics"):
    pytest.importorskip(name)

EXAMPLES = sorted((Path(__file__).parent.parent.parent / "examples" / "trainers").glob("*.py"))


def test_the_examples_run(tmp_path: Path) -> None:
    text = output_of("trainers/run_examples.py", *EXAMPLES, cwd=tmp_path)
    for example in EXAMPLES:
        ended = re.search(rf"{example.stem} ended with \[0(, 0)*\]", text)
        assert ended, text[-6000:]
    assert not list(tmp_path.iterdir()), "an example leaves nothing behind"
