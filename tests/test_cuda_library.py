# SPDX-License-Identifier: Apache-2.0
"""One library serves machines with and without a GPU: the CUDA run time stays inside it."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path


def mapped_files(code: str) -> list[str]:
    """The files that a new interpreter has mapped after running `code`."""
    show = "print(*{line.split()[-1] for line in open('/proc/self/maps')}, sep='\\n')"
    run = [sys.executable, "-c", f"{code}\n{show}"]
    return subprocess.run(run, check=True, capture_output=True, text=True).stdout.splitlines()


def engine_library() -> Path:
    """In a wheel of `./dev wheels` it is a part of the module."""
    files = mapped_files("import headrace")
    separate = [path for path in files if "/libheadrace.so" in path]
    return Path((separate or [path for path in files if "/headrace/_core." in path])[0])


def test_importing_loads_neither_the_driver_nor_a_cuda_library() -> None:
    assert not [path for path in mapped_files("import headrace") if "/libcuda" in path]


def test_the_bundled_run_time_does_not_clash_with_a_frameworks() -> None:
    library = ctypes.CDLL(str(engine_library()))
    for name in ("cudaMalloc", "cudaLaunchKernel", "cudaGetDeviceCount"):
        assert not hasattr(library, name), name
