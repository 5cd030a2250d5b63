# SPDX-License-Identifier: Apache-2.0
"""How decoding scales with the number of cores: one loader's threads, compared with independent
libjpeg-turbo processes.

Independent processes only share the memory bus and the clock rate, so their scaling is an upper
bound for this machine.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parent / "libjpeg_decode.cc"
ROUNDS = 5
SECONDS = 2.0


def measure(photos: Path, files: list[str], cores: list[int]) -> dict[str, Any] | None:
    """Images per second on one core and on all; None if the decode loop cannot be built."""
    with tempfile.TemporaryDirectory() as folder:
        program = build(Path(folder))
        if program is None:
            return None
        listing = Path(folder) / "files.txt"
        listing.write_text("\n".join(files))
        rates: dict[str, list[float]] = {"lib1": [], "libn": [], "ours1": [], "oursn": []}
        for _ in range(ROUNDS):
            rates["lib1"].append(independent(program, listing, cores[:1]))
            rates["ours1"].append(headrace(photos, len(files), cores[:1]))
            rates["libn"].append(independent(program, listing, cores))
            rates["oursn"].append(headrace(photos, len(files), cores))
    median = {name: statistics.median(values) for name, values in rates.items()}
    ours, library = median["oursn"] / median["ours1"], median["libn"] / median["lib1"]
    return {
        "cores": len(cores),
        "libjpeg_turbo": {"one": round(median["lib1"], 1), "all": round(median["libn"], 1)},
        "headrace": {"one": round(median["ours1"], 1), "all": round(median["oursn"], 1)},
        "rounds": {name: [round(v, 1) for v in values] for name, values in rates.items()},
        "share_of_independent_scaling": round(ours / library, 4),
        "share_of_independent_rate": round(median["oursn"] / median["libn"], 4),
    }


def build(folder: Path) -> Path | None:
    """The decode loop, compiled against the system's libjpeg-turbo."""
    compiler = shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        print("scaling is skipped: no C++ compiler", file=sys.stderr)
        return None
    program = folder / "libjpeg_decode"
    command = [compiler, "-O2", "-std=c++20", str(SOURCE), "-o", str(program), "-ljpeg"]
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode:
        lines = ran.stderr.strip().splitlines()
        error = next((line for line in lines if "error" in line), lines[0])
        print(f"scaling is skipped: {error}", file=sys.stderr)
        return None
    return program


def independent(program: Path, listing: Path, cores: list[int]) -> float:
    """The sum of the rates of concurrent processes, one per core."""
    command = [str(program), str(listing), str(SECONDS)]
    processes = [
        subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=lambda core=core: os.sched_setaffinity(0, {core}),
        )
        for core in cores
    ]
    return sum(float(process.communicate()[0]) for process in processes)


def headrace(photos: Path, count: int, cores: list[int]) -> float:
    repeat = max(1, 2000 // count)
    command = [sys.executable, "-c", "from headrace.cli import main; main()", "bench", str(photos)]
    command += ["--preset", "decode", "--threads", str(len(cores)), "--repeat", str(repeat)]
    command += ["--batch-size", "32", "--epochs", "1", "--json"]
    ran = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=lambda: os.sched_setaffinity(0, set(cores)),
    )
    return json.loads(ran.stdout)["images_per_second"]
