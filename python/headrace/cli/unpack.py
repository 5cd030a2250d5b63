# SPDX-License-Identifier: Apache-2.0
"""`headrace unpack PACK -o DIR`: restores the original files, byte for byte."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from headrace.cli import output

SHOWN = 20
EXAMPLES = ("headrace unpack train.hrpack -o unpacked/",)


@output.command
def run(
    pack: Annotated[str, typer.Argument(metavar="PACK", help="A pack made by `headrace pack`.")],
    out: Annotated[Path, typer.Option("--output", "-o", help="Output folder.")],
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite files whose contents differ.")
    ] = False,
    recover: Annotated[
        bool, typer.Option("--recover", help="Unpack the complete part of a truncated pack.")
    ] = False,
    threads: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Number of threads; default: the cores available to this process.",
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Restore the files of a pack, byte for byte.

    Labels and text that are not in folder names are written to labels.jsonl. Exit code 3 if a
    record is damaged.
    """
    total = len(output.open_source(pack, recover=True) if recover else output.open_source(pack))
    import headrace

    with output.progress("unpacking", total, quiet=json) as done:
        result = headrace.unpack(
            pack,
            out,
            overwrite=force,
            recover=recover,
            threads=threads,
            progress=lambda count, _: done(count),
        )
    if json:
        output.print_json({"pack": pack, "output": str(out), **result})
    else:
        print_result(str(out), result)
    return output.DATA if result["damaged"] else output.GOOD


def print_result(out: str, result: dict[str, Any]) -> None:
    from rich.markup import escape

    console = output.console()
    for entry in result["damaged"][:SHOWN]:
        output.bad_record(entry, f"[red]{entry['code']}[/] {escape(entry['what'])}")
    if len(result["damaged"]) > SHOWN:
        console.print(f"  … and {len(result['damaged']) - SHOWN:,} more")
    existing = f", {result['existing']:,} already existed" if result["existing"] else ""
    size = output.size_text(result["bytes"])
    output.headline(
        out,
        f"{output.count_text(result['files'], 'file')} of "
        f"{output.count_text(result['records'], 'record')}, {size}{existing} "
        f"({result['seconds']:.1f} s)",
    )
    if result["manifest"]:
        console.print(f"[dim]labels and text:[/] {escape(result['manifest'])}", soft_wrap=True)
    if result["missing"]:
        console.print(f"[bold red]recovered:[/] {escape(result['missing'])}")
    if result["damaged"]:
        console.print(f"[bold red]{len(result['damaged']):,} damaged[/], not written")
