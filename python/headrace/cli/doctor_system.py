# SPDX-License-Identifier: Apache-2.0
"""`headrace doctor --system`: prints the facts about this machine that a bug report needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.cli import output


def show(json: bool) -> int:
    from headrace.insight.measure import system

    facts = system.look()
    if json:
        output.print_json(facts)
    else:
        for topic, found in facts.items():
            print_topic(topic, found)
    return output.GOOD


def print_topic(topic: str, found: Mapping[str, Any]) -> None:
    output.console().print(f"[bold]{label_of(topic)}[/]")
    if not found:
        output.console().print("  none")
        return
    unset = "no limit" if topic == "limits" else "-"
    named = topic in ("packages", "environment")  # names of others, printed unchanged
    lines = {
        f"  {name if named else label_of(name)}": text_of(name, value, unset)
        for name, value in found.items()
    }
    output.facts(lines, gap=2)


def label_of(key: str) -> str:
    return key.removesuffix("_bytes").replace("_", " ")


def text_of(name: str, value: Any, unset: str) -> str:
    if value is None:
        return "no limit" if "limit" in name else unset
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return "; ".join(map(str, value)) or "none"
    if name.endswith("_bytes"):
        return output.size_text(value)
    return str(value)
