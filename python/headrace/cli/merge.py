# SPDX-License-Identifier: Apache-2.0
"""`headrace merge DEST`: joins the parts of a job into one dataset."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from headrace.cli import output
from headrace.cli.pack_report import print_unusable

EXAMPLES = (
    "headrace merge tars/ --verify",
    "headrace merge tars/ --missing",
)


@output.command
def run(
    dest: Annotated[
        Path, typer.Argument(metavar="DEST", help="The folder that all parts were written to.")
    ],
    verify: Annotated[
        bool, typer.Option("--verify", help="Compare the SHA-256 of every file, not only sizes.")
    ] = False,
    missing: Annotated[
        bool, typer.Option("--missing", help="Only print the missing parts, for example 3,17-20.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Join the parts of a job into one dataset.

    Checks that all parts of DEST exist, and writes manifest.json and SHA256SUMS. Exit code 3 if
    parts are missing or records are bad; with --missing, 1 if parts are missing.
    """
    from headrace import jobs

    if missing:
        return print_missing(jobs.missing(dest), json)
    manifest = jobs.merge(dest, verify=verify)
    if json:
        output.print_json({"output": str(dest), **manifest})
    else:
        print_manifest(str(dest), manifest, verify)
    return output.DATA if manifest.get("unusable_count") or manifest.get("bad") else output.GOOD


def print_missing(parts: list[int], json: bool) -> int:
    from headrace.jobs.merging import in_ranges

    if json:
        output.print_json({"missing": parts})
    elif parts:
        output.console().print(in_ranges(parts), soft_wrap=True)
    return output.BAD_ANSWER if parts else output.GOOD


def print_manifest(dest: str, manifest: dict[str, Any], verified: bool) -> None:
    records, parts = (output.count_text(manifest[n], n[:-1]) for n in ("records", "parts"))
    output.headline(dest, f"{records}, {output.size_text(manifest['bytes'])}, {parts}")
    console = output.console()
    if verified:
        console.print("[bold green]verified:[/] every file has its SHA-256")
    if manifest.get("unusable_count"):
        console.print(f"[bold red]{manifest['unusable_count']:,} unusable[/], kept unchanged:")
        print_unusable(manifest)
    if manifest.get("bad"):
        console.print(f"[bold red]{manifest['bad']:,} bad records[/], listed in bad.jsonl")
    if len(manifest["headrace"]) > 1:
        console.print(f"[yellow]written by versions {', '.join(manifest['headrace'])}[/]")
