# SPDX-License-Identifier: Apache-2.0
"""`headrace explain CODE`: explains an error code."""

from __future__ import annotations

from typing import Annotated

import typer

from headrace.cli import output

EXAMPLES = (
    "headrace explain HR0305",
    "headrace explain",
)


@output.command
def run(
    code: Annotated[
        str | None,
        typer.Argument(
            metavar="[CODE]", help="For example HR0305. Without a code, list all codes."
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON value.")] = False,
) -> int:
    """Explain an error code and what to do about it.

    Exit code 2 if the code is unknown.
    """
    from headrace import _core, errors
    from headrace.absent import no_such_code

    found = _core.error_codes()
    if code is None or code.upper() not in found:  # declared by a module not imported yet
        found = errors.all_codes()
    codes = {key: {"id": key, **record} for key, record in found.items()}
    if code is None:
        if json:
            output.print_json([codes[key] for key in sorted(codes)])
        else:
            for key in sorted(codes):
                print(f"{key}  {codes[key]['title']}")
        return output.GOOD
    record = codes.get(code.upper())
    if record is None:
        raise no_such_code(code, codes)
    if json:
        output.print_json(record)
        return output.GOOD
    from rich.markup import escape

    console = output.console()
    console.print(
        f"[bold]{record['id']}[/] {escape(record['title'])}  [dim]({record['kind']})[/]\n"
    )
    console.print(escape(record["explanation"]))
    return output.GOOD
