# SPDX-License-Identifier: Apache-2.0
"""Prints the contents of a pack, for `pack` and `info`."""

from __future__ import annotations

from typing import Any

from headrace.cli import output

REASONS_SHOWN, UNUSABLE_SHOWN = 12, 20


def ratio_of(share: dict[str, Any]) -> float | None:
    """Stored bytes divided by original bytes; None if there are none."""
    original = share["original_bytes"]
    return round(share["stored_bytes"] / original, 4) if original else None


def print_pictures(summary: dict[str, Any]) -> None:
    """One line per level, and why images are stored unchanged."""
    from rich.markup import escape
    from rich.table import Table

    console = output.console()
    pictures = summary["images"]
    if not pictures["count"]:
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("level")
    for name in ("images", "share", "original", "stored", "ratio"):
        table.add_column(name, justify="right")
    shares = {name: share for name, share in summary["levels"].items() if share["count"]}
    for name, share in {**shares, "all": pictures}.items():
        ratio = ratio_of(share)
        table.add_row(
            "unchanged" if name == "none" else name,
            f"{share['count']:,}",
            f"{share['count'] / pictures['count']:.1%}",
            output.size_text(share["original_bytes"]),
            output.size_text(share["stored_bytes"]),
            "" if ratio is None else f"{ratio:.3f}",
        )
    console.print(table)
    reasons = summary["stored_unchanged"]
    for entry in reasons[:REASONS_SHOWN]:
        size = output.size_text(entry["bytes"])
        style = "red" if entry["unusable"] else "dim"
        console.print(
            f"  [{style}]unchanged:[/] {entry['count']:,} {escape(entry['reason'])} ({size})"
        )
    if len(reasons) > REASONS_SHOWN:
        console.print(f"  … and {len(reasons) - REASONS_SHOWN:,} more reasons")


def print_unusable(summary: dict[str, Any]) -> None:
    """The files that could not be decoded."""
    from rich.markup import escape

    console = output.console()
    for entry in summary["unusable"][:UNUSABLE_SHOWN]:
        output.bad_record(entry, f"[red]{escape(entry['reason'])}[/]")
    more = summary["unusable_count"] - min(len(summary["unusable"]), UNUSABLE_SHOWN)
    if more > 0:
        console.print(f"  … and {more:,} more; `headrace scan` lists them all")
