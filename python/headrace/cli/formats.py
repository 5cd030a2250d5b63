# SPDX-License-Identifier: Apache-2.0
"""`headrace formats`: what can be read."""

from __future__ import annotations

from typing import Annotated

import typer

from headrace.cli import output


@output.command
def run(json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False) -> int:
    """List the containers and codecs of this build."""
    from headrace import _core

    formats = [record for _, record in sorted(_core.formats().items())]
    codecs = [record for _, record in sorted(_core.codecs().items())]
    if json:
        output.print_json({"formats": formats, "codecs": codecs})
        return output.GOOD
    from rich.table import Table

    console = output.console()
    for title, records, last in (("format", formats, "example"), ("codec", codecs, "suffixes")):
        table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
        table.add_column(title, style="bold", no_wrap=True)
        table.add_column("")
        table.add_column(last)
        for record in records:
            value = record[last]
            table.add_row(
                record["name"], record["doc"], value if isinstance(value, str) else " ".join(value)
            )
        console.print(table)
        console.print()
    return output.GOOD
