# SPDX-License-Identifier: Apache-2.0
"""The environment variables that Headrace reads. Unknown variables and invalid values cause one
warning, at import.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from headrace.errors import warn

# Each variable with the form of its values. HEADRACE_DISK_CACHE (HR0298) and HEADRACE_SIMD (HR0341)
# are checked where they are used.
VARIABLES = {
    "HEADRACE_CACHE": "an absolute path of a folder, or empty to disable the cache",
    "HEADRACE_DISK_CACHE": '"200GB", "1.5TiB" or a number of bytes',
    "HEADRACE_SIMD": "scalar, avx2, avx2-slow-pdep, avx512 or neon",
}
# Variables for the tests and benchmarks of a checkout.
_OF_THE_CHECKOUT = ("HEADRACE_BENCH_PHOTOS", "HEADRACE_TEST_DATA", "HEADRACE_VIDEO")


def warn_of_unread() -> None:
    """Warns of variables that are unknown or invalid."""
    processes = sys.modules.get("multiprocessing.process")  # workers have imported it
    if processes is None or processes.parent_process() is None:  # a worker's parent has warned
        for what in complaints(os.environ):
            warn(what)


def complaints(environment: Mapping[str, str]) -> Iterator[str]:
    for name in sorted(environment):
        if name.startswith("HEADRACE_") and name not in (*VARIABLES, *_OF_THE_CHECKOUT):
            yield f"{name}={environment[name]!r} is not read; known: {', '.join(VARIABLES)}"
    problem = _problem_of(cache := environment.get("HEADRACE_CACHE", ""))
    if problem:
        yield f"HEADRACE_CACHE={cache!r} {problem}; give {VARIABLES['HEADRACE_CACHE']}"


def _problem_of(cache: str) -> str:
    if not cache:
        return ""
    folder = Path(cache)
    if not folder.is_absolute():
        return "is relative, so it would be a different folder in each working directory"
    nearest = next((path for path in (folder, *folder.parents) if _exists(path)), Path("/"))
    if not nearest.is_dir():
        return f"cannot be a folder because {nearest} is a file; nothing is cached"
    # An existing folder may be filled by another user for this one to read.
    if nearest != folder and not os.access(nearest, os.W_OK | os.X_OK):
        return f"cannot be created because {nearest} is not writable; nothing is cached"
    return ""


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # the name is too long, or a folder is not accessible
        return False
