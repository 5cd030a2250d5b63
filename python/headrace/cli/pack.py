# SPDX-License-Identifier: Apache-2.0
"""`headrace pack SOURCE... -o OUT`: writes a dataset as one file that decodes several times
faster."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from headrace.cli import output, pack_report
from headrace.cli.part import PartOption, print_part, records_of
from headrace.pack import LEVELS

EXAMPLES = (
    "headrace pack train/ -o train.hrpack",
    "headrace pack train/ -o packed/ --level dense --shards 2",
    "headrace pack train/ -o packed/ --part 1/2",
)


@output.command
def run(
    sources: Annotated[
        list[str],
        typer.Argument(metavar="SOURCE", help="Paths or URLs that headrace.open() accepts."),
    ],
    out: Annotated[
        Path, typer.Option("--output", "-o", help="Output pack; with --shards, a folder.")
    ],
    level: Annotated[
        str,
        typer.Option(
            help="How JPEG images are packed, all lossless. fast: an eighth larger than the "
            "original files, fastest to decode; dense: about the same size, slower to decode; "
            "none: unchanged.",
            **output.one_of(LEVELS),
        ),
    ] = LEVELS[0],
    shards: Annotated[
        int, typer.Option(metavar="N", min=1, max=99_999, help="Number of files to write.")
    ] = 1,
    threads: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Number of threads; default: the cores available to this process.",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing pack.")] = False,
    part: PartOption = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Write a dataset as a pack: lossless, faster to decode.

    Every image is verified. After an interruption, the same command resumes where it stopped.
    """
    opened = [output.open_source(source) for source in sources]
    import headrace

    total = sum(len(source) for source in opened)
    if part:
        total = records_of(part, total, longer_first=True)
    with output.resumable(), output.progress("packing", total, quiet=json) as done:
        summary = headrace.pack(
            opened,
            out,
            level=level,
            shards=shards,
            threads=threads,
            overwrite=force,
            progress=lambda count, _: done(count),
            part=part,
        )
    if part and not json:
        print_part(summary)
    elif json:
        output.print_json({"output": str(out), "level": level, **summary})
    else:
        print_summary(str(out), summary)
    return output.GOOD


def print_summary(out: str, summary: dict[str, Any]) -> None:
    console = output.console()
    records, seconds = summary["records"], summary["seconds"]
    packed = records - summary["resumed_records"]
    rate = f", {packed / seconds:,.0f} per second" if seconds > 0 and packed else ""
    if summary["resumed_records"]:
        rate += f"; {summary['resumed_records']:,} reused from an interrupted run"
    size = output.size_text(summary["bytes"])
    output.headline(out, f"{output.count_text(records, 'record')}, {size} ({seconds:.1f} s{rate})")
    pack_report.print_pictures(summary)
    output.print_outside(summary["files_outside"])
    if summary["unusable_count"]:
        console.print(f"[bold red]{summary['unusable_count']:,} unusable[/], stored unchanged:")
        pack_report.print_unusable(summary)
