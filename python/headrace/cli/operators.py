# SPDX-License-Identifier: Apache-2.0
"""`headrace operators [NAME]`: the transforms and their parameters."""

from __future__ import annotations

import difflib
from typing import Annotated, Any

import typer

from headrace.cli import output


@output.command
def run(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="One of them, in full.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON value.")] = False,
) -> int:
    """List the transforms, or describe one.

    Exit code 1 when there is none of that name.
    """
    from headrace import _core

    records = _core.operators()
    if name is None:
        if json:
            output.print_json([records[key] for key in sorted(records)])
        else:
            print_list(records)
        return output.GOOD
    if name not in records:
        near = difflib.get_close_matches(name, records, 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        output.fail(f"headrace: no transform is named {name}{hint}", output.BAD_ANSWER)
    if json:
        output.print_json(records[name])
    else:
        print_one(records[name])
    return output.GOOD


def first_sentence(text: str) -> str:
    return text.split(". ")[0].split("\n")[0].rstrip(".")


def print_list(records: dict[str, Any]) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    for key in sorted(records):
        table.add_row(key, first_sentence(records[key]["doc"]))
    console = output.console()
    console.print(table)
    console.print("\n[dim]`headrace operators NAME` describes one in full.[/]")


def print_one(record: dict[str, Any]) -> None:
    from rich.markup import escape
    from rich.table import Table

    console = output.console()
    console.print(f"[bold]{record['name']}[/]\n")
    console.print(escape(record["doc"]))
    if record["params"]:
        console.print()
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column()
    for param in record["params"]:
        default = "required" if param["required"] else f"= {param['default']!r}"
        table.add_row(
            f"  {param['name']}", escape(f"{param['type']}, {default}"), escape(param["doc"])
        )
    console.print(table)
    if record.get("oracle"):
        console.print(f"\n[dim]Equals:[/] {escape(record['oracle'])}")
