#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the tables in the guides that are generated from tables in the code.

Usage: write_tables.py, with the package installed. Each is between two marks in its page;
tests/test_loader_options.py fails if one is out of date.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from headrace.write.options import page_table

from headrace import _core, counters, write
from headrace.loader import dataloader_keywords, options, table

ROOT = Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- by tools/write_tables.py -->", "<!-- end -->"
TEMPLATES = ROOT / "tools" / "templates"


def tables() -> dict[str, str]:
    """The text between the marks of each page."""
    return {
        "docs/reference/loader-options.md": table.page_table(options.KEYWORDS.values()),
        "docs/start/migrating/dataloader-arguments.md": dataloader_keywords.page_table(),
        "docs/guide/looking.md": counters.page_table(),
        "docs/reference/promises.md": bounds_table(),
        "docs/tools/convert.md": write.page_table(),
        "docs/guide/data/lerobot.md": page_table(write.container("lerobot").options),
        "docs/guide/data/formats/index.md": formats_table(),
        "CONTRIBUTING.md": additions_table(),
    }


def joined(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    cells = [list(header), *map(list, rows)]
    lines = ["| " + " | ".join(row) + " |" for row in cells]
    return "\n".join([lines[0], "|" + "---|" * len(cells[0]), *lines[1:]])


def formats_table() -> str:
    """The pages of formats, by title, with the functions that each of them describes."""
    rows = [
        ["A folder of images, a list of them", "`hr.folder`, `hr.open(...)`", "../sources.md"],
        ["A pack", "`hr.open(...)`", "../../../spec/pack-format.md"],
    ]
    for page in sorted((ROOT / "docs/guide/data/formats").glob("*.md")):
        if page.stem == "index":
            continue
        text = page.read_text()
        named = set(re.findall(r"\bhr\.(\w+)", text))
        functions = ", ".join(f"`hr.{name}`" for name in sorted(named & set(_core.formats())))
        rows.append([text.partition("\n")[0].lstrip("# "), functions or "nothing", page.name])
    return joined(
        ("what you have", "opens with", "page"),
        ((title, opens, f"[{Path(page).stem}]({page})") for title, opens, page in rows),
    )


# The words by which a record states that it equals its reference only within a tolerance.
BOUND = re.compile(
    r"\bwithin\b|\bto 1e-|\b\d+e-\d|\bdiffer|\bulp\b|at most 1\b|one level|last bits"
)


def bounds_table() -> str:
    """Transforms and codecs that equal their reference within a nonzero tolerance."""
    codecs = [one["formats"] for one in _core.media().values()]
    records = [
        *_core.operators().items(),
        *(pair for one in codecs for pair in sorted(one.items())),
    ]
    bounds = ((name, record.get("oracle") or "") for name, record in records)
    return joined(
        ("what", "equals"), ((f"`{name}`", text) for name, text in bounds if BOUND.search(text))
    )


def files_of(kind: str) -> list[Path]:
    """The files of an addition: new ones, and changed ones with the suffix .edit."""
    folder = TEMPLATES / kind
    return sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())


def additions_table() -> str:
    """The project's templates: how many files an addition takes, and which."""
    kinds = sorted(folder.name for folder in TEMPLATES.iterdir() if folder.is_dir())
    rows = [(kind.replace("_", " "), files_of(kind)) for kind in kinds]
    return joined(
        ("addition", "files", "which"),
        (
            (kind, str(len(files)), ", ".join(map(shown, sorted(files, key=rank))))
            for kind, files in rows
        ),
    )


def rank(path: Path) -> tuple[int, str]:
    """The main file comes first, then the others."""
    edited = path.suffix == ".edit"
    return (
        2 * edited + (path.suffix != ".cc" or path.stem.endswith(("_test", "_fuzz"))),
        str(path),
    )


def shown(path: Path) -> str:
    """A file of a template, renamed for an actual addition."""
    name = re.sub(r"template(_\w+)?", "yours", path.as_posix())
    if path.suffix == ".edit":
        return f"a change in `{name.removesuffix('.edit')}`"
    if path.stem.endswith("_test"):
        return "its test"
    if path.stem.endswith("_fuzz"):
        return "its fuzz target"
    if path.parts[0] == "fuzz":
        return "inputs in `fuzz/yours/`"
    return f"`{name}`"


def main() -> None:
    for name, text in tables().items():
        page = ROOT / name
        before, _, rest = page.read_text().partition(BEGIN)
        _, _, after = rest.partition(END)
        page.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")


if __name__ == "__main__":
    main()
