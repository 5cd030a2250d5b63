# SPDX-License-Identifier: Apache-2.0
"""The results of bench/articles as Markdown."""

from __future__ import annotations

from typing import Any

HEAD = """# Comparisons from articles

Articles about slow input pipelines compare libraries, numbers of workers and ways to store small
files, each on its own machine. `python bench/articles PHOTOS` repeats these comparisons in one run.
Each row is a separate process with its workers, all pinned to the same {threads} cores; the rows of
a table take turns, {rounds} rounds. Rates are medians. CPU seconds include all processes of a row;
memory is the largest proportional set size, in which shared pages count once.

{processor}, {date}, load average {load_average:.1f} before the run.{load}
"""
GPU = """
## On a GPU

This run uses the CPU only. The same comparisons with batches on a GPU:
[prefetchers](../guide/prefetch.md), [small data on the device](../guide/small-data.md#on-a-gpu),
[whole loaders](../guide/gpu.md).
"""


def text(report: dict[str, Any]) -> str:
    load = ""
    if report["load_average"] > 0.5:
        load = " Other programs were using the machine: compare CPU seconds rather than rates."
    found = HEAD.format(**report, load=load)
    for section in report["sections"]:
        found += table(section)
    return found + GPU


def table(section: dict[str, Any]) -> str:
    unit = section["unit"]
    per = f"CPU s per {section['cpu_per']:,} {unit}"
    if section["cpu_per"] == 1:
        per = f"CPU s per {unit.removesuffix('s')}"
    head = ["", f"{unit}/s", per, "peak PSS, MiB", "start to first batch, s"]
    lines = [f"\n## {section['title']}\n", f"{section['work']}\n"]
    lines += [cells(head), cells(["---", *["---:"] * 4])]
    for row in sorted(section["rows"], key=lambda row: -row["rate"]):
        mark = "**" if row["ours"] else ""
        rate = f"{row['rate']:,.0f}" if row["rate"] >= 100 else f"{row['rate']:.2f}"
        lines.append(
            cells(
                [
                    f"{mark}{row['name']}{mark}",
                    f"{mark}{rate}{mark}",
                    f"{row['cpu_seconds']:.3f}",
                    f"{row['peak_pss_mib']:,.0f}",
                    f"{row['start_seconds']:.1f}",
                ]
            )
        )
    lines += [f"\nLeft out: {name} ({why})." for name, why in section["left_out"].items()]
    return "\n".join(lines) + "\n"


def cells(values: list[str]) -> str:
    return "| " + " | ".join(values) + " |"
