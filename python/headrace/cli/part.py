# SPDX-License-Identifier: Apache-2.0
"""The option and the report shared by commands that make one part of a job."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from headrace.cli import output

PartOption = Annotated[
    str | None,
    typer.Option(
        "--part",
        metavar="I/N",
        help="Make part I of N (from 0) in the output folder; `headrace merge` completes the job.",
    ),
]


def records_of(part: str, records: int, longer_first: bool = False) -> int:
    """How many records the part has, for the progress bar. longer_first: the first parts have one
    more record, as in packs.
    """
    from headrace.jobs.part import part_from

    return len(part_from(part).of(records, longer_first))


def print_part(report: dict[str, Any]) -> None:
    """Prints a line for the job's log."""
    from headrace.jobs.part import Part

    name = Part(report["part"], report["parts"]).name
    size = sum(file["bytes"] for file in report["files"])
    done = "there already" if report["kept"] else f"{report['seconds']:.1f} s"
    records = output.count_text(report["records"], "record")
    output.headline(name, f"{records}, {output.size_text(size)} ({done})")
    for what in ("unusable_count", "bad"):
        if report.get(what):
            words = "unusable" if what == "unusable_count" else "bad"
            output.console().print(f"[bold red]{report[what]:,} {words}[/]")
