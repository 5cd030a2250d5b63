# SPDX-License-Identifier: Apache-2.0
"""Pages for coding agents: llms.txt, every page as Markdown, and a page with the two most common
tasks, whose tables come from the reference.
"""

from __future__ import annotations

import os
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
    """The page with the two tasks, made from existing pages."""
    from headrace.loader import dataloader_keywords

    keywords = "start/migrating/dataloader-arguments.md"
    transforms = "start/migrating/torchvision-transforms.md"
    doctor = "tools/doctor.md"
    tables = {
        "keywords": moved(dataloader_keywords.page_table(), keywords),
        "transforms": moved(table_of(written[transforms], "| torchvision v2 |"), transforms),
        "verdicts": moved(table_of(written[doctor], "| verdict |"), doctor),
        "experiments": moved(table_of(written[doctor], "| experiment |"), doctor),
    }
    text = (Path(__file__).parent / "for_agents.md").read_text()
    text = text.replace("](../../docs/start/", "](").replace("](../../docs/", "](../")
    return {PLACE: text.format(**tables)}


def table_of(page: str, head: str) -> str:
    """The table of a page that begins with this row."""
    found = re.search(rf"^{re.escape(head)}.*\n(?:\|.*\n)+", page, re.MULTILINE)
    assert found, f"no table begins with {head}"
    return found[0].rstrip("\n")


def moved(table: str, page: str) -> str:
    """A table of another page, with its links relative to this one."""

    def target(match: re.Match[str]) -> str:
        if "://" in match[1]:
            return match[0]
        meant = (
            os.path.normpath(os.path.join(os.path.dirname(page), match[1])) if match[1] else page
        )
        return f"]({os.path.relpath(meant, os.path.dirname(PLACE))}{match[2] or ''})"

    return re.sub(r"\]\(([^)#\s]*)(#[^)\s]*)?\)", target, table)


def write(site: Path, pages: Mapping[str, str]) -> None:
    """llms.txt, and the Markdown of each page next to its HTML."""
    for place, text in pages.items():
        (site / place).parent.mkdir(parents=True, exist_ok=True)
        (site / place).write_text(re.sub(r"\n```\{toctree\}.*?```\n", "", text, flags=re.DOTALL))
    (site / "llms.txt").write_text(contents(pages))


def contents(pages: Mapping[str, str]) -> str:
    """The site's contents in the format of llmstxt.org: a title, a summary, lists of links."""
    parts = ["# Headrace", f"> {SUMMARY}", f"Start with [For coding agents]({PLACE})."]
    for section in re.split(r"^## ", pages["index.md"], flags=re.MULTILINE)[1:]:
        title, _, body = section.partition("\n")
        entries = [line for line in body.splitlines() if line.startswith("- [")]
        if entries:
            parts.append(f"## {title}\n\n" + "\n".join(entries))
    return "\n\n".join(parts) + "\n"
