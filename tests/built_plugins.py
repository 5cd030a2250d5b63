# SPDX-License-Identifier: Apache-2.0
"""Plug-ins compiled with the system's compilers against only the installed headers, records for
them, and their outputs.
"""

from __future__ import annotations

import itertools
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as hr

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples" / "plugin"
CASES = Path(__file__).parent / "plugin_cases.c"

_numbers = itertools.count()

needs_compiler = pytest.mark.skipif(
    not (shutil.which("cc") and shutil.which("g++")), reason="there is no compiler"
)


def compiled(source: Path, library: Path, *arguments: str) -> Path:
    """The shared library of a source; compiles without warnings."""
    compiler = ["g++", "-std=c++17"] if source.suffix == ".cc" else ["cc", "-std=gnu99"]
    flags = ["-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    command = [*compiler, *flags, f"-I{hr.include_dir()}", *arguments, str(source), "-o"]
    done = subprocess.run([*command, str(library)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return library


def case(folder: Path, **definitions: object) -> tuple[Path, str]:
    """The library of plugin_cases.c with these definitions, and the name of its transform."""
    number = next(_numbers)
    name = f"Case{number}"
    given = {"PLUGIN": f'"case-{number}"', "TRANSFORM": f'"{name}"', **definitions}
    defined = [f"-D{key}={value}" for key, value in given.items()]
    return compiled(CASES, folder / f"libcase{number}.so", *defined), name


def darkened(image: np.ndarray[Any, Any], strength: float) -> np.ndarray[Any, Any]:
    """Vignette according to its definition, in float32, of (C, H, W)."""
    one = np.float32
    height, width = image.shape[1:]
    y = (2 * np.arange(height) + 1 - height).astype(one) / one(height)
    x = (2 * np.arange(width) + 1 - width).astype(one) / one(width)
    square = (y * y)[:, None] + (x * x)[None, :]
    light = one(1) - one(strength) * one(0.5) * square
    values = image.astype(one) * light
    return (values + one(0.5)).astype(np.uint8) if image.dtype == np.uint8 else values


def scene(number: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(number)
    return {
        "image": rng.integers(0, 256, (3, 6, 9), dtype=np.uint8),
        "mask": rng.integers(0, 5, (1, 6, 9), dtype=np.uint8),
        "masks": rng.integers(0, 2, (2, 6, 9), dtype=np.uint8),
        "boxes": np.float32([[1, 2, 4, 6], [0, 0, 9, 3]]),
        "keypoints": np.float32([[[1, 2, 1], [8, 5, 0]], [[0, 0, 1], [3, 4, 1]]]),
    }


def scenes(count: int = 1) -> Any:
    kinds = {"boxes": "boxes:xyxy", "masks": "masks", "keypoints": "keypoints"}
    return hr.open([scene(i) for i in range(count)], kinds=kinds)
