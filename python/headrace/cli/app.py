# SPDX-License-Identifier: Apache-2.0
"""The application object. Each command is a module of this folder, imported when it is called."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Annotated

import typer

COMMANDS = (
    *("bench", "cache", "doctor", "info", "scan", "index", "pack", "unpack", "convert", "merge"),
    *("formats", "operators", "explain"),
)


def application(names: Iterable[str] = COMMANDS) -> typer.Typer:
    """The command line with these commands, in the order of its help."""
    app = typer.Typer(
        name="headrace",
        help="Feed training loops fast: load, decode, augment and batch datasets.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # plain text: keeps line breaks in examples and does not split words
        context_settings={"help_option_names": ["-h", "--help"]},
        epilog="Exit codes: 0 success, 1 a problem was found, 2 usage error, 3 data error, 4 "
        "environment error.",
    )
    for name in names:
        module = import_module(f"headrace.cli.{name}")
        # \b: these lines are not re-wrapped.
        app.command(name, epilog="\b\nExamples:\n  " + "\n  ".join(module.EXAMPLES))(module.run)
    app.callback()(options)
    return app


def _print_version(wanted: bool) -> None:
    if wanted:
        import headrace

        typer.echo(f"headrace {headrace.__version__}")
        raise typer.Exit


def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
    plugin: Annotated[
        list[str] | None,
        typer.Option(
            help="Load this plug-in before the command: a path, or the name of an installed one "
            "(repeatable)."
        ),
    ] = None,
) -> None:
    """Feed training loops fast: load, decode, augment and batch datasets."""
    if plugin:
        from headrace.cli.output import exits
        from headrace.plugins import load_plugin

        with exits():
            for library in plugin:
                load_plugin(library)
