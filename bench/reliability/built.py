# SPDX-License-Identifier: Apache-2.0
"""C++ builds that trials need: a preset of CMakePresets.json, brought up to date."""

from __future__ import annotations

import subprocess
from pathlib import Path

import child

ROOT = Path(__file__).parents[2]


def build(preset: str, *targets: str) -> Path:
    """Builds the preset, or only some targets of it; returns the folder."""
    chosen = ["--target", *targets] if targets else []
    for command in (
        ["cmake", "--preset", preset],
        ["cmake", "--build", "--preset", preset, *chosen, "--", "--quiet"],
    ):
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if done.returncode:
            why = child.last_lines(done.stderr or done.stdout)
            raise RuntimeError(f"{' '.join(command)}: {why}")
    return ROOT / "build" / preset
