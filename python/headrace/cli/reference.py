# SPDX-License-Identifier: Apache-2.0
"""Lists and describes the engine's operators, formats and codecs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.cli import output
from headrace.signatures import words

Record = Mapping[str, Any]


def first_sentence(text: str) -> str:
    return text.split(". ")[0].split("\n")[0].rstrip(".")


def print_list(records: Mapping[str, Record]) -> None:
    """Prints one or two lines per entry: its name and the first sentence of its description."""
    first = {name: first_sentence(records[name]["doc"]) for name in sorted(records)}
    output.facts(first, style="bold", gap=2)


def print_one(record: Record, *facts: tuple[str, str]) -> None:
    """Prints name, description and parameters of one entry, and other facts as (what, text)."""
    from rich.markup import escape

    console = output.console()
    console.print(f"[bold]{record['name']}[/]\n")
    console.print(escape(record["doc"]))
    if record.get("params"):
        console.print()
        table = _table()
        table.add_column(style="bold", no_wrap=True)
        table.add_column(no_wrap=True)
        table.add_column()
        for param in record["params"]:
            default = "required" if param["required"] else f"= {param['default']!r}"
            text = param["doc"] + words(param)
            kind = escape(f"{param['type']}, {default}")
            table.add_row(f"  {param['name']}", kind, escape(text))
        console.print(table)
    for name, text in facts:
        if text:
            console.print(f"\n[dim]{name}:[/] {escape(text)}", soft_wrap="\n" in text)


def _table() -> Any:
    from rich.table import Table

    return Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
