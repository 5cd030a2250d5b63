# SPDX-License-Identifier: Apache-2.0
"""`headrace operators [NAME]`: the transforms and their parameters."""

from __future__ import annotations

from typing import Annotated

import typer

from headrace.cli import output, reference

EXAMPLES = (
    "headrace operators",
    "headrace operators RandomResizedCrop",
)


@output.command
def run(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Describe this transform in full.")
    ] = None,
    plugin: Annotated[
        list[str] | None,
        typer.Option(
            help="Load this plug-in first, so that its transforms are listed: a path, or the name "
            "of an installed plug-in (repeatable)."
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON value.")] = False,
) -> int:
    """List the transforms, or describe one.

    Exit code 2 if the name is unknown; the message suggests a similar one.
    """
    from headrace import _core
    from headrace.absent import no_such_transform

    records = _core.operators()
    if plugin:
        from headrace.plugins import load_plugin

        for library in plugin:
            load_plugin(library)
        own = _core.plugin_operators()
        records = own if name is None else records | own
    if name is None:
        if json:
            output.print_json([records[key] for key in sorted(records)])
        else:
            reference.print_list(records)
            output.console().print("\n[dim]`headrace operators NAME` describes one in full.[/]")
        return output.GOOD
    if name not in records:
        raise no_such_transform(name, records)
    if json:
        output.print_json(records[name])
    else:
        reference.print_one(records[name], ("Equals", records[name]["oracle"]))
    return output.GOOD
