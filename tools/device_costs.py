#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Costs of the GPU kernels, read from their machine code: a check that needs no GPU.

    python tools/device_costs.py build/release            # compare with tools/device_costs.json
    python tools/device_costs.py build/release --write    # after a change of a kernel
    python tools/device_costs.py build/release --photos FOLDER   # one sample of other pictures
    python tools/device_costs.py build/release --every-bits 4096   # with a finer row index

For each kernel and architecture: registers, shared memory, stack and local memory, instructions;
and for the largest innermost loop its instructions by class, the sum of the compiler's stall
cycles, and how many of them wait for memory. Also the warp instructions of one sample, a random
crop that is decoded, resized to 224 x 224 and finished in 16 bits: rounds of loops, which
build/release/lockstep_counts counts on pictures that it makes, times the instructions of the loops
on sm_90.

Numbers are specific to a release of nvcc; those of other releases are not compared. Properties
required of every release (no stack, no local memory, the decoder's loop) are always checked. Exit
status 1: a number exceeds the file's by more than the tolerance, or exceeds its limit; 4: cuobjdump
is missing.

The stall counts are bits 105 to 108 of an instruction and the barriers it waits for bits 116 to
121. NVIDIA documents neither; they apply to sm_70 and later.
"""

from __future__ import annotations

import argparse
import collections
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

NUMBERS = Path(__file__).with_suffix(".json")
TOLERANCE = 0.03
ARCHITECTURE = "sm_90"  # of the sample
COMPARED = ("registers", "shared", "instructions", "loop", "stalls", "waits")
# For any compiler and architecture: kernel -> number -> limit.
LIMITS = {"walk_groups": {"loop": 69, "stalls": 180}}
MOST_INSTRUCTIONS = 900_000  # of a warp, for all of a sample
LONGEST_WALK = 2_500  # symbols: determines a batch's time

Kernels = dict[str, dict[str, dict[str, int]]]  # architecture -> kernel -> numbers
Codes = dict[str, list["Instruction"]]  # kernel -> what it is


def cuobjdump() -> str | None:
    """From PATH, or from PyPI's nvidia-cuda-cuobjdump."""
    found = shutil.which("cuobjdump")
    if found:
        return found
    for folder in map(Path, sys.path):
        for program in sorted(folder.glob("nvidia/cu*/bin/cuobjdump")):
            return str(program)
    return None


def output_of(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def short_name(symbol: str) -> str:
    """`run_threads<SumDc>` is SumDc: the kernel's name, without namespaces."""
    name = output_of("c++filt", symbol).strip()
    launched = re.search(r"run_(?:threads|warps)<(.*)>\(", name)
    name = launched.group(1) if launched else name.split("(headrace")[0]
    name = name.replace("(anonymous namespace)::", "").replace("headrace::", "")
    return re.sub(r"\((\w+)\)(\d+)", r"\1 \2", name).removeprefix("void ").strip(" >") + (
        ">" if "<" in name else ""
    )


def kind_of(opcode: str) -> str:
    operation = opcode.split(".")[0]
    if operation in ("IMAD", "FFMA", "FMUL", "FADD", "IDP"):
        return "imad"
    if operation in ("LDL", "STL"):
        return "local"
    if re.match(r"(LD|ST|ATOM|RED|SHFL)", operation):
        return "memory"
    if operation in ("BRA", "BSSY", "BSYNC", "BREAK", "EXIT", "BAR", "WARPSYNC", "CALL", "RET"):
        return "control"
    if operation in ("POPC", "FLO", "BREV", "I2F", "F2I", "MUFU"):
        return "slow"
    return "uniform" if operation.startswith(("U", "R2UR")) else "alu"


class Instruction:
    def __init__(self, address: int, text: str) -> None:
        self.address = address
        words = text.split()
        self.opcode = words[1] if text.startswith("@") else words[0]
        self.stall = self.waits = 0
        jump = re.search(r"\bBRA\S*\s+.*?(?:`\(\S*|0x)([0-9a-f]+)\s*$", text)
        self.target = int(jump.group(1), 16) if jump else None


def functions(sass: str) -> dict[str, list[Instruction]]:
    found: dict[str, list[Instruction]] = {}
    current: list[Instruction] = []
    for line in sass.splitlines():
        if name := re.search(r"Function : (\S+)", line):
            current = found.setdefault(name.group(1), [])
        elif text := re.match(r"\s+/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;", line):
            current.append(Instruction(int(text.group(1), 16), text.group(2)))
        elif current and (second := re.match(r"\s+/\* 0x([0-9a-f]{16}) \*/", line)):
            control = int(second.group(1), 16)
            current[-1].stall, current[-1].waits = control >> 41 & 15, int(control >> 52 & 63 != 0)
    return found


class Loop:
    """Ends with a branch to its start. `own`: instructions that are not in an inner loop."""

    def __init__(self, first: int, last: int, code: list[Instruction]) -> None:
        self.first, self.last = first, last
        self.body = [i for i in code if first <= i.address <= last]
        self.own = self.body
        self.inner: list[Loop] = []

    def holds(self, other: Loop) -> bool:
        return self is not other and self.first <= other.first and other.last <= self.last

    def has(self, operation: str) -> bool:
        return any(i.opcode.startswith(operation) for i in self.own)


def loops_of(code: list[Instruction]) -> list[Loop]:
    ends: dict[int, int] = {}  # several branches may lead back to the same start
    for i in code:
        if i.target is not None and i.target < i.address:
            ends[i.target] = max(i.address, ends.get(i.target, 0))
    loops = [Loop(first, last, code) for first, last in sorted(ends.items())]
    for loop in loops:
        within = [other for other in loops if loop.holds(other)]
        loop.inner = [o for o in within if not any(other.holds(o) for other in within)]
        loop.own = [i for i in loop.body if not any(i in other.body for other in loop.inner)]
    return loops


def largest_innermost(code: list[Instruction]) -> list[Instruction]:
    return max((loop.body for loop in loops_of(code) if not loop.inner), key=len, default=[])


def numbers_of(code: list[Instruction]) -> dict[str, int]:
    while code and code[-1].opcode in ("NOP", "BRA"):  # padding of the last line
        code.pop()
    loop = largest_innermost(code)
    kinds = collections.Counter(kind_of(i.opcode) for i in loop)
    return {
        "instructions": len(code),
        "local": sum(kind_of(i.opcode) == "local" for i in code),
        "loop": len(loop),
        "stalls": sum(i.stall for i in loop),
        "waits": sum(i.waits for i in loop),
        **{f"loop_{kind}": count for kind, count in sorted(kinds.items())},
    }


def read(library: Path, program: str) -> tuple[Kernels, Codes]:
    """Numbers of all architectures, code of one."""
    kernels: Kernels = {}
    codes: Codes = {}
    architectures = re.findall(r"\.(sm_\d+)\.cubin", output_of(program, "--list-elf", str(library)))
    for architecture in sorted(set(architectures), key=lambda name: int(name[3:])):
        select = (program, "-arch", architecture)
        found = kernels.setdefault(architecture, {})
        for symbol, code in functions(output_of(*select, "--dump-sass", str(library))).items():
            found[short_name(symbol)] = numbers_of(code)
            if architecture == ARCHITECTURE:
                codes[short_name(symbol)] = code
        usage = output_of(*select, "--dump-resource-usage", str(library))
        for symbol, line in re.findall(r"Function (\S+):\s+(REG:.*)", usage):
            given = dict(re.findall(r"(\w+)(?:\[\d+\])?:(\d+)", line))
            numbers = found[short_name(symbol)]
            numbers["registers"], numbers["shared"] = int(given["REG"]), int(given["SHARED"])
            numbers["stack"] = int(given["STACK"]) + int(given["LOCAL"])
    return kernels, codes


def resize_costs(codes: Codes, counts: dict[str, float]) -> dict[str, float]:
    """Warp instructions of resize and finish: an upper bound, because skipped instructions count,
    too."""

    def only(loops: list[Loop]) -> Loop:
        if len(loops) != 1:
            raise SystemExit(f"{Path(__file__).name}: {len(loops)} loops where one was expected")
        return loops[0]

    def outer(loops: list[Loop], loop: Loop) -> list[Loop]:  # from the outermost
        return [other for other in loops if other.holds(loop)]

    # Of the loops that pack results, one handles four taps at once, and one has an inner loop for
    # that.
    loops = loops_of(codes["ResampleRows<SampleLayout 0>"])
    packs = [loop for loop in loops if loop.has("I2IP")]
    row = only([loop for loop in packs if loop.has("IDP")])
    long_row = only([loop for loop in packs if not loop.has("IDP")])
    step = only([loop for loop in long_row.inner if loop.has("IDP")])
    thread, *channel = outer(loops, row)
    along = (
        counts["along_warps"] * (len(thread.own) + 3 * sum(len(loop.own) for loop in channel))
        + counts["along_rows"] * len(row.own)
        + counts["along_long_rows"] * len(long_row.own)
        + counts["along_steps"] * len(step.own)
    )
    loops = loops_of(codes["ResampleColumns<SampleLayout 0>"])
    row = only([loop for loop in loops if loop.has("I2IP")])
    pair = only([loop for loop in row.inner if loop.has("IDP")])
    thread, line = outer(loops, row)
    across = (
        counts["across_warps"] * len(thread.own)
        + counts["across_lines"] * len(line.own)
        + counts["across_rows"] * len(row.own)
        + counts["across_pairs"] * len(pair.own)
    )
    loops = loops_of(codes["MakeResizeTables"])
    taps = sorted((len(loop.own) for loop in loops if loop.has("DMUL")), reverse=True)
    weights = counts["weight_warps"] * len(loops[0].own) + counts["weight_taps"] * sum(taps[:2])
    # One of six copies, for three element sizes: the one that stores four 16-bit elements.
    loops = loops_of(codes["PictureBatch"])
    fours = only([loop for loop in loops if not loop.inner and loop.has("STG.E.64")])
    item, row, channel = outer(loops, fours)
    finish = (
        counts["finish_warps"] * len(item.own) / 6
        + counts["finish_rows"] * (len(row.own) + 3 * len(channel.own))
        + counts["finish_fours"] * len(fours.own)
    )
    return {"weights": weights, "along rows": along, "across rows": across, "finish": finish}


def sample_costs(
    kernels: dict[str, dict[str, int]], codes: Codes, counts: dict[str, float]
) -> dict[str, dict[str, float]]:
    """Warp instructions of a crop, by kernel; code outside of loops counts once per warp."""

    def cost(name: str, warps: float, rounds: float) -> float:
        kernel = kernels[name]
        return (kernel["instructions"] - kernel["loop"]) * warps + kernel["loop"] * rounds

    warps = counts["walk_warps"]
    walk = cost("walk_groups", warps, counts["walk_steps"])
    (zeros,) = (loop for loop in loops_of(codes["walk_groups"]) if loop.has("STG.E.128"))
    walk += len(zeros.own) * counts["clear_rounds"]
    tables = kernels["MakeTables"]
    made = (
        tables["instructions"] * counts["table_warps"] + tables["loop"] * (counts["table_levels"])
    )
    dc = cost("SumDc", counts["dc_warps"], counts["dc_rounds"])
    transform = cost("TransformBlocks", counts["transform_warps"], counts["transform_warps"])
    plain, doubled = "ColorPixels<ColorKind 0>", "ColorPixels<ColorKind 1>"
    color = sum(
        cost(name, count, count)
        for name, count in (
            (plain, counts["color_warps_plain"]),
            (doubled, counts["color_warps_doubled"]),
        )
    )
    parts = {
        "tables": made,
        "walk": walk,
        "dc": dc,
        "transform": transform,
        "color": color,
    }
    decoded = sum(parts.values())
    resized = resize_costs(codes, counts)
    told = ("symbols", "walk_steps", "longest_walk", "usual_chain", "long_chain", "stretches")
    told += ("walk_groups", "upload_bytes", "scratch_bytes")
    told += ("file_bytes", "index_bytes", "resize_upload_bytes")
    return {
        "warp_instructions": {
            **parts,
            "decoded": decoded,
            **resized,
            "sum": decoded + sum(resized.values()),
        },
        "counts": {name: counts[name] for name in told},
    }


def too_much(now: dict, known: dict) -> list[str]:
    """Numbers that exceed the file's by more than the tolerance, and kernels missing from it."""
    found = []
    for architecture, kernels in now["kernels"].items():
        for name, numbers in kernels.items():
            before = known["kernels"].get(architecture, {}).get(name)
            if before is None:
                found.append(f"{architecture} {name}: not in {NUMBERS.name}")
                continue
            for what in COMPARED:
                if numbers[what] > before[what] * (1 + TOLERANCE):
                    found.append(f"{architecture} {name}: {what} {before[what]} -> {numbers[what]}")
    for group, numbers in now.get("sample", {}).items():
        for what, value in numbers.items():
            before = known.get("sample", {}).get(group, {}).get(what, 0)
            if value > before * (1 + TOLERANCE):
                found.append(f"a sample: {what} {before:,.0f} -> {value:,.0f}")
    return found


def beyond_limits(now: dict) -> list[str]:
    found = []
    for architecture, of_architecture in now["kernels"].items():
        for name, numbers in of_architecture.items():
            limits = {"stack": 0, "local": 0} | LIMITS.get(name, {})
            for what, limit in limits.items():
                if numbers[what] > limit:
                    found.append(f"{architecture} {name}: {what} {numbers[what]}, limit {limit}")
    total = now.get("sample", {}).get("warp_instructions", {}).get("sum", 0)
    longest = now.get("sample", {}).get("counts", {}).get("longest_walk", 0)
    if longest > LONGEST_WALK:
        found.append(f"a sample: a walk of {longest:,} symbols, limit {LONGEST_WALK:,}")
    if total > MOST_INSTRUCTIONS:
        found.append(f"a sample: {total:,.0f} warp instructions, limit {MOST_INSTRUCTIONS:,}")
    return found


def tell(now: dict) -> None:
    print(f"{'kernel, ' + ARCHITECTURE:28} registers  shared  instructions  loop  stalls  waits")
    for name, n in sorted(now["kernels"].get(ARCHITECTURE, {}).items()):
        print(
            f"{name:28} {n['registers']:9} {n['shared']:7} {n['instructions']:13} {n['loop']:5} "
            f"{n['stalls']:7} {n['waits']:6}"
        )
    for group, numbers in now.get("sample", {}).items():
        print(f"a sample, {group.replace('_', ' ')}:")
        for what, value in numbers.items():
            print(f"  {what:26} {value:12,.0f}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=Path, help="a build folder: build/release")
    parser.add_argument("--write", action="store_true", help="write these numbers to the file")
    parser.add_argument("--photos", type=Path, help="count on the JPEG files of this folder")
    parser.add_argument(
        "--every-bits", type=int, help="count with an index entry after this many bits"
    )
    arguments = parser.parse_args()
    program = cuobjdump()
    if program is None:
        print("no cuobjdump here: pip install nvidia-cuda-cuobjdump", file=sys.stderr)
        return 4
    cache = (arguments.build / "CMakeCache.txt").read_text()
    compiler = re.search(r"^CMAKE_CUDA_COMPILER:.*?=(.+)$", cache, re.M)
    if compiler is None:
        print("this build has no kernels for GPUs", file=sys.stderr)
        return 4
    version = re.search(r"release ([\d.]+)", output_of(compiler.group(1), "--version"))
    release = version.group(1) if version else "unknown"

    kernels, codes = read(arguments.build / "libheadrace.so", program)
    if ARCHITECTURE not in kernels:
        print("this build has no kernels for GPUs", file=sys.stderr)
        return 4
    now: dict = {"kernels": kernels}
    counter = arguments.build / "lockstep_counts"
    if counter.exists():
        options = ["--every-bits", str(arguments.every_bits)] if arguments.every_bits else []
        if arguments.photos:
            options.append(str(arguments.photos))
        counts = json.loads(output_of(str(counter), *options))
        now["sample"] = sample_costs(kernels[ARCHITECTURE], codes, counts)
    tell(now)

    known = json.loads(NUMBERS.read_text()) if NUMBERS.exists() else {}
    other = bool(arguments.photos or arguments.every_bits)
    wrong = [] if other else beyond_limits(now)
    if arguments.write and not other:
        known = {release: now}
        NUMBERS.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
    elif not other:
        if release in known:
            wrong += too_much(now, known[release])
        else:
            print(f"not compared: {NUMBERS.name} has no numbers of nvcc {release}")
    for line in wrong:
        print(f"too much: {line}")
    if wrong and not arguments.write:
        print(f"if a kernel was changed deliberately: {Path(sys.argv[0]).name} --write")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
