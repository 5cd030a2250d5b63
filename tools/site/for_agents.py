# SPDX-License-Identifier: Apache-2.0
"""Pages for coding agents: llms.txt, every page as Markdown, and one page with the two tasks that
come up most, whose tables are those of the reference.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

PLACE = "start/for-agents.md"
SUMMARY = (
    "Headrace turns datasets into training batches: read, decode, augment and batch in a C++ "
    "engine with a Python API that has torchvision's names. It replaces torch's DataLoader, DALI, "
    "FFCV and similar loaders, and links no framework."
)


def pages(written: Mapping[str, str]) -> dict[str, str]:
    """The page of the two tasks, made from pages that are there."""
    from headrace.loader import dataloader_keywords

    transforms = written["start/migrating/torchvision-transforms.md"]
    doctor = written["tools/doctor.md"]
    tables = {
        "keywords": dataloader_keywords.page_table(),
        "transforms": table_of(transforms, "| torchvision v2 |"),
        "verdicts": table_of(doctor, "| verdict |"),
        "experiments": table_of(doctor, "| experiment |"),
    }
    text = (Path(__file__).parent / "for_agents.md").read_text()
    text = text.replace("](../../docs/start/", "](").replace("](../../docs/", "](../")
    return {PLACE: text.format(**{name: without_links(table) for name, table in tables.items()})}


def table_of(page: str, head: str) -> str:
    """The table of a page that begins with this row."""
    found = re.search(rf"^{re.escape(head)}.*\n(?:\|.*\n)+", page, re.MULTILINE)
    assert found, f"no table begins with {head}"
    return found[0].rstrip("\n")


def without_links(table: str) -> str:
    """A table that was written for another page: its links become words."""
    return re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", table)


def write(site: Path, pages: Mapping[str, str]) -> None:
    """llms.txt, and the Markdown of each page next to its HTML."""
    for place, text in pages.items():
        (site / place).parent.mkdir(parents=True, exist_ok=True)
        (site / place).write_text(re.sub(r"\n```\{toctree\}.*?```\n", "", text, flags=re.DOTALL))
    (site / "llms.txt").write_text(contents(pages))


def contents(pages: Mapping[str, str]) -> str:
    """The site's contents as llmstxt.org asks for it: a title, a summary, lists of links."""
    parts = ["# Headrace", f"> {SUMMARY}", f"Start with [For coding agents]({PLACE})."]
    for section in re.split(r"^## ", pages["index.md"], flags=re.MULTILINE)[1:]:
        title, _, body = section.partition("\n")
        entries = [line for line in body.splitlines() if line.startswith("- [")]
        if entries:
            parts.append(f"## {title}\n\n" + "\n".join(entries))
    return "\n\n".join(parts) + "\n"
