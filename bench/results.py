# SPDX-License-Identifier: Apache-2.0
"""What compare.py writes: JSON with everything, Markdown and a chart for people."""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from pathlib import Path
from typing import Any

from headrace.report import Bar, bar_chart, standalone

DOES = {
    "imagenet-train": "decode, random resized crop to 224, flip, normalize, float32",
    "cifar10": "decode 32x32, random crop with 4 pixels of padding, flip, normalize, float32",
}


def describe(
    args: argparse.Namespace, photos: list[tuple[str, int]], cores: set[int]
) -> dict[str, Any]:
    """The circumstances of a run."""
    return {
        "date": time.strftime("%Y-%m-%d %H:%M"),
        "machine": {
            "processor": processor(),
            "system": platform.platform(),
            "cores_used": sorted(cores),
            "cores_allowed": len(os.sched_getaffinity(0)),
        },
        "workload": args.workload,
        "does": DOES[args.workload],
        "photos": len(photos),
        "bytes": sum(os.path.getsize(path) for path, _ in photos),
        "repeat": args.repeat,
        "batch_size": args.batch_size,
        "threads": args.threads,
        "rounds": args.rounds,
        "cold_rounds": args.cold,
    }


def processor() -> str:
    with open("/proc/cpuinfo") as lines:
        for line in lines:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()


def write(folder: Path, report: dict[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    name = report["workload"]
    (folder / f"{name}.json").write_text(json.dumps(report, indent=2) + "\n")
    (folder / f"{name}.md").write_text(markdown(report))
    (folder / f"{name}.svg").write_text(chart(report))


def sorted_peers(report: dict[str, Any]) -> list[dict[str, Any]]:
    return sorted(report["peers"], key=lambda peer: -peer["images_per_second"])


def chart(report: dict[str, Any]) -> str:
    bars = []
    for peer in sorted_peers(report):
        rounds = peer["images_per_second_rounds"]
        bars.append(
            Bar(
                peer["name"],
                peer["images_per_second"],
                low=min(rounds),
                high=max(rounds),
                ours=peer["name"] == "Headrace",
            )
        )
    title = f"{report['workload']}, {report['threads']} CPU threads"
    return standalone(bar_chart(bars, title, "images/s; median, and range over the rounds"))


def markdown(report: dict[str, Any]) -> str:
    machine = report["machine"]
    mean_kb = report["bytes"] / report["photos"] / 1000
    lines = [
        f"# {report['workload']}: {report['does']}",
        "",
        f"{report['photos']:,} JPEGs (mean {mean_kb:.0f} kB) listed {report['repeat']} times, "
        f"batches of {report['batch_size']}, {report['threads']} threads on as many pinned cores "
        f"of {machine['processor']}; {report['date']}.",
        f"Median of {report['rounds']} alternating rounds; smallest and largest in brackets. "
        "Warm: files in the page cache. Cold: the folder once, dropped from the page cache before.",
        "",
        "| | version | images/s, warm | images/s, cold | CPU s per 1,000 | peak PSS MiB "
        "| start to first batch s |",
        "|---|---|---|---|---|---|---|",
    ]
    for peer in sorted_peers(report):
        rounds = peer["images_per_second_rounds"]
        cold = peer["images_per_second_cold"]
        lines.append(
            f"| {peer['name']} | {peer['version']} "
            f"| {peer['images_per_second']:,.0f} ({min(rounds):,.0f}-{max(rounds):,.0f}) "
            f"| {f'{cold:,.0f}' if cold else '-'} | {peer['cpu_seconds_per_1000']:.2f} "
            f"| {peer['peak_pss_mib']:,} | {peer['start_to_first_batch_seconds']:.2f} |"
        )
    if scaling := report.get("scaling"):
        lines += ["", *scaling_lines(scaling)]
    return "\n".join(lines) + "\n"


def scaling_lines(scaling: dict[str, Any]) -> list[str]:
    cores = scaling["cores"]
    lines = [
        f"Whole decoding to RGB (`headrace bench --preset decode`) and {cores} separate "
        "processes of a plain libjpeg-turbo loop, each on a core of its own:",
        "",
        f"| | 1 core | {cores} cores | scaling |",
        "|---|---|---|---|",
    ]
    for name, key in (("Headrace", "headrace"), ("libjpeg-turbo processes", "libjpeg_turbo")):
        one, many = scaling[key]["one"], scaling[key]["all"]
        lines.append(f"| {name} | {one:,.0f} | {many:,.0f} | {many / one:.2f} |")
    share = 100 * scaling["share_of_independent_scaling"]
    rate = 100 * scaling["share_of_independent_rate"]
    lines += [
        "",
        f"Headrace scales by {share:.0f} % of what separate processes do; its rate on all ",
    ]
    lines[-1] += f"cores is {rate:.0f} % of theirs."
    return lines
