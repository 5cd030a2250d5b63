# SPDX-License-Identifier: Apache-2.0
"""Runs the single-core benchmarks of bench/micro and keeps the minimum time of each.

one_core_bench measures the cost of a picture in each format and at each SIMD level; the other
programs add the decoding stages.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from picture_sets import PictureSet

PROGRAMS = ("one_core_bench", "huffman_bench", "jpeg_rows_bench")
REPETITIONS = 9
MIN_SECONDS = 0.2  # seconds of each repetition


def measure(build: Path, sets: list[PictureSet], core: int) -> dict[str, Any]:
    """Each program's results by benchmark name."""
    found = [build / program for program in PROGRAMS if (build / program).exists()]
    for program in PROGRAMS:
        if build / program not in found:
            print(f"  {program} is skipped: not in {build}", file=sys.stderr)
    # Subsets come after the full set: the programs choose their own.
    return {program.name: run(program, sets[0], core) for program in found}


def run(
    program: Path,
    pictures: PictureSet,
    core: int,
    repetitions: int = REPETITIONS,
    min_seconds: float = MIN_SECONDS,
) -> dict[str, Any]:
    """Runs a program on one core. Repetitions are interleaved at random, so that noise affects all
    equally.

    A result has `us_per_picture` and the program's other counters, from the fastest repetition.
    """
    print(f"  {program.name} on {pictures.name}", file=sys.stderr, flush=True)
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        command = [
            str(program),
            f"--benchmark_out={out.name}",
            "--benchmark_out_format=json",
            "--benchmark_enable_random_interleaving=true",
            f"--benchmark_repetitions={repetitions}",
            f"--benchmark_min_time={min_seconds}",
        ]
        environment = dict(os.environ, HEADRACE_BENCH_PHOTOS=str(pictures.folder))
        if pictures.folder.name == "photos":  # programs that expect a corpus of that layout
            environment.setdefault("HEADRACE_TEST_DATA", str(pictures.folder.parent))
        subprocess.run(
            command,
            env=environment,
            stdout=subprocess.DEVNULL,
            check=True,
            preexec_fn=lambda: os.sched_setaffinity(0, {core}),
        )
        answer = json.load(out)
    return {"pictures": pictures.name, "results": fastest(answer["benchmarks"])}


def fastest(benchmarks: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """The fastest repetition of each benchmark: its time in ms, and its counters."""
    keep: dict[str, dict[str, Any]] = {}
    for one in benchmarks:
        if one["run_type"] != "iteration" or one.get("error_occurred"):
            continue
        name = one["run_name"]
        if name not in keep or one["real_time"] < keep[name]["real_time"]:
            keep[name] = one
    unit = {"ns": 1e-6, "us": 1e-3, "ms": 1.0, "s": 1e3}
    about = {"real_time", "cpu_time", "iterations", "repetitions", "threads"}
    results = {}
    for name, one in keep.items():
        results[name] = {"ms": one["real_time"] * unit[one["time_unit"]]}
        results[name] |= {
            key: value
            for key, value in one.items()
            if isinstance(value, float) and key not in about
        }
    return results
