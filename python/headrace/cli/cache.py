# SPDX-License-Identifier: Apache-2.0
"""`headrace cache info|clear`: the cache of remote files on this machine's disk."""

from __future__ import annotations

import os
from collections import defaultdict
from typing import Annotated, Any

import typer

from headrace.arguments import one_of
from headrace.cli import output

EXAMPLES = (
    "headrace cache info",
    "headrace cache clear",
)
_MOST_SHOWN = 20  # folders


@output.command
def run(
    action: Annotated[
        str, typer.Argument(metavar="info|clear", help="Show the cache, or delete its blocks.")
    ] = "info",
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Show or delete cached blocks of remote files on local disk.

    The blocks that disk_cache= stores are in the folder HEADRACE_CACHE. `clear` keeps blocks in use
    by a running process.
    """
    from headrace import _core

    one_of("action", action, ("info", "clear"))
    if action == "clear":
        freed = _core.clear_cached_blocks()
        if json:
            output.print_json({"folder": _core.cache_folder(), "deleted_bytes": freed})
        else:
            print(f"deleted {output.size_text(freed)} of {_core.cache_folder() or 'no cache'}")
        return output.GOOD
    result = _blocks()
    if json:
        output.print_json(result)
    else:
        _print(result)
    return output.GOOD


def _blocks() -> dict[str, Any]:
    from headrace import _core

    blocks = _core.cached_blocks()
    folders: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for path, _, on_disk in blocks:
        entry = folders[os.path.dirname(path)]
        entry[0] += 1
        entry[1] += on_disk
    return {
        "folder": _core.cache_folder(),
        "limit": os.environ.get("HEADRACE_DISK_CACHE", ""),
        "blocks": len(blocks),
        "bytes": sum(on_disk for _, _, on_disk in blocks),
        "folders": [
            {"folder": folder, "blocks": count, "bytes": size}
            for folder, (count, size) in sorted(folders.items(), key=lambda each: -each[1][1])
        ],
    }


def _print(result: dict[str, Any]) -> None:
    from rich.markup import escape

    console = output.console()
    size = f"{result['blocks']:,} blocks, {output.size_text(result['bytes'])}"
    output.headline(result["folder"] or "no cache folder", size)
    for each in result["folders"][:_MOST_SHOWN]:
        name = escape(each["folder"] or "damaged")
        console.print(f"  {name}  [dim]{output.size_text(each['bytes'])}[/]", soft_wrap=True)
    if len(result["folders"]) > _MOST_SHOWN:
        console.print(f"[dim]and {len(result['folders']) - _MOST_SHOWN:,} more folders[/]")
    limit = result["limit"] or "not set"
    console.print(f"[dim]limit (HEADRACE_DISK_CACHE): {escape(limit)}[/]")
