#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of the guides that are made from tables in the code.

Usage: write_tables.py, with the package installed. Each stands between two marks in its page;
tests/test_loader_options.py fails where one is not what this writes.
"""

from __future__ import annotations

from pathlib import Path

from headrace.loader import dataloader_keywords, options, table

ROOT = Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- by tools/write_tables.py -->", "<!-- end -->"


def tables() -> dict[str, str]:
    """What belongs between the marks of each page."""
    return {
        "docs/loader.md": table.page_table(options.KEYWORDS.values()),
        "docs/migrating.md": dataloader_keywords.page_table(),
    }


def main() -> None:
    for name, text in tables().items():
        page = ROOT / name
        before, _, rest = page.read_text().partition(BEGIN)
        _, _, after = rest.partition(END)
        page.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")


if __name__ == "__main__":
    main()
