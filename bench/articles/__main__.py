#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The comparisons published in articles about slow input pipelines, on this machine in one run.

    python bench/articles PHOTOS [SECTION...] --python-dali DALI/bin/python [--page FILE]
    python bench/articles --from RESULTS.json --page FILE

The rows of a section run in separate processes, pinned to the same cores, taking turns. Packages
that are not installed are skipped and named. ``--page`` writes the tables as a Markdown page; with
``--from``, those of an earlier run, whose results are in its folder (articles.json).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import page
from peer import Measured, Peer
from results import processor
from rounds import in_turn, note, say, started
from sections import SECTIONS, Given, Section


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "photos", type=Path, nargs="?", help="a folder of JPEGs, one folder per class"
    )
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=", ".join(SECTIONS))
    parser.add_argument("--out", type=Path, default=Path("build/bench/articles"))
    parser.add_argument("--page", type=Path)
    parser.add_argument(
        "--from", type=Path, dest="results", metavar="RESULTS", help="measure nothing"
    )
    parser.add_argument(
        "--threads",
        type=int,
        default=2,
        help="number of threads, and of cores that they are pinned to",
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--turn", type=float, default=3.0, metavar="SECONDS")
    parser.add_argument("--small", type=int, default=7000, help="number of images of 48 x 48")
    parser.add_argument(
        "--openings", type=int, default=100, help="how often the validation loader is opened"
    )
    parser.add_argument("--python-dali", default=sys.executable, metavar="PYTHON")
    parser.add_argument("--python-torch", default=sys.executable, metavar="PYTHON")
    given = parser.parse_args()
    if given.results is None and given.photos is None:
        parser.error("PHOTOS or --from is required")
    for name in given.sections:
        if name not in SECTIONS:
            parser.error(f"unknown section {name!r} (have {', '.join(SECTIONS)})")
    return given


def main() -> int:
    args = arguments()
    args.out.mkdir(parents=True, exist_ok=True)
    if args.results:
        report = json.loads(args.results.read_text())
    else:
        report = measure(args)
        (args.out / "articles.json").write_text(json.dumps(report, indent=1) + "\n")
    text = page.text(report)
    (args.page or args.out / "articles.md").write_text(text)
    print(text)
    return 0


def measure(args: argparse.Namespace) -> dict[str, Any]:
    """The report."""
    given = Given(
        args.photos.resolve(), args.out.resolve(), args.threads, args.small, args.openings
    )
    interpreters = {"nvidia.dali": args.python_dali}
    interpreters |= dict.fromkeys(("torch", "torchvision", "cv2", "PIL"), args.python_torch)
    cores = set(sorted(os.sched_getaffinity(0))[: args.threads])
    report: dict[str, Any] = {
        "date": time.strftime("%Y-%m-%d"),
        "processor": processor(),
        "threads": args.threads,
        "rounds": args.rounds,
        "load_average": os.getloadavg()[0],
        "sections": [],
    }
    for name in args.sections or SECTIONS:
        section = SECTIONS[name](given)
        say(section.title)
        report["sections"].append(measured(section, args, interpreters, cores))
        if remove := section.job.get("remove"):
            shutil.rmtree(remove)
    return report


def measured(
    section: Section, args: argparse.Namespace, interpreters: dict[str, str], cores: set[int]
) -> dict[str, Any]:
    found: list[tuple[Measured, Peer]] = []
    left_out: dict[str, str] = {}
    with ExitStack() as stack:
        for number, way in enumerate(section.ways):
            kind = way.kind(interpreters)
            version = kind.version()
            folder = args.out.resolve() / "prepared" / f"{section.name}-{number}"
            folder.mkdir(parents=True, exist_ok=True)
            job = {
                "workload": section.name,
                "threads": args.threads,
                "batch_size": 64,
                "repeat": 1,
                "cold": False,
                "files": [],
                "prepared": str(folder),
                **section.job,
                **way.job,
            }
            try:
                if version is None:
                    raise RuntimeError(f"{kind.interpreter} has no {kind.module}")
                one = Measured(kind, version)
                found.append((one, started(stack, one, job, cores)))
            except RuntimeError as error:
                say(f"  {way.title} is skipped: {error}")
                left_out[way.title] = str(error).splitlines()[-1]
        for number in range(args.rounds):
            for measured, peer in in_turn(found, number):
                note(measured, turn(peer, section, args))
        say("  " + ", ".join(f"{one.kind.name} {one.warm[-1]:,.0f}" for one, _ in found))
    return {
        "name": section.name,
        "title": section.title,
        "unit": section.unit,
        "work": section.work,
        "cpu_per": section.each_per,
        "left_out": left_out,
        "rows": [row(one, section) for one, _ in found],
    }


def turn(peer: Peer, section: Section, args: argparse.Namespace) -> list[dict[str, float]]:
    """Epochs for this many seconds in total, or as many as the section requires."""
    if times := section.job.get("times"):
        return [peer.epoch() for _ in range(-(-times // args.rounds))]
    return peer.turn(args.turn)


def row(one: Measured, section: Section) -> dict[str, Any]:
    return {
        "name": one.kind.name,
        "version": one.version,
        "ours": one.kind.ours,
        "rate": statistics.median(one.warm),
        "rates": one.warm,
        "cpu_seconds": statistics.median(one.cpu_seconds_per_1000) * section.each_per / 1000,
        "peak_pss_mib": one.peak_pss_mib,
        "start_seconds": one.start_seconds,
    }


if __name__ == "__main__":
    sys.exit(main())
