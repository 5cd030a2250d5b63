#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the doctor's diagnosis: twelve real loops with one known cause each, several times.

    python bench/doctor_cases.py                       # all, 5 runs each: about 10 minutes
    python bench/doctor_cases.py --case slow-disk --runs 1 --report

A run is correct if its verdict is the planted cause; "unsure" is not correct. Each run is a
separate process. Confidence intervals are 95 %, over the runs.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import socket
import statistics
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from doctor_loops import CASES, make_pictures

import headrace as hr

_T = {2: 12.71, 3: 4.30, 4: 3.18, 5: 2.78, 6: 2.57, 7: 2.45, 8: 2.36, 9: 2.31, 10: 2.26}


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", choices=CASES, action="append", help="default: all")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0, help="duration of one examination")
    parser.add_argument("--data", type=Path, default=Path("build/bench/doctor_cases"))
    parser.add_argument("--json", type=Path, help="write all results to this file")
    parser.add_argument("--report", action="store_true", help="also print each report")
    parser.add_argument("--once", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def examine_once(name: str, data: Path, seconds: float) -> None:
    """One examination in this process; prints its report to standard output."""
    with ExitStack() as stack:
        loader, step = CASES[name].make(data, stack)
        report = hr.doctor(loader, step, seconds=seconds)
        if int(os.environ.get("RANK", 0)) == 0:
            print(json.dumps({"text": str(report), **report.json()}))
            sys.stdout.flush()


def examine(name: str, data: Path, seconds: float) -> dict[str, Any]:
    """The same in separate processes, one per rank; returns rank 0's report."""
    command = [sys.executable, __file__, "--once", "--case", name]
    command += ["--data", str(data), "--seconds", str(seconds)]
    ranks = CASES[name].ranks
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    processes = []
    for rank in range(ranks):
        place = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": ranks, "LOCAL_WORLD_SIZE": ranks}
        place.update({"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port})
        several = {key: str(value) for key, value in place.items()} if ranks > 1 else {}
        processes.append(
            subprocess.Popen(
                command, env={**os.environ, **several}, stdout=subprocess.PIPE, text=True
            )
        )
    texts = [process.communicate()[0] for process in processes]
    if any(process.returncode for process in processes):
        return {"verdict": "failed", "text": texts[0], "rates": {}, "likely": "", "margin": None}
    answer: dict[str, Any] = json.loads(texts[0].splitlines()[-1])
    return answer


def interval(values: list[float]) -> tuple[float, float]:
    """Mean, and half the width of its confidence interval; NaN for a single value."""
    if len(values) < 2:
        return (values[0] if values else math.nan), math.nan
    spread = statistics.stdev(values) / math.sqrt(len(values))
    return statistics.fmean(values), _T.get(len(values), 2.0) * spread


def shown(values: list[float | None], form: str) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return "any"
    mean, half = interval(known)
    return format(mean, form) + ("" if math.isnan(half) else f" ± {format(half, form)}")


def line_of(name: str, runs: list[dict[str, Any]]) -> str:
    right = sum(run["verdict"] == CASES[name].word for run in runs)
    rates = [run["rates"].get("real") for run in runs]
    stalls = [run.get("stall_share") for run in runs]
    margins = [run["margin"] for run in runs]
    others = sorted({run["verdict"] for run in runs} - {CASES[name].word})
    return (
        f"{name:16} {CASES[name].word:12} {right} of {len(runs)}   "
        f"{shown(rates, ',.0f'):>16}   {shown(stalls, '.0%'):>12}   {shown(margins, '.1f'):>12}"
        + (f"   said {', '.join(others)}" if others else "")
    )


def main() -> int:
    args = parse_arguments()
    if args.once:
        examine_once(args.case[0], args.data, args.seconds)
        return 0
    make_pictures(args.data)
    names = args.case or list(CASES)
    found: dict[str, list[dict[str, Any]]] = {}
    print(
        f"{'loop':16} {'cause':12} first     records/s          waits          margin", flush=True
    )
    for name in names:
        found[name] = []
        for _ in range(args.runs):
            found[name].append(examine(name, args.data, args.seconds))
            if args.report:
                print(found[name][-1]["text"], flush=True)
        print(line_of(name, found[name]), flush=True)
    right = sum(all(r["verdict"] == CASES[n].word for r in runs) for n, runs in found.items())
    print(f"{right} of {len(names)}")
    if args.json:
        facts = {"date": time.strftime("%Y-%m-%d %H:%M"), "seconds": args.seconds, "cases": found}
        args.json.parent.mkdir(parents=True, exist_ok=True)
        args.json.write_text(json.dumps(facts, indent=1))
    return 0 if right == len(names) else 1


if __name__ == "__main__":
    sys.exit(main())
