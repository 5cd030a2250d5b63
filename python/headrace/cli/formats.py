# SPDX-License-Identifier: Apache-2.0
"""`headrace formats [NAME]`: formats that can be read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from headrace.cli import output, reference

EXAMPLES = (
    "headrace formats",
    "headrace formats webdataset",
)

_MEDIA = "headrace-av"


@output.command
def run(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Describe this format in full.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """List the containers and codecs of this build, or describe one.

    Exit code 2 if the name is unknown.
    """
    from headrace import _core
    from headrace.absent import no_such_format

    containers = _core.formats()
    media = {kind: one["formats"] for kind, one in _core.media().items()}
    if name is None:
        _print_all(containers, media, json)
        return output.GOOD
    record: reference.Record | None
    # A format of images and videos (GIF) is described as an image format, which it is in a folder.
    pictures, videos = media["image"], media["video"]
    codecs = {_MEDIA: _media_record(), **_joined(media)}
    record = containers.get(name) or codecs.get(name)
    if record is None:
        raise no_such_format(name, {**containers, **codecs})
    if json:
        output.print_json(record)
    elif name in containers:
        reference.print_one(record, ("Example", record["example"]))
    else:
        files = ("Files", " ".join(record.get("suffixes", ())))
        oracle = ("Equals", record.get("oracle", ""))
        needs = _media_state() if record is videos.get(name) or name == _MEDIA else _library(name)
        also = videos[name]["doc"] if name in pictures and name in videos else ""
        reference.print_one(record, files, oracle, ("As a video", also), ("Needs", needs))
    return output.GOOD


def _media_record() -> dict[str, Any]:
    from headrace import _core

    codecs, problem = _core.media_codecs()
    doc = (
        "Decodes videos, and AAC audio, in a separate process. It is linked "
        f"with libavcodec.\n\nVideo: {', '.join(codecs)}. Audio: aac."
    )
    return {"name": _MEDIA, "doc": doc, "codecs": [*codecs, "aac"], "problem": problem}


def _media_state() -> str:
    problem = _media_record()["problem"]
    return f"{_MEDIA}: {problem}" if problem else f"{_MEDIA} (libavcodec), installed"


def _library(codec: str) -> str:
    """The library that the codec opens when it is first used, and whether it is available."""
    from headrace import _core

    package, problem, origin = _core.codec_library(codec)
    if not package:
        return ""
    return f"{package}: {problem}" if problem else f"{package}, installed: {origin}"


def _joined(media: dict[str, Mapping[str, reference.Record]]) -> dict[str, reference.Record]:
    """All codecs and containers by name; for a name of two codecs (GIF), the image codec."""
    return {name: one for formats in reversed(media.values()) for name, one in formats.items()}


def _print_all(
    containers: Mapping[str, reference.Record],
    media: dict[str, Mapping[str, reference.Record]],
    json: bool,
) -> None:
    from headrace import _core

    program = _media_record()
    if json:
        parts = {"formats": containers, "codecs": _joined(media), "videos": media["video"]}
        listed: dict[str, Any] = {k: [p[n] for n in sorted(p)] for k, p in parts.items()}
        output.print_json({**listed, "media": program})
        return
    console = output.console()
    console.print("[dim]Containers, which headrace.open() recognizes[/]")
    reference.print_list(containers)
    for kind, one in _core.media().items():
        console.print(f"\n[dim]Formats of {one['noun']}s[/]")
        reference.print_list(media[kind])
    console.print(f"\n[dim]Video codecs, from {_MEDIA}[/]")
    codecs = ", ".join(program["codecs"][:-1])
    output.facts({"video": codecs, "audio": program["codecs"][-1]}, style="bold", gap=2)
    if program["problem"]:
        from rich.markup import escape

        console.print(f"  [red]{escape(program['problem'])}[/]", soft_wrap=True)
    console.print("\n[dim]`headrace formats NAME` describes one in full.[/]")
