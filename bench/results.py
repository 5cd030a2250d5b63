# SPDX-License-Identifier: Apache-2.0
"""The output of compare.py: JSON with everything, Markdown and charts for readers."""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from pathlib import Path
from typing import Any

import tables

DOES = {
    "imagenet-train": "decode, random resized crop to 224, flip, normalize, float32",
    "color-jitter": "decode, random resized crop to 224, flip, ColorJitter(.4, .4, .4, .1), "
    "normalize, float32",
    "trivial-augment": "decode, random resized crop to 224, flip, TrivialAugmentWide, normalize, "
    "float32, RandomErasing(.1)",
    "mix": "decode, random resized crop to 224, flip, normalize, float32, MixUp(.2) or CutMix(1) "
    "of the batch",
    "ssd300": "decode, RandomPhotometricDistort, RandomZoomOut, RandomIoUCrop, flip, resize to "
    "300, SanitizeBoundingBoxes, float32; boxes and labels per record",
    "mosaic": "decode, mosaic of four at 640, random translation and scale, HSV, flip, remaining "
    "boxes, uint8",
    "cifar10": "decode 32x32, random crop with 4 pixels of padding, flip, normalize, float32",
}


def describe(args: argparse.Namespace, cores: set[int]) -> dict[str, Any]:
    """The conditions of a run."""
    return {
        "date": time.strftime("%Y-%m-%d %H:%M"),
        "machine": {
            "processor": processor(),
            "system": platform.platform(),
            "cores_used": sorted(cores),
            "cores_allowed": len(os.sched_getaffinity(0)),
            "load_average": os.getloadavg()[0],
        },
        "workload": args.workload,
        "does": DOES[args.workload],
        "batch_size": args.batch_size,
        "threads": args.threads,
        "rounds": args.rounds,
        "turn_seconds": args.turn,
        "cold_rounds": args.cold,
        "sets": [],
    }


def processor() -> str:
    """The CPU's name, its supported SIMD levels, and which one is forced."""
    name, flags = platform.machine(), ""
    with open("/proc/cpuinfo") as lines:
        for line in lines:
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                name = value.strip()
            if key.strip() == "flags":
                flags = value
                break
    level = next((x for x in ("avx512_vbmi2", "avx2") if x in flags), "")
    named = {"avx512_vbmi2": "AVX-512", "avx2": "AVX2", "": ""}[level]
    if platform.machine() == "aarch64":
        named = "NEON"
    forced = os.environ.get("HEADRACE_SIMD")
    parts = [name, named, f"HEADRACE_SIMD={forced}" if forced else ""]
    return ", ".join(part for part in parts if part)


def write(folder: Path, report: dict[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    name = report["workload"]
    (folder / f"{name}.json").write_text(json.dumps(report, indent=2) + "\n")
    (folder / f"{name}.md").write_text(markdown(report))
    for pictures in report["sets"]:
        chart = tables.loaders_chart(report, pictures["name"])
        (folder / f"{name}-{pictures['name']}.svg").write_text(chart)
    if "one_core_bench" in report.get("micro", {}):
        (folder / "one-core.svg").write_text(tables.one_core_chart(report))


def markdown(report: dict[str, Any]) -> str:
    """All results as Markdown."""
    parts = [f"# {report['workload']}: {report['does']}", tables.circumstances(report)]
    for pictures in report["sets"]:
        name = pictures["name"]
        parts += [f"## {name}", tables.pictures(report, name), tables.loaders(report, name)]
        parts += [tables.differences(report, name)]
        parts += [tables.packing(report, name), tables.hashes(report, name)]
    if "one_core_bench" in report.get("micro", {}):
        parts += ["## One core", tables.one_core(report), tables.stages(report)]
    if "huffman_bench" in report.get("micro", {}):
        parts += [tables.entropy(report)]
    if "jpeg_rows_bench" in report.get("micro", {}):
        parts += [tables.kernels(report)]
    if "scaling" in report:
        parts += ["## Scaling", tables.scaling(report)]
    return "\n\n".join(parts) + "\n"
