#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the documentation site with Sphinx: the guides, and the reference made from the code.

Usage: make_site.py OUTPUT [--markdown]. The site is OUTPUT/index.html; Sphinx's input is written to
OUTPUT-markdown, and --markdown stops there. A Sphinx warning (a broken link or anchor, a page that
is in no table of contents) is an error.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import for_agents
import guides
import reference
import transforms

HERE = Path(__file__).resolve().parent


def write_if_changed(path: Path, text: str) -> None:
    """Sphinx rereads files that are newer than its last run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.is_file() or path.read_text() != text:
        path.write_text(text)


def write_markdown(folder: Path) -> dict[str, str]:
    """Writes all pages, with their images, to where Sphinx reads them."""
    from headrace import _core, errors

    operators = _core.operators()
    written, generated = guides.guides(), reference.pages()
    pages = written | generated | transforms.pages(operators, written)
    for place in ("reference/transforms/index.md", *generated):
        title = pages[place].partition("\n")[0][2:]
        pages["index.md"] += f"- [{title}]({place})\n"
    pages |= for_agents.pages(pages)
    title, description = "For coding agents", "move a DataLoader, read a doctor's report"
    entry = f"- [{title}]({for_agents.PLACE}): {description}.\n"
    pages["index.md"] = pages["index.md"].replace("\n## Guide", f"{entry}\n## Guide")
    pages = guides.with_linked_paths(pages)
    pages = guides.with_contents(guides.with_linked_codes(pages, errors.all_codes()))
    for place in folder.rglob("*.md"):
        if place.relative_to(folder).as_posix() not in pages:
            place.unlink()
    for place, text in pages.items():
        write_if_changed(folder / place, text)
    shutil.copytree(guides.DOCS / "images", folder / "images", dirs_exist_ok=True)
    transforms.draw(folder / "images" / "transforms", operators)
    shutil.copytree(HERE / "static", folder / "_static", dirs_exist_ok=True)
    shutil.copy(HERE / "conf.py", folder / "conf.py")
    return pages


def main(output: Path, only_markdown: bool) -> int:
    markdown = output.with_name(output.name + "-markdown")
    pages = write_markdown(markdown)
    if only_markdown:
        print(f"{len(pages)} pages of Markdown: {markdown}")
        return 0
    from sphinx.cmd.build import build_main

    options = ["-q", "-W", "--keep-going", "-j", "auto", "-d", str(markdown / "doctrees")]
    status = build_main([*options, "-b", "html", str(markdown), str(output)])
    if status == 0:
        for_agents.write(output, pages)
        print(f"{len(pages)} pages: {output / 'index.html'}")
    return status


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), "--markdown" in sys.argv[2:]))
