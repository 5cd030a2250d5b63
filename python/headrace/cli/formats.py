# SPDX-License-Identifier: Apache-2.0
"""`headrace formats [NAME]`: what can be read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import typer

from headrace.cli import output, reference

EXAMPLES = (
    "headrace formats",
    "headrace formats webdataset",
)


@output.command
def run(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="One of them, in full.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> int:
    """List the containers and codecs of this build, or describe one.

    Exit code 2 when there is none of that name.
    """
    from headrace import _core
    from headrace.absent import no_such_format

    containers = _core.formats()
    codecs = {**_core.codecs(), **_core.audio_codecs(), **_core.video_containers()}
    if name is None:
        _print_all(containers, codecs, json)
        return output.GOOD
    record = containers.get(name) or codecs.get(name)
    if record is None:
        raise no_such_format(name, {**containers, **codecs})
    if json:
        output.print_json(record)
    elif name in containers:
        reference.print_one(record, ("Example", record["example"]))
    else:
        files = ("Files", " ".join(record["suffixes"]))
        oracle = ("Equals", record.get("oracle", ""))
        reference.print_one(record, files, oracle, ("Needs", _library(name)))
    return output.GOOD


def _library(codec: str) -> str:
    """What the codec opens when it is first used, and whether it is there."""
    from headrace import _core

    package, problem = _core.codec_library(codec)
    if not package:
        return ""
    return f"{package}, which is there" if not problem else f"{package}: {problem}"


def _print_all(
    containers: Mapping[str, reference.Record], codecs: Mapping[str, reference.Record], json: bool
) -> None:
    if json:
        parts = {"formats": containers, "codecs": codecs}
        output.print_json({k: [part[n] for n in sorted(part)] for k, part in parts.items()})
        return
    console = output.console()
    console.print("[dim]Containers, which headrace.open() recognizes[/]")
    reference.print_list(containers)
    from headrace import _core

    sounds, videos = _core.audio_codecs(), _core.video_containers()
    console.print("\n[dim]Pictures in them[/]")
    reference.print_list({n: codecs[n] for n in codecs if n not in sounds and n not in videos})
    console.print("\n[dim]Sounds in them[/]")
    reference.print_list(sounds)
    console.print("\n[dim]Videos in them[/]")
    reference.print_list(videos)
    console.print("\n[dim]`headrace formats NAME` describes one in full.[/]")
