# SPDX-License-Identifier: Apache-2.0
"""Converts the hand-written pages for Sphinx: with tables of contents, and working links.

The pages are plain Markdown that is readable on its own. A page called index.md is the table of
contents of its folder: pages that it links to below that folder follow it, in that order. Files
outside of docs/ that pages link to (an example, a header) get a page that shows the file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Container, Iterable, Mapping
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent.parent
DOCS = ROOT / "docs"
CODE = re.compile(r"\bHR\d{4}\b")
LINK = re.compile(r"\]\(([^)#\s]+)(#[^)\s]*)?\)")
ELSEWHERE = {
    "ARCHITECTURE.md": "internals/architecture.md",
    "CONTRIBUTING.md": "internals/contributing.md",
}
LANGUAGES = {".py": "python", ".cc": "cpp", ".h": "cpp", ".sh": "bash", ".txt": "text"}


def guides() -> dict[str, str]:
    """Every page by its path in the site, and a page for every file that they link to."""
    texts = {place: (ROOT / name) for name, place in ELSEWHERE.items()}
    texts |= {path.relative_to(DOCS).as_posix(): path for path in sorted(DOCS.rglob("*.md"))}
    places = {path: place for place, path in texts.items()}
    files: dict[Path, str] = {}
    pages = {}
    for place, path in texts.items():
        pages[place] = relinked(path, place, places, files)
    for path, place in files.items():
        pages[place] = shown(path)
    return pages


def relinked(page: Path, place: str, places: Mapping[Path, str], files: dict[Path, str]) -> str:
    """A page's text with the site's links; adds files linked outside of docs/ to ``files``."""

    def target(match: re.Match[str]) -> str:
        if "://" in match[1] or match[1].startswith("mailto:"):
            return match[0]
        meant = (page.parent / match[1]).resolve()
        if meant in places:
            there = places[meant]
        elif meant.is_relative_to(DOCS):
            there = meant.relative_to(DOCS).as_posix()
        else:
            there = files.setdefault(meant, f"files/{meant.relative_to(ROOT).as_posix()}.md")
        here = PurePosixPath(place).parent.as_posix()
        return f"]({os.path.relpath(there, here)}{match[2] or ''})"

    return LINK.sub(target, page.read_text())


def shown(path: Path) -> str:
    """A page that shows a file of the checkout, or lists those of a folder."""
    name = path.relative_to(ROOT).as_posix()
    head = f"---\norphan: true\n---\n\n# {name}\n\n"
    if path.is_dir():
        below = sorted(file.relative_to(path).as_posix() for file in path.rglob("*.py"))
        return (
            head
            + f"A folder of the repository:\n\n{''.join(f'- `{file}`{chr(10)}' for file in below)}"
        )
    text = path.read_text()
    if path.suffix == ".md":
        return head + LINK.sub(r"]", text)
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return head + f"{fence}{LANGUAGES.get(path.suffix, 'text')}\n{text}{fence}\n"


def with_contents(pages: Mapping[str, str]) -> dict[str, str]:
    """The pages, every index.md with the pages that follow it; the first page has a list per
    section."""
    out = dict(pages)
    for place, text in pages.items():
        if PurePosixPath(place).name != "index.md" or text.startswith("---\norphan"):
            continue
        folder = PurePosixPath(place).parent
        if folder == PurePosixPath("."):
            sections = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
            lists = [(s.partition("\n")[0], listed(s, folder, pages)) for s in sections]
        else:
            lists = [("", listed(text, folder, pages))]
        out[place] += "".join(toctree(name, entries) for name, entries in lists if entries)
    return out


def listed(text: str, folder: PurePosixPath, pages: Mapping[str, str]) -> list[str]:
    """The pages that a text's lists and tables link to, relative to the folder, each once."""
    links = []
    for line in text.splitlines():
        if line.startswith(("- ", "| ", "  ")):
            links += [match[1] for match in LINK.finditer(line)]
    below = (
        link for link in links if not link.startswith("..") and (folder / link).as_posix() in pages
    )
    return [link.removesuffix(".md") for link in dict.fromkeys(below)]


# Markdown that is not prose: code, indented code, links, headings.
_NOT_PROSE = re.compile(
    r"(^```.*?^```|^    .*?$|``.*?``|`[^`]*`|\[[^]]*\]\([^)]*\)|^#.*?$)", re.MULTILINE | re.DOTALL
)


def with_linked_codes(pages: Mapping[str, str], codes: Container[str]) -> dict[str, str]:
    """The pages, with every error code in prose linked to its entry."""

    def linked(place: str, text: str) -> str:
        page = os.path.relpath("reference/errors.md", PurePosixPath(place).parent.as_posix())

        def link(match: re.Match[str]) -> str:
            return f"[{match[0]}]({page}#{match[0].lower()})" if match[0] in codes else match[0]

        parts = _NOT_PROSE.split(text)
        return "".join(p if at % 2 else CODE.sub(link, p) for at, p in enumerate(parts))

    own = ("reference/errors.md", "files/")
    return {p: t if p.startswith(own) else linked(p, t) for p, t in pages.items()}


PATH_OF_PAGE = re.compile(r"\bdocs/([\w/-]+\.md)")


def with_linked_paths(pages: Mapping[str, str]) -> dict[str, str]:
    """The pages, with every "docs/guide/gpu.md" in prose linked to that page, by its title. Help
    texts mention pages in this way, because they are also read in a terminal."""

    def linked(place: str, text: str) -> str:
        def link(match: re.Match[str]) -> str:
            if match[1] not in pages:
                return match[0]
            title = pages[match[1]].partition("\n")[0].lstrip("# ")
            return f"[{title}]({os.path.relpath(match[1], PurePosixPath(place).parent)})"

        parts = _NOT_PROSE.split(text)
        return "".join(p if at % 2 else PATH_OF_PAGE.sub(link, p) for at, p in enumerate(parts))

    return {p: t if p.startswith("files/") else linked(p, t) for p, t in pages.items()}


def toctree(caption: str, entries: Iterable[str]) -> str:
    head = f":caption: {caption}\n" if caption else ""
    return f"\n```{{toctree}}\n:hidden:\n{head}\n" + "\n".join(entries) + "\n```\n"


def linked_by_name(text: str, place: str, pages: Iterable[str]) -> str:
    """Records in the code mention a page by its name alone; this finds its folder."""
    here = PurePosixPath(place).parent.as_posix()
    folders = {PurePosixPath(page).name: page for page in pages if not page.endswith("index.md")}

    def target(match: re.Match[str]) -> str:
        name, anchor = match[1], match[2] or ""
        return f"]({os.path.relpath(folders[name], here)}{anchor})" if name in folders else match[0]

    return LINK.sub(target, text)
