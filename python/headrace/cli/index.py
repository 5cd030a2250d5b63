# SPDX-License-Identifier: Apache-2.0
"""`headrace index SOURCE`: indexes the row positions of each JPEG, or the positions of remote
records.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from headrace.cli import output
from headrace.cli.part import PartOption, print_part, records_of

EXAMPLES = (
    "headrace index train/",
    "headrace index train/ -o train.rows",
    "headrace index train/ -o indexed/ --part 1/2",
)


@output.command
def run(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="A path or URL that headrace.open() accepts.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Index file; default: the file in HEADRACE_CACHE that loaders look for.",
        ),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Number of threads; default: the cores available to this process.",
        ),
    ] = None,
    part: PartOption = None,
    local: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Write a remote dataset's index to this folder, to be uploaded next to the data.",
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Index the rows of JPEG files, so that crops decode faster.

    With it, loaders decode only the rows of a crop. Batches are the same. For shards in a bucket,
    without -o: store the position of each record in the folder .headrace next to the shards, so
    that other machines open them without scanning.
    """
    opened = output.open_source(source)
    import headrace
    from headrace import _core

    if local is not None or (_core.scheme_of(source) and out is None and not part):
        result = headrace.index(opened, out, part=part, next_to_data=local or True)
        print_next_to_data(result, source, json)
        return output.GOOD
    records = records_of(part, len(opened)) if part else len(opened)
    with output.progress("indexing", records, quiet=json) as done:
        result = headrace.index(
            opened, out, threads=threads, progress=lambda count, _: done(count), part=part
        )
    if part and not json:
        print_part(result)
    elif json:
        output.print_json({"source": source, **result})
    else:
        print_result(result, named=out is not None)
    return output.GOOD


def print_next_to_data(result: dict[str, Any], source: str, json: bool) -> None:
    if json:
        output.print_json({"source": source, **result})
        return
    console = output.console()
    for file in result["files"]:
        new = output.size_text(file["bytes"]) if file["is_new"] else "existed already"
        output.headline(file["path"], f"{new} ({result['seconds']:.1f} s)")
    console.print("[dim]It will be used whenever this dataset is opened.[/]")


def print_result(result: dict[str, Any], named: bool) -> None:
    from rich.markup import escape

    console = output.console()
    share = result["bytes"] / max(1, result["image_bytes"])
    size = f"{output.size_text(result['bytes'])}, {share:.1%} of the images' bytes"
    output.headline(result["file"], f"{size} ({result['seconds']:.1f} s)")
    console.print(f"{result['indexed']:,} of {result['images']:,} images indexed")
    without = result["images"] - result["indexed"]
    if without:
        console.print(
            f"[dim]{without:,} not indexed: other formats (PNG, progressive JPEG), or damaged[/]"
        )
    if result["bad"]:
        console.print(f"[bold red]{result['bad']:,} bad[/]; `headrace scan` lists them")
    if named:
        example = f"Loader(..., index={result['file']!r})"
        console.print(f"[dim]use it:[/] {escape(example)}", soft_wrap=True)
    else:
        console.print("[dim]Loaders of this dataset will use it.[/]")
