#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the kernels for GPUs cost, read from their machine code: a gate that needs no GPU.

    python tools/device_costs.py build/release            # compare with tools/device_costs.json
    python tools/device_costs.py build/release --write    # after a change of a kernel
    python tools/device_costs.py build/release --photos FOLDER   # one sample of other pictures

For each kernel and architecture: registers, shared memory, stack and local memory, instructions,
and of the largest innermost loop its instructions, by class, the sum of the stall cycles that the
compiler wrote into them, and how many of them wait for memory. For JPEG decoding moreover the warp
instructions of one random crop: rounds of loops, which build/release/lockstep_counts counts on
pictures that it makes, times the instructions of the loops on sm_90.

Numbers belong to a release of nvcc; those of another are not compared. What must hold for every
release (no stack, no local memory, the walk's loop) is checked always. Exit status 1: a number is
above its file's by more than the tolerance, or above its limit; 4: no cuobjdump here.

The stall counts are bits 105 to 108 of an instruction and the barriers it waits for bits 116 to
121. NVIDIA documents neither; they are so from sm_70 on.
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
# Whatever compiler, on that architecture: kernel -> number -> limit.
LIMITS = {"walk_pictures": {"loop": 69, "stalls": 180}}
MOST_INSTRUCTIONS = 600_000  # of a warp, for all of a sample's decoding

Kernels = dict[str, dict[str, dict[str, int]]]  # architecture -> kernel -> numbers


def cuobjdump() -> str | None:
    """From the PATH, or as PyPI's nvidia-cuda-cuobjdump has it."""
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
    """`run_threads<SumDc>` is SumDc: the name of what is compiled, without its namespaces."""
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


def largest_innermost(code: list[Instruction]) -> list[Instruction]:
    """Of the loops that contain no other: a loop ends with a branch to where it begins."""
    loops = [(i.target, i.address) for i in code if i.target is not None and i.target < i.address]
    inner = [
        (first, last)
        for first, last in loops
        if not any(first <= a and b <= last and (a, b) != (first, last) for a, b in loops)
    ]
    bodies = ([i for i in code if first <= i.address <= last] for first, last in inner)
    return max(bodies, key=len, default=[])


def numbers_of(code: list[Instruction]) -> dict[str, int]:
    while code and code[-1].opcode in ("NOP", "BRA"):  # what fills the last line
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


def read(library: Path, program: str) -> Kernels:
    kernels: Kernels = {}
    architectures = re.findall(r"\.(sm_\d+)\.cubin", output_of(program, "--list-elf", str(library)))
    for architecture in sorted(set(architectures), key=lambda name: int(name[3:])):
        select = (program, "-arch", architecture)
        found = kernels.setdefault(architecture, {})
        for symbol, code in functions(output_of(*select, "--dump-sass", str(library))).items():
            found[short_name(symbol)] = numbers_of(code)
        usage = output_of(*select, "--dump-resource-usage", str(library))
        for symbol, line in re.findall(r"Function (\S+):\s+(REG:.*)", usage):
            given = dict(re.findall(r"(\w+)(?:\[\d+\])?:(\d+)", line))
            numbers = found[short_name(symbol)]
            numbers["registers"], numbers["shared"] = int(given["REG"]), int(given["SHARED"])
            numbers["stack"] = int(given["STACK"]) + int(given["LOCAL"])
    return kernels


def sample_costs(
    kernels: dict[str, dict[str, int]], counts: dict[str, float]
) -> dict[str, dict[str, float]]:
    """Warp instructions of a crop, by kernel; what stands outside of loops counts once a warp."""

    def cost(name: str, warps: float, rounds: float) -> float:
        kernel = kernels[name]
        return (kernel["instructions"] - kernel["loop"]) * warps + kernel["loop"] * rounds

    warps = counts["walk_warps"]
    walk = cost("walk_pictures", warps, counts["walk_steps"])
    tables = kernels["MakeTables"]
    made = tables["instructions"] * counts["table_warps"] + tables["loop"] * (
        counts["table_finds"] + counts["table_levels"]
    )
    sums = kernels["SumDc"]  # at most: what is once a stretch counts for each of its MCUs
    dc = sums["instructions"] * (counts["dc_mcus"] + counts["dc_warps"]) + (
        sums["loop"] * counts["dc_blocks"]
    )
    transform = cost("TransformBlocks", counts["transform_warps"], counts["transform_warps"])
    plain, doubled = "ColorPixels<ColorKind 0>", "ColorPixels<ColorKind 1>"
    color = sum(
        cost(name, count, count)
        for name, count in (
            (plain, counts["color_warps_plain"]),
            (doubled, counts["color_warps_doubled"]),
        )
    )
    clear = kernels["ClearWords"]["loop"] * counts["clear_warps"]
    parts = {
        "tables": made,
        "clear": clear,
        "walk": walk,
        "dc": dc,
        "transform": transform,
        "color": color,
    }
    return {
        "warp_instructions": {**parts, "sum": sum(parts.values())},
        "counts": {
            name: counts[name]
            for name in ("symbols", "walk_steps", "longest_walk", "upload_bytes", "scratch_bytes")
        },
    }


def too_much(now: dict, known: dict) -> list[str]:
    """Numbers above those of the file by more than the tolerance, and kernels that it lacks."""
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
            limits = {"stack": 0, "local": 0}
            if architecture == ARCHITECTURE:
                limits |= LIMITS.get(name, {})
            for what, limit in limits.items():
                if numbers[what] > limit:
                    found.append(f"{architecture} {name}: {what} {numbers[what]}, limit {limit}")
    total = now.get("sample", {}).get("warp_instructions", {}).get("sum", 0)
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
    parser.add_argument("--write", action="store_true", help="make these the numbers of the file")
    parser.add_argument("--photos", type=Path, help="count on the JPEG files of this folder")
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

    now: dict = {"kernels": read(arguments.build / "libheadrace.so", program)}
    counter = arguments.build / "lockstep_counts"
    if counter.exists():
        folder = [str(arguments.photos)] if arguments.photos else []
        counts = json.loads(output_of(str(counter), *folder))
        now["sample"] = sample_costs(now["kernels"][ARCHITECTURE], counts)
    tell(now)

    known = json.loads(NUMBERS.read_text()) if NUMBERS.exists() else {}
    wrong = [] if arguments.photos else beyond_limits(now)
    if arguments.write:
        known[release] = now
        NUMBERS.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
    elif arguments.photos is None:
        if release in known:
            wrong += too_much(now, known[release])
        else:
            print(f"not compared: {NUMBERS.name} has no numbers of nvcc {release}")
    for line in wrong:
        print(f"too much: {line}")
    if wrong and not arguments.write:
        print(f"where a change of a kernel is meant: {Path(sys.argv[0]).name} --write")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
