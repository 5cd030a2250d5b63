# SPDX-License-Identifier: Apache-2.0
"""The results of bench/articles as Markdown."""

from __future__ import annotations

import re
from typing import Any

from findings import FINDINGS

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
GROUP = re.compile(r", (augmented|batches of \d+)$")  # rows with different work


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
    lines = [
        f"\n## {section['title']}\n",
        f"Usual finding: {FINDINGS[section['name']]}\n",
        f"{section['work']}\n",
    ]
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
    lines += ["", *firsts(section)]
    lines += [f"\nLeft out: {name} ({why})." for name, why in section["left_out"].items()]
    return "\n".join(lines) + "\n"


def firsts(section: dict[str, Any]) -> list[str]:
    """A sentence for each group of rows with equal work: which is first, and by what factor."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in section["rows"]:
        found = GROUP.search(row["name"])
        row = {**row, "name": GROUP.sub("", row["name"])}
        groups.setdefault(found[1] if found else "", []).append(row)
    return [first(section["name"], group, rows) for group, rows in groups.items() if len(rows) > 1]


def first(section: str, group: str, rows: list[dict[str, Any]]) -> str:
    """Compares the first row with the second, and with the best of the other kind (ours or not)."""
    by_memory = section == "memory"
    best, *others = sorted(rows, key=lambda row: row["peak_pss_mib"] if by_memory else -row["rate"])
    different = next((row for row in others if row["ours"] != best["ours"]), others[0])
    compared = [others[0]] if different is others[0] else [others[0], different]
    start = f"{group[0].upper()}{group[1:]}: " if group else ""
    if by_memory:
        factors = [
            f"{row['name']} takes {row['peak_pss_mib'] / best['peak_pss_mib']:.1f} times as much"
            for row in compared
        ]
        return f"{start}{best['name']} takes the least memory; {', and '.join(factors)}."
    factors = [f"{best['rate'] / row['rate']:.1f} times that of {row['name']}" for row in compared]
    first_is = "first is" if group else "First is"
    return f"{start}{first_is} {best['name']}; its rate is {' and '.join(factors)}."


def cells(values: list[str]) -> str:
    return "| " + " | ".join(values) + " |"
