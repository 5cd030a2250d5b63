# SPDX-License-Identifier: Apache-2.0
"""GOOD FILE RECORDS: opens a file and reads its first records; prints a line of JSON.

GOOD is an intact file of the same format, which is read before, so that what the reader loads once
(code, codecs) is not counted. The line has the outcome ("read", or the error's code), the bytes
that memory grew by at its peak, and the milliseconds of the whole process's CPU time.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np

import headrace as hr

# Read as a folder with this file in it.
MEDIA = (".jpg", ".png", ".webp", ".gif", ".bmp", ".ppm", ".tif", ".wav")


def memory(name: str) -> int:
    """A line of /proc/self/status, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) << 10
    raise LookupError(name)


def read(path: Path, records: int) -> str:
    try:
        source = hr.open(path.parent if path.suffix in MEDIA else path)
        for number in range(min(len(source), records)):
            for value in source[number].values():
                np.asarray(value).tobytes()[:1]
    except hr.Error as problem:
        return problem.code or f"UNNAMED {problem}"
    except Exception as problem:
        return f"UNNAMED {type(problem).__name__}: {problem}"
    return "read"


def main(good: str, file: str, records: str) -> None:
    read(Path(good), 1)
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins again at the present size
    before, begun = memory("VmRSS"), time.process_time()
    outcome = read(Path(file), int(records))
    seconds = time.process_time() - begun
    grown = max(0, memory("VmHWM") - before)
    print(json.dumps({"outcome": outcome, "bytes": grown, "ms": round(seconds * 1e3, 1)}))


main(*sys.argv[1:])
