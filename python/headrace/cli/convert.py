# SPDX-License-Identifier: Apache-2.0
"""`headrace convert SOURCE -o DEST --to FORMAT`: the same records in another container."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from headrace.cli import output
from headrace.cli.pack_report import print_unusable
from headrace.cli.part import PartOption, print_part, records_of
from headrace.write import container, names
from headrace.write.options import completed

EXAMPLES = (
    "headrace convert train/ -o train.tar --to tar",
    "headrace convert train/ -o shards/ --to tfrecord --shards 2 --verify",
    "headrace convert train/ -o tars/ --to tar --part 1/2",
)


@output.command
def run(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="A path or URL that headrace.open() accepts.")
    ],
    out: Annotated[
        Path, typer.Option("--output", "-o", help="Output file; with --shards, a folder.")
    ],
    to: Annotated[str, typer.Option("--to", help="Format to write.", **output.one_of(names()))],
    shards: Annotated[int, typer.Option(metavar="N", min=1, help="Number of files to write.")] = 1,
    threads: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Number of threads; default: the cores available to this process.",
        ),
    ] = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Read the output back and compare.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing output.")] = False,
    part: PartOption = None,
    options: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="An option of the format (lerobot): fps=30."
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Convert a dataset to another container format.

    Order and encoded images are unchanged, except that cameras of a LeRobot dataset become
    videos, with loss unless --set lossless=true or images=image is given. After an interruption,
    the same command resumes where it stopped (hdf5 and lerobot start over). Exit code 3 if a record
    was bad: an unreadable one stops the command, a file that is not an image is written unchanged
    and listed.
    """
    opened = output.open_source(source)
    import headrace

    given = _options_of(options or [], to)
    loss = container(to).loss(opened, completed(container(to).options, given, to))
    title = f"converting ({loss})" if loss else "converting"
    records = records_of(part, len(opened)) if part else len(opened)
    total = records * (2 if verify else 1)
    with output.resumable(container(to).resumes), output.progress(title, total, quiet=json) as done:
        report = headrace.convert(
            opened,
            out,
            to,
            shards=shards,
            threads=threads,
            verify=verify,
            overwrite=force,
            progress=lambda count, _: done(count),
            part=part,
            **given,
        )
    if part and not json:
        print_part(report)
    elif json:
        output.print_json({"output": str(out), "to": to, **report})
    else:
        print_report(str(out), {"to": to, **report})
    # A complete part counts as success: schedulers rerun failed jobs.
    return output.DATA if report["unusable_count"] and not part else output.GOOD


def _options_of(pairs: list[str], to: str) -> dict[str, Any]:
    """Options of the form NAME=VALUE; those that take lists of names can be repeated."""
    lists = {option.name for option in container(to).options if option.kind == "names"}
    given: dict[str, Any] = {}
    for pair in pairs:
        name, separator, value = pair.partition("=")
        if not separator:
            raise typer.BadParameter(f"{pair!r} is not NAME=VALUE", param_hint="--set")
        if name in given and name not in lists:
            raise typer.BadParameter(f"{name} is given twice", param_hint="--set")
        if name in given:
            value = f"{given[name]},{value}"
        given[name] = value
    return given


def print_report(out: str, report: dict[str, Any]) -> None:
    from rich.markup import escape

    console = output.console()
    records, seconds = report["records"], report["seconds"]
    size = output.size_text(report["bytes"])
    rate = f"{records / seconds:,.0f} per second" if seconds > 0 else ""
    resumed = report["resumed_records"]
    if resumed:
        rate += f"; {resumed:,} reused from an interrupted run"
    output.headline(
        out, f"{output.count_text(records, 'record')}, {size} ({seconds:.1f} s, {rate})"
    )
    if len(report["files"]) > 1:
        console.print(f"[dim]{len(report['files']):,} files, checksums in SHA256SUMS[/]")
    output.print_outside(report["files_outside"])
    if report.get("loss"):
        console.print(f"[yellow]{escape(report['loss'])}[/]; lossless=true keeps pixels")
    if report["verified"]:
        console.print("[bold green]verified:[/] every record matches the source")
    if report["unusable_count"]:
        console.print(
            f"[bold red]{report['unusable_count']:,} are not images[/], written unchanged:"
        )
        print_unusable(report)
    opener = container(report["to"]).opener
    console.print(f"[dim]open it: headrace.{opener}({escape(repr(out))})[/]", soft_wrap=True)
    if report["classes"] and report["to"] not in ("folder", "pack"):
        console.print("[dim]It stores labels but not class names: pass those as classes=[...][/]")
