# SPDX-License-Identifier: Apache-2.0
"""Copies the header of Debian's Python that the compilers of a wheel would not find.

Debian's /usr/include/python3.N/pyconfig.h only includes that of the architecture,
<x86_64-linux-gnu/python3.N/pyconfig.h>. Its folder cannot be searched where it is: it also contains
the headers of this machine's C library (codec_headers.py).
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from places import PYTHON_HEADERS

INCLUDE = "import sysconfig; print(sysconfig.get_path('include'))"


def copy_headers(folder: Path, system: Path = Path("/usr/include")) -> None:
    """What this folder's configuration includes; with other builds of Python nothing."""
    text = (folder / "pyconfig.h").read_text()
    for name in re.findall(r"^#\s*include\s*<(x86_64-linux-gnu/[^>]+)>", text, re.M):
        if not (system / name).exists():
            raise SystemExit(f"{folder}/pyconfig.h includes <{name}>, which is not in {system}")
        (PYTHON_HEADERS / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(system / name, PYTHON_HEADERS / name)


def copy_headers_of(python: str | Path) -> None:
    done = subprocess.run([python, "-c", INCLUDE], capture_output=True, text=True, check=True)
    copy_headers(Path(done.stdout.strip()))
