# SPDX-License-Identifier: Apache-2.0
"""`headrace doctor SOURCE --nodes N`: predicts the requests that an epoch sends to storage."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

from headrace import _core
from headrace.cli import output


def show_plan(
    path: str, source: Any, nodes: int, global_batch: int, price: float, json: bool
) -> int:
    from headrace.cli.info import bytes_on_disk
    from headrace.insight.reads import planned_reads

    is_known = _core.scheme_of(path) or os.path.exists(path)  # whose size can be listed
    size = bytes_on_disk(path) if is_known else None
    plan = planned_reads(source, nodes, global_batch=global_batch, dataset_bytes=size, price=price)
    if json:
        output.print_json({**dataclasses.asdict(plan), "best": plan.best.order})
    else:
        print_plan(path, plan)
    return output.GOOD


def print_plan(path: str, plan: Any) -> None:
    console = output.console()
    size = output.size_text(plan.bytes)
    about = "about " if plan.estimated else ""
    output.headline(path, f"{output.count_text(plan.records, 'record')}, {about}{size}")
    where = "one file per record" if plan.file_per_record else f"{plan.blocks:,} blocks"
    console.print(f"{where}; {plan.nodes:,} nodes, batches of {plan.global_batch:,}")
    console.print(f"{'an epoch of':12}{'requests':>16}{'bytes':>12}{'of size':>9}{'dollars':>12}")
    for way in plan.orders:
        print_way(way.order, way)
    if plan.packed:
        print_way("in shards", plan.packed)
    best = plan.packed or plan.best
    hint = f"shuffle={best.shuffle}"
    if plan.packed:
        hint = f"`headrace pack`, then {hint}"
    console.print(f"[bold]fewest:[/] {hint}", soft_wrap=True)


def print_way(name: str, way: Any) -> None:
    console = output.console()
    console.print(
        f"{name:12}{way.requests:>16,}{output.size_text(way.bytes):>12}"
        f"{way.share:>9.2f}{way.dollars:>12,.4f}",
        markup=False,
    )
