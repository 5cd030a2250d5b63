# SPDX-License-Identifier: Apache-2.0
"""The application object. Every other module of this folder is a command and is found here."""

from __future__ import annotations

from typing import Annotated

import typer

from headrace.cli import (
    bench,
    cache,
    convert,
    doctor,
    explain,
    formats,
    index,
    info,
    merge,
    operators,
    pack,
    scan,
    unpack,
)

app = typer.Typer(
    name="headrace",
    help="Feed training loops fast: load, decode, augment and batch datasets.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain text: examples keep their lines, and words are not split
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 success, 1 a problem was found, 2 usage error, 3 data error, 4 "
    "environment error.",
)
for module in (
    bench,
    cache,
    doctor,
    info,
    scan,
    index,
    pack,
    unpack,
    convert,
    merge,
    formats,
    operators,
    explain,
):
    name = module.__name__.rpartition(".")[2]
    # \b: these lines are not re-wrapped.
    app.command(name, epilog="\b\nExamples:\n  " + "\n  ".join(module.EXAMPLES))(module.run)


def _print_version(wanted: bool) -> None:
    if wanted:
        import headrace

        typer.echo(f"headrace {headrace.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Feed training loops fast: load, decode, augment and batch datasets."""
