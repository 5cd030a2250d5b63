#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the documentation: the guides, and the reference made from the engine's registries.

Usage: make_reference.py OUTPUT. Pages are Markdown in OUTPUT and, where markdown-it is installed,
HTML beside it. Nothing of it is committed: the records in the code are the source.
"""

from __future__ import annotations

import inspect
import os
import re
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import draw_operators

ROOT = Path(__file__).resolve().parent.parent
STYLE = """body{font:16px/1.55 system-ui,sans-serif;max-width:54rem;margin:2rem auto;padding:0 1rem}
code,pre{font-family:ui-monospace,monospace;font-size:.9em;background:#8881;border-radius:3px}
pre{padding:.7em;overflow-x:auto}table{border-collapse:collapse}
th,td{text-align:left;vertical-align:top;padding:.25em .8em .25em 0;border-bottom:1px solid #8884}
:root{color-scheme:light dark}img{max-width:100%}"""

Record = dict[str, Any]


def table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    cells = [list(header), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    lines = ["| " + " | ".join(" ".join(cell.split()) for cell in row) + " |" for row in cells]
    return "\n".join([lines[0], "|" + "---|" * len(cells[0]), *lines[1:]])


def limits(param: Record) -> str:
    """What a parameter's value may be: "one of ...", "0 to 1", "at least 1"."""
    if param["choices"]:
        either = "or one of " if param["type"] == "floats" else "one of "
        return either + ", ".join(f"`{choice}`" for choice in param["choices"])
    low, high = param["minimum"], param["maximum"]
    if low == float("-inf"):
        return "" if high == float("inf") else f"at most {high:g}"
    return f"at least {low:g}" if high == float("inf") else f"{low:g} to {high:g}"


def params_table(params: list[Record]) -> str:
    rows = (
        (
            f"`{param['name']}`",
            param["type"],
            "required" if param["required"] else f"`{param['default']!r}`",
            limits(param),
            param["doc"],
        )
        for param in params
    )
    return table(("parameter", "type", "default", "values", ""), rows) if params else ""


def joined(*blocks: str) -> str:
    return "\n\n".join(block for block in blocks if block) + "\n"


def operators_page(operators: dict[str, Record]) -> str:
    parts = [
        "# Operators",
        "`from headrace import transforms as T`; each is a class of that module.",
    ]
    for name, record in sorted(operators.items()):
        traits = "random; " if record["random"] else ""
        oracle = f"*{traits}equals: {record['oracle']}*" if record["oracle"] else ""
        example = f"```python\n{record['example']}\n```"
        parts += [f"## {name}", record["doc"], example, params_table(record["params"]), oracle]
    return joined(*parts)


def formats_page(formats: dict[str, Record], codecs: dict[str, Record]) -> str:
    parts = ["# Formats", "`headrace.open(path)` recognizes them; `format=` names one."]
    for name, record in sorted(formats.items()):
        example = f"```python\n{record['example']}\n```" if record["example"] else ""
        parts += [f"## {name}", record["doc"], example, params_table(record["params"])]
    rows = (
        (f"`{name}`", record["doc"], " ".join(record["suffixes"]), record["oracle"])
        for name, record in sorted(codecs.items())
    )
    return joined(*parts, "# Codecs", table(("codec", "", "suffixes", "equals"), rows))


def samplers_page(samplers: dict[str, Record]) -> str:
    parts = ["# Samplers", "`sampler=` of a loader takes one; each is a class of `hr.sampling`."]
    for name, record in sorted(samplers.items()):
        example = f"```python\n{record['example']}\n```"
        parts += [f"## {name}", record["doc"], example, params_table(record["params"])]
    return joined(*parts)


def errors_page(codes: dict[str, Record]) -> str:
    parts = ["# Error codes", "`headrace explain CODE` prints one of these."]
    for code, record in sorted(codes.items()):
        parts += [f"## {code}: {record['title']}", f"*{record['kind']}*", record["explanation"]]
    return joined(*parts)


def api_page(module: Any) -> str:
    """The public names of the package, with their signatures and docstrings."""
    parts = ["# Python API"]
    for name in sorted(module.__all__):
        value = getattr(module, name)
        doc = inspect.getdoc(value) or ""
        if inspect.ismodule(value):
            parts += [f"## headrace.{name}", doc]
            continue
        if not callable(value):
            parts += [f"## headrace.{name}", f"`{value!r}`"]
            continue
        parts += [f"## headrace.{name}", signature(f"headrace.{name}", value), doc]
        for member in own_members(value):
            function = getattr(value, member)
            parts += [f"### {name}.{member}", signature(member, function)]
            parts += [inspect.getdoc(function) or ""]
    return joined(*parts)


def own_members(value: Any) -> list[str]:
    """A class's documented public members, without what Python's own classes give it."""
    if not inspect.isclass(value):
        return []
    ours = [base for base in value.__mro__ if base.__module__.startswith("headrace")]
    names = {name for base in ours for name in vars(base) if not name.startswith("_")}
    return sorted(name for name in names if inspect.getdoc(getattr(value, name)))


def signature(name: str, value: Any) -> str:
    try:
        text = str(inspect.signature(value))
    except (TypeError, ValueError):
        return ""
    # Annotations that are not evaluated print as strings.
    text = re.sub(r"(: |-> )'([^']*)'", r"\1\2", text)
    return f"```python\n{name}{text}\n```"


def guides(output: Path) -> dict[str, str]:
    """The hand-written pages by their place in the output, with links that lead on from there."""
    pages = [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")]
    pages += sorted((ROOT / "docs").rglob("*.md"))
    places = {page: place_of(page) for page in pages}

    def relinked(page: Path) -> str:
        here = (output / places[page]).parent

        def target(match: re.Match[str]) -> str:
            link, anchor = match[1], match[2] or ""
            if "://" in link:
                return match[0]
            meant = (page.parent / link).resolve()
            there = meant  # code and examples stay in the checkout
            if meant in places or meant.is_relative_to(ROOT / "docs" / "images"):
                there = output / place_of(meant)
            return f"]({os.path.relpath(there, here)}{anchor})"

        return re.sub(r"\]\(([^)#\s]+)(#[^)\s]*)?\)", target, page.read_text())

    return {place: relinked(page) for page, place in places.items()}


def place_of(page: Path) -> str:
    """docs/guide/video.md -> guide/video.md; README.md stays."""
    inside = page.relative_to(ROOT).as_posix()
    return inside.removeprefix("docs/")


def linked_by_name(text: str, pages: Iterable[str]) -> str:
    """Records in the code link to a page by its name alone: it has the folder that it is in."""
    folders = {Path(page).name: page for page in pages if not page.endswith("index.md")}
    return re.sub(r"\]\(([\w-]+\.md)", lambda link: f"]({folders.get(link[1], link[1])}", text)


def slug(heading: str) -> str:
    """The anchor of a heading, as GitHub makes it."""
    words = re.sub(r"<[^>]*>|[`*_]", "", heading).lower()
    return re.sub(r"[^\w\- ]", "", words).strip().replace(" ", "-")


def write_html(folder: Path, places: Iterable[str]) -> None:
    try:
        from markdown_it import MarkdownIt
    except ImportError:
        print("no HTML: markdown-it-py is not installed")
        return
    renderer = MarkdownIt("commonmark").enable("table")
    for page in (folder / place for place in places):
        body = renderer.render(page.read_text())
        body = re.sub(r'href="([\w./-]+)\.md(#[^"]*)?"', r'href="\1.html\2"', body)
        body = re.sub(
            r"<h(\d)>(.*?)</h\1>", lambda h: f'<h{h[1]} id="{slug(h[2])}">{h[2]}</h{h[1]}>', body
        )
        title = page.read_text().partition("\n")[0].lstrip("# ")
        page.with_suffix(".html").write_text(
            f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
            f"<style>{STYLE}</style>{body}</html>\n"
        )


def main(output: Path) -> int:
    import headrace
    from headrace import _core, errors

    output = output.resolve()
    output.mkdir(parents=True, exist_ok=True)
    codecs = {
        name: record
        for kind in ("image", "audio")
        for name, record in _core.media()[kind]["formats"].items()
    }
    pages = guides(output) | {
        "operators.md": operators_page(_core.operators()),
        "transforms.md": draw_operators.write_pages(output, _core.operators()),
        "formats.md": formats_page(_core.formats(), codecs),
        "samplers.md": samplers_page(_core.samplers()),
        "errors.md": errors_page(errors.all_codes()),
        "api.md": api_page(headrace),
    }
    pages["transforms.md"] = linked_by_name(pages["transforms.md"], pages)
    links = "".join(
        f"- [{pages[name].partition(chr(10))[0].lstrip('# ')}]({name})\n"
        for name in (
            "api.md",
            "operators.md",
            "transforms.md",
            "formats.md",
            "samplers.md",
            "errors.md",
        )
    )
    pages["index.md"] += "\n## Reference\n\n" + links
    for name, text in pages.items():
        (output / name).parent.mkdir(parents=True, exist_ok=True)
        (output / name).write_text(text)
    if (ROOT / "docs/images").is_dir():
        shutil.copytree(ROOT / "docs/images", output / "images", dirs_exist_ok=True)
    write_html(output, pages)
    print(f"{len(pages)} pages: {output / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
