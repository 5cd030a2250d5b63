#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The time of each decoding stage at each SIMD level on this CPU, in one table.

    python3 bench/level_table.py build/release PHOTOS    # a build folder with bench/micro's
    programs

First one core: for each stage the microseconds per picture at AVX2 and AVX-512, the speed-up of the
latter, and the time of another CPU (a Zen 5). If a stage is slower at AVX-512 than at AVX2, or
compares worse with that CPU than the other stages do, the level is a bad choice for it. Then all
cores at once, as a loader's workers run: the entropy stage with four, three and two pictures in
parallel lanes on each core, and whole samples at both levels.

Takes a minute, and only needs Python's standard library. Reports the minimum over several
repetitions.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

# Name of a stage -> program, and its benchmark at a level (2: avx512, 1: avx2; or their names).
STAGES: dict[str, tuple[str, str]] = {
    "unstuff": ("huffman_bench", "unstuff_all/{name}"),
    "unstuff, make tables": ("huffman_bench", "entropy/{name}_prepared"),
    "the same and walk": ("huffman_bench", "entropy/{name}_walked"),
    "entropy, 4 pictures together": ("huffman_bench", "entropy/{name}"),
    "entropy, 3 pictures together": ("huffman_bench", "entropy/{name}_3_lanes"),
    "entropy, 2 pictures together": ("huffman_bench", "entropy/{name}_2_lanes"),
    "inverse DCT of a block, in ns": ("jpeg_rows_bench", "idct/{name}"),
    "color of 4:4:4": ("jpeg_rows_bench", "upsample and color/444/{name}"),
    "color of 4:2:0": ("jpeg_rows_bench", "upsample and color/420/{name}"),
    "packed: entropy": ("packed_jpeg_bench", "entropy/{number}/0"),
    "packed: crop": ("packed_jpeg_bench", "decode/crop/{number}/0"),
    "packed: sample": ("packed_jpeg_bench", "training_sample/{number}/0"),
    "resize: tables": ("render_bench", "tables/{number}"),
    "resize: channels apart": ("render_bench", "deinterleave/{number}"),
    "resize: along rows": ("render_bench", "horizontal/{number}"),
    "resize: across rows": ("render_bench", "vertical/{number}"),
    "store float32": ("render_bench", "store/{number}/8"),
    "store float16": ("render_bench", "store/{number}/10"),
    "sample of a plain file": ("one_core_bench", "sample/plain/all/{name}"),
    "sample of a packed file": ("one_core_bench", "sample/packed/all/{name}"),
}
LEVELS = {"avx2": 1, "avx512": 2}
# An EPYC (Zen 5), minimum of four runs, under other load: microseconds per picture at AVX2 and
# AVX-512.
ZEN5: dict[str, tuple[float, float]] = {
    "unstuff": (11.1, 10.7),
    "unstuff, make tables": (15.9, 14.5),
    "the same and walk": (191.9, 190.0),
    "entropy, 4 pictures together": (433.5, 303.9),
    "entropy, 3 pictures together": (453.4, 308.2),
    "entropy, 2 pictures together": (489.8, 333.8),
    "inverse DCT of a block, in ns": (11.7, 9.7),
    "color of 4:4:4": (157.4, 128.0),
    "color of 4:2:0": (252.4, 219.6),
    "packed: entropy": (99.6, 99.7),
    "packed: crop": (127.9, 105.9),
    "packed: sample": (209.7, 171.5),
    "resize: tables": (3.3, 2.8),
    "resize: channels apart": (9.3, 4.4),
    "resize: along rows": (30.1, 22.3),
    "resize: across rows": (18.0, 16.1),
    "store float32": (15.9, 13.6),
    "store float16": (17.7, 15.2),
    "sample of a plain file": (461.6, 365.8),
    "sample of a packed file": (215.3, 176.5),
}
TOGETHER = {
    "entropy, 4 pictures together": ("huffman_bench", "entropy/avx512"),
    "entropy, 3 pictures together": ("huffman_bench", "entropy/avx512_3_lanes"),
    "entropy, 2 pictures together": ("huffman_bench", "entropy/avx512_2_lanes"),
    "sample of a plain file, avx2": ("one_core_bench", "sample/plain/all/avx2"),
    "sample of a plain file, avx512": ("one_core_bench", "sample/plain/all/avx512"),
}


def value_of(result: dict[str, float]) -> float:
    """Microseconds per picture or per million pixels, or nanoseconds per block."""
    for counter in ("us_per_picture", "us_a_picture", "us/MP", "ns/block"):
        if counter in result:
            return result[counter]
    return 1e6 / result["items_per_second"]


class Programs:
    def __init__(self, folder: Path, photos: Path) -> None:
        self.folder = folder
        self.environment = dict(os.environ, HEADRACE_BENCH_PHOTOS=str(photos))
        if photos.name == "photos":  # programs that expect a corpus of that layout
            self.environment["HEADRACE_TEST_DATA"] = str(photos.parent)

    def start(
        self, program: str, names: list[str], core: int, repetitions: int, seconds: float
    ) -> tuple[subprocess.Popen[bytes], Path]:
        out = Path(tempfile.mkstemp(suffix=".json")[1])
        pattern = "^(" + "|".join(names) + ")$"
        command = [
            str(self.folder / program),
            f"--benchmark_filter={pattern}",
            f"--benchmark_out={out}",
            "--benchmark_out_format=json",
            "--benchmark_enable_random_interleaving=true",
            f"--benchmark_repetitions={repetitions}",
            f"--benchmark_min_time={seconds}",
        ]
        process = subprocess.Popen(
            command,
            env=self.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=lambda: os.sched_setaffinity(0, {core}),
        )
        return process, out

    @staticmethod
    def smallest(process: subprocess.Popen[bytes], out: Path) -> dict[str, float]:
        process.wait()
        text = out.read_text()
        out.unlink()
        least: dict[str, float] = {}
        for one in json.loads(text)["benchmarks"] if text else []:
            if one["run_type"] == "iteration" and not one.get("error_occurred"):
                name = one["run_name"]
                least[name] = min(value_of(one), least.get(name, float("inf")))
        return least


def names_of(stage: str) -> dict[str, str]:
    return {
        level: STAGES[stage][1].format(name=level, number=number)
        for level, number in LEVELS.items()
    }


def one_core(programs: Programs, repetitions: int) -> dict[str, dict[str, float]]:
    core = max(os.sched_getaffinity(0))
    measured: dict[str, dict[str, float]] = {}
    for program in dict.fromkeys(program for program, _ in STAGES.values()):
        stages = [stage for stage, (its, _) in STAGES.items() if its == program]
        names = [name for stage in stages for name in names_of(stage).values()]
        results = programs.smallest(*programs.start(program, names, core, repetitions, 0.05))
        for stage in stages:
            measured[stage] = {
                level: results[name] for level, name in names_of(stage).items() if name in results
            }
    return measured


def all_cores(programs: Programs) -> None:
    cores = sorted(os.sched_getaffinity(0))
    print(f"\n{len(cores)} cores at once: microseconds per image on each, images/s of all")
    for stage, (program, name) in TOGETHER.items():
        started = [programs.start(program, [name], core, 3, 0.3) for core in cores]
        values = [programs.smallest(*one) for one in started]
        least = [value[name] for value in values if name in value]
        if least:
            mean = sum(least) / len(least)
            rate = sum(1e6 / value for value in least)
            print(f"{stage:34} {mean:10.1f} {rate:10,.0f}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", type=Path, help="the folder of bench/micro's programs")
    parser.add_argument("photos", type=Path, help="a folder of JPEG files")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--one-core", action="store_true", help="skip the measurement on all cores")
    arguments = parser.parse_args()
    programs = Programs(arguments.programs.resolve(), arguments.photos.resolve())

    print(f"{'us per image':34} {'avx2':>9} {'avx512':>9} {'gain':>5}   of a Zen 5's time")
    for stage, levels in one_core(programs, arguments.repetitions).items():
        if len(levels) < len(LEVELS):
            print(f"{stage:34} not measured")
            continue
        avx2, avx512 = levels["avx2"], levels["avx512"]
        line = f"{stage:34} {avx2:9.1f} {avx512:9.1f} {avx2 / avx512:5.2f}"
        if known := ZEN5.get(stage):
            line += f"   {avx2 / known[0]:.2f} {avx512 / known[1]:.2f}"
        print(line + ("   slower!" if avx512 > avx2 * 1.02 else ""), flush=True)
    if not arguments.one_core:
        all_cores(programs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
